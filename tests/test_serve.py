"""`onceproof serve`: what it shows of a store, and that it shows nothing else, to nobody else."""

from __future__ import annotations

import http.client
import os
import random
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from harness.errors import HarnessError, UsageError
from harness.report import render
from harness.report.many import gather
from harness.report.many.about import About
from harness.report.many.seen import Seen
from harness.report.summary import Run
from harness.run_folder import digests
from harness.scenario import Word
from harness.serve import listing as listings
from harness.serve import search, server
from harness.serve.files import opened
from harness.serve.listing import Listing
from harness.serve.search import Query, found, parse
from tests import sample_runs as sample
from tests.test_many import kept, words

WITHIN_S = 60


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: str


@dataclass
class Served:
    """A server of a process of its own, and its store."""

    root: Path
    process: subprocess.Popen[str]
    port: int

    def ask(self, path: str, *, method: str = "GET", host: str | None = None) -> Answer:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WITHIN_S)
        try:
            # Put as it is: nothing tidies the path.
            link.putrequest(method, path, skip_host=True)
            link.putheader("Host", f"127.0.0.1:{self.port}" if host is None else host)
            link.endheaders()
            got = link.getresponse()
            headers = {name.lower(): value for name, value in got.getheaders()}
            return Answer(got.status, headers, got.read().decode())
        finally:
            link.close()


@contextmanager
def start(root: Path, *args: str) -> Iterator[Served]:
    """Gone afterwards, whatever a test did."""
    command = [sys.executable, "-m", "harness", "serve", str(root), *args]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            said = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/ shows .*; Ctrl-C ends it\n", line)
            assert said, line
            yield Served(root, process, int(said[1]))
        finally:
            process.kill()


def end(served: Served, number: int = signal.SIGINT) -> tuple[int, str]:
    """Its exit code, and what it said on standard error."""
    served.process.send_signal(number)
    _, told = served.process.communicate(timeout=WITHIN_S)
    return served.process.returncode, told


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs, one of them damaged, one with findings; a page of many runs; and a secret outside and inside."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "report.html").write_text("secret")
    (outside / "run.json").write_text("{}")
    root = tmp_path_factory.mktemp("reports")
    held = kept(root, run_id="r1", name="an upsert")
    violated = kept(root, sample.verdict(), run_id="r2", name="an append", tags=("slow",))
    torn = kept(root, run_id="r3", name="torn")
    torn.verdict_json.unlink()
    render.index(root, [Run.read(held.path), Run.read(violated.path)])
    (root / "secret.html").write_text("secret")
    (root / "report.html").write_text("secret")
    (root / "linked").symlink_to(outside)
    (held.path / "findings.csv").symlink_to(outside / "report.html")
    os.mkfifo(held.path.parent / "index.html")
    return root


@pytest.fixture(scope="module")
def served(store: Path) -> Iterator[Served]:
    with start(store) as running:
        yield running
        assert end(running) == (0, "")


def links(html: str) -> list[str]:
    return re.findall(r'<a [^>]*href="([^"]+)"', html)


@pytest.mark.subprocess
def test_the_store_is_listed_with_links_to_every_page(served: Served) -> None:
    got = served.ask("/")
    assert (got.status, got.headers["content-type"]) == (200, "text/html; charset=utf-8")
    said = words(got.body)
    assert "2 of 2 runs" in said and "✓ held" in said and "✗ violated" in said and "expected held" in said
    assert "1 file in it is not as the run left it" in said
    pages = [link for link in links(got.body) if link.startswith("/") and len(link) > 1]
    assert sorted(link.split("/")[1] for link in pages) == ["an-append", "an-upsert", "latest"]
    for link in pages:
        page = served.ask(link)
        assert page.status == 200
        assert page.body == (served.root / link[1:]).read_text()
    table = next(link for link in pages if "append" in link).replace("report.html", "findings.csv")
    assert served.ask(table).headers["content-type"] == "text/csv; charset=utf-8"


@pytest.mark.subprocess
def test_links_of_a_served_page_lead_to_served_pages(served: Served) -> None:
    for link in links(served.ask("/latest/index.html").body):
        path = os.path.normpath(f"/latest/{link}")
        assert served.ask(path).status == 200


@pytest.mark.subprocess
@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("scenario=UPSERT", ["an upsert"]),
        ("verdict=violated", ["an append"]),
        ("kind=duplicated", ["an append"]),
        ("kind=stalled", []),
        ("tag=slow", ["an append"]),
        ("since=2020-01-01", ["an append", "an upsert"]),
        ("until=2020-01-01", []),
        ("scenario=&verdict=&kind=&since=&until=&tag=", ["an append", "an upsert"]),
        ("page=2", []),
    ],
)
def test_a_search_finds(served: Served, query: str, left: list[str]) -> None:
    got = served.ask(f"/?{query}")
    assert got.status == 200
    assert sorted(re.findall(r"report\.html\">([^<]+)<", got.body)) == left


@pytest.mark.subprocess
@pytest.mark.parametrize(
    ("query", "said"),
    [
        (
            "verdict=proved",
            "asked for verdict=proved; it is one of held, inconclusive, untested, violated, error. Take one of them",
        ),
        ("since=yesterday", "asked for since=yesterday; it is a day such as 2026-12-31. Write it that way"),
        ("since=20260101", "asked for since=20260101; it is a day such as 2026-12-31. Write it that way"),
        ("page=0", "asked for page=0; it is a number from 1. Take page out of the address"),
        ("page=%D9%A3", "asked for page=٣; it is a number from 1. Take page out of the address"),
        (
            "x%3Cb%3E=1",
            "asked for x<b>; a search has scenario, verdict, kind, since, until, tag, page. Take it out of the address",
        ),
        ("tag=a&tag=b", "asked for tag 2 times; a search has it once. Take the others out"),
        ("tag=" + "a" * 201, "asked for tag of 201 characters; it has 200 at most. Ask for a part"),
        ("&".join(f"a{n}=" for n in range(60)), "asked for more than 50 things at once. Ask for fewer"),
    ],
    ids=lambda value: value[:12],
)
def test_a_bad_search_is_one_clear_error(served: Served, query: str, said: str) -> None:
    got = served.ask(f"/?{query}")
    assert (got.status, got.body) == (400, f"Error: {said}\n")
    assert got.headers["content-type"] == "text/plain; charset=utf-8"


@pytest.mark.subprocess
def test_what_is_searched_for_is_only_text(served: Served) -> None:
    got = served.ask("/?scenario=%22%3E%3Cscript%3Ealert(1)%3C/script%3E%E2%80%AE%ff")
    assert got.status == 200
    assert "<script" not in got.body and "\\u202e" in got.body and "&#34;&gt;&lt;script" in got.body


@pytest.mark.subprocess
@pytest.mark.parametrize("path", ["/", "/latest/index.html", "/nothing", "/?verdict=x"])
def test_every_answer_forbids_what_a_page_does_not_need(served: Served, path: str) -> None:
    headers = served.ask(path).headers
    assert headers["content-security-policy"] == render.CSP
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers
    assert not [name for name in headers if name.startswith("access-control")]


@pytest.mark.subprocess
def test_the_pages_say_the_same_of_themselves(served: Served) -> None:
    page = next(link for link in links(served.ask("/").body) if "report.html" in link)
    for path in ("/", "/latest/index.html", page):
        assert f'http-equiv="Content-Security-Policy" content="{render.CSP}"' in served.ask(path).body


@pytest.mark.subprocess
@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "0.0.0.0:{port}", "", "127.0.0.1:{port}.x"],
)
def test_another_name_for_this_machine_is_refused(served: Served, host: str) -> None:
    got = served.ask("/", host=host.format(port=served.port))
    assert got.status == 400
    assert "store of runs" not in got.body


@pytest.mark.subprocess
def test_localhost_is_this_machine(served: Served) -> None:
    assert served.ask("/", host=f"localhost:{served.port}").status == 200


@pytest.mark.subprocess
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "PROPFIND"])
def test_nothing_can_be_changed(served: Served, method: str) -> None:
    got = served.ask("/", method=method)
    assert (got.status, got.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.subprocess
def test_head_has_no_body(served: Served) -> None:
    for path in ("/", "/latest/index.html"):
        got = served.ask(path, method="HEAD")
        assert (got.status, got.body) == (200, "")
        assert int(got.headers["content-length"]) > 1000


@pytest.mark.subprocess
@pytest.mark.parametrize(
    "path",
    [
        "/secret.html",
        "/report.html",
        "/latest/summary.json",
        "/latest/.lock",
        "/{run}/run.json",
        "/{run}/findings.csv",
        "/{run}/../report.html",
        "/{run}/%2e%2e/{id}/report.html",
        "/{run}/logs/../report.html",
        "//{run}/report.html",
        "/{run}//report.html",
        "/{run}/report.html/",
        "/{run}/report.html%00.html",
        "/{run}%2freport.html",
        "/{run}/index.html",
        "/{slug}/latest/report.html",
        "/{slug}/index.html",
        "/linked/report.html",
        "/../outside0/report.html",
        "/..%2foutside0%2freport.html",
        "/latest/report.html",
        "/" + "a/" * 100 + "report.html",
        "/%",
        "/%ff/report.html",
    ],
)
def test_nothing_else_is_served(served: Served, path: str) -> None:
    run = next(link for link in links(served.ask("/").body) if "an-upsert" in link).removesuffix("/report.html")[1:]
    slug, name = run.split("/")
    got = served.ask(path.format(run=run, slug=slug, id=name))
    assert got.status == 404
    assert got.body.startswith("Error: asked for /") and "secret" not in got.body.replace(path, "")


@pytest.mark.subprocess
def test_a_damaged_request_is_refused_and_the_next_is_answered(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=WITHIN_S) as link:
        link.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")
        assert b" 400 " in link.recv(200)
    with socket.create_connection(("127.0.0.1", served.port), timeout=WITHIN_S) as link:
        link.sendall(b"\xff\x00\r\n\r\n")
        assert b" 400 " in link.recv(200)
    assert served.ask("/").status == 200


@pytest.mark.subprocess
def test_it_listens_on_this_machine_alone(served: Served) -> None:
    import psutil

    listening = [each.laddr for each in psutil.Process(served.process.pid).net_connections() if each.status == "LISTEN"]
    assert [(each.ip, each.port) for each in listening] == [("127.0.0.1", served.port)]


def never_given_out() -> int:
    """A free port that the system gives to nobody who does not ask for it: another program may have one of the others
    as soon as it is free again."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="utf-8").split()[0])
    for port in random.SystemRandom().sample(range(10_000, max(20_000, first)), 100):
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port
    raise AssertionError("a hundred ports are taken")


@pytest.mark.subprocess
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_it_and_leaves_nothing(tmp_path: Path, number: int) -> None:
    with start(tmp_path, "--port", str(never_given_out())) as running:
        assert running.ask("/").status == 200
        assert end(running, number) == (0, "")
    # The port can be had again at once.
    with start(tmp_path, "--port", str(running.port)) as again:
        assert again.port == running.port
        assert end(again) == (0, "")
    assert [*tmp_path.iterdir()] == []


def test_a_store_or_a_port_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"asked to show .*; there is no such folder\. Name the folder"):
        server.serve(tmp_path / "none", 0, print)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(HarnessError, match=r"another program has it\. Take another --port"):
            server.serve(tmp_path, taken.getsockname()[1], print)


def test_without_the_extra_it_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(UsageError, match=r"no Python package uvicorn; pip install 'onceproof\[serve\]'"):
        server.serve(tmp_path, 0, print)


@pytest.mark.subprocess
def test_the_page_of_a_night_is_listed_and_shown(tmp_path: Path) -> None:
    root = tmp_path / "reports"
    for reports in (root, root / "nightly", tmp_path / "elsewhere"):
        render.index(reports, [Run.read(kept(reports, name="a run").path)])
    (root / "linked").symlink_to(tmp_path / "elsewhere")
    (root / "half").mkdir()
    (root / "half" / "latest").symlink_to(tmp_path / "elsewhere" / "latest")
    pages = [link for link in links(Listing(root).page(parse({}))) if link.endswith("index.html")]
    assert pages == ["/latest/index.html", "/nightly/latest/index.html"]
    with start(root) as running:
        assert "1 run: 1 as expected" in words(running.ask(pages[1]).body)
        assert end(running) == (0, "")


def test_a_run_is_read_again_when_it_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = kept(tmp_path)
    store, read, whole = Listing(tmp_path), [], gather.whole

    def counted(path: Path) -> Run:
        read.append(path)
        return whole(path)

    monkeypatch.setattr(gather, "whole", counted)
    for _ in range(2):
        assert [seen.word for seen in store.runs()[0]] == [Word.HELD]
    assert len(read) == 1
    folder.save(2, verdict=sample.verdict())
    digests.write(folder.path)
    assert [seen.word for seen in store.runs()[0]] == [Word.VIOLATED]
    folder.remove()
    assert store.runs() == ([], [])


def test_a_file_that_became_a_pipe_does_not_hang(tmp_path: Path) -> None:
    folder = kept(tmp_path)
    address = os.fsencode(f"/{folder.path.parent.name}/{folder.path.name}/report.html")
    found_there = opened(tmp_path, address)
    assert found_there is not None
    os.close(found_there[0])
    folder.report_html.unlink()
    os.mkfifo(folder.report_html)
    assert opened(tmp_path, address) is None


def test_long_lists_have_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [
        Seen(scenario=f"{n:03}", word=Word.HELD, as_expected=True, about=About(started=f"2026-{n:03}"))
        for n in range(5)
    ]
    monkeypatch.setattr(listings, "PER_PAGE", 2)
    monkeypatch.setattr(Listing, "runs", lambda self: (runs, []))
    first, last = (Listing(tmp_path).page(Query(page=page, tag="")) for page in (1, 3))
    assert re.findall(r'scope="row">(\d+)<', first) == ["004", "003"]
    assert re.findall(r'scope="row">(\d+)<', last) == ["000"]
    assert links(first)[-1] == "/?page=2" and links(last)[-1] == "/?page=2"


def test_a_run_without_a_date_is_not_before_any() -> None:
    bare = Seen(scenario="a", word=Word.HELD, as_expected=True)
    dated = replace(bare, about=About(started="2026-01-02T00:00:00Z"))
    assert found([bare, dated], parse({"until": ["2026-01-02"]})) == [dated]
    assert found([bare, dated], parse({"since": ["2026-01-02"]})) == [dated]
    assert tuple(Query.__dataclass_fields__) == search.KEYS
