"""The pages in a real browser: no script error, nothing that axe finds, no broken word, hostile texts stay text.

    make prove SUITE=browser

Needs Chromium, on PATH or named in ONCEPROOF_BROWSER; without one every test here fails and says so. What needs no
browser of these rules (the policy is there, links resolve, no handler) is in tests/test_report.py, tests/test_many.py
and tests/test_serve.py.
"""

from __future__ import annotations

import importlib.resources
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench import chromium, sample_store

pytestmark = pytest.mark.browser
PAGES = (
    "held",
    "violated",
    "inconclusive",
    "hostile",
    "many",
    "night",
    "list",
    "served run",
    "served many",
    "served night",
    "searched",
)
WIDTHS = (400, 820, 1400, 3840)
PAYLOADS = (*sample_store.HOSTILE, *sample_store.VALUES.values())
OTHERS = 7
"""Runs of the store without a payload; one of them has lost its verdict."""
PAPER = 718
"""An A4 page between its margins, in pixels of CSS."""

BROKEN_WORDS = r"""() => {
  const found = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode;
    if (!node.parentElement.checkVisibility() || node.parentElement.closest("svg, pre, .unseen")) continue;
    for (const word of node.data.matchAll(/[\p{L}\p{N}_]{2,24}/gu)) {
      // A part of a longer piece, such as a path or a hash, may have to break.
      const around = node.data.slice(Math.max(0, word.index - 30), word.index + word[0].length + 30);
      if (/\S{32}/.test(around)) continue;
      const range = document.createRange();
      range.setStart(node, word.index); range.setEnd(node, word.index + word[0].length);
      const tops = new Set([...range.getClientRects()].filter(r => r.width > 0).map(r => Math.round(r.top)));
      if (tops.size > 1) found.push(word[0]);
    }
  }
  return found;
}"""
HANDLERS = """() => [...document.querySelectorAll("*")].flatMap(
  e => [...e.attributes].filter(a => a.name.startsWith("on") || /^\\s*javascript:/i.test(a.value)).map(a => a.name))"""


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    try:
        with chromium.started() as found:
            yield found
    except chromium.NoBrowser as lack:
        pytest.fail(str(lack), pytrace=False)


@pytest.fixture(scope="session")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Where each of PAGES is, and by its payload each hostile run, from the disk and (`served`) from the store."""
    store = tmp_path_factory.mktemp("reports")
    runs = sample_store.made(store)
    pages = [run.folder / "report.html" for run in runs if run.folder]
    hostile = dict(zip(PAYLOADS, pages[OTHERS - 1 :], strict=True))
    command = [sys.executable, "-m", "harness", "serve", str(store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            root = server.stdout.readline().split()[0]
            yield {
                "held": pages[0].as_uri(),
                "violated": pages[2].as_uri(),
                "inconclusive": pages[3].as_uri(),
                "hostile": hostile[sample_store.HOSTILE[1]].as_uri(),
                "many": (store / "latest" / "index.html").as_uri(),
                "night": (store / "nightly" / "latest" / "index.html").as_uri(),
                "list": root,
                "served run": root + pages[2].relative_to(store).as_posix(),
                "served many": root + "latest/index.html",
                "served night": root + "nightly/latest/index.html",
                "searched": root + "?scenario=%22%3E%3Cscript%3Ewindow.hit%3D1%3C/script%3E",
                **{text: page.as_uri() for text, page in hostile.items()},
                **{f"served {text}": root + page.relative_to(store).as_posix() for text, page in hostile.items()},
            }
            server.send_signal(signal.SIGINT)
            assert server.wait(timeout=60) == 0
        finally:
            server.kill()


@pytest.fixture(params=PAGES)
def address(request: pytest.FixtureRequest, addresses: dict[str, str]) -> str:
    return addresses[request.param]


class Opened:
    """One page, with all messages and requests of the browser while it was open."""

    def __init__(self, browser: Any, address: str, *, width: int = 1400, scheme: str = "light") -> None:
        self.page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.messages: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("dialog", self._dismiss)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(address)

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *why: object) -> None:
        self.page.close()

    def _dismiss(self, dialog: Any) -> None:
        self.messages.append(dialog.message)
        dialog.dismiss()


def axe(page: Any) -> list[str]:
    """What axe finds on a page, a line each."""
    source = (importlib.resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
    page.evaluate(source)
    # It reads style sheets itself, and asks for them over the network, which the page forbids.
    found = page.evaluate("() => axe.run({preload: false})")
    return [
        f"{each['id']}: {node['target']}: {node['failureSummary']}"
        for each in found["violations"]
        for node in each["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_axe_finds_nothing(browser: Any, address: str, width: int, scheme: str) -> None:
    with Opened(browser, address, width=width, scheme=scheme) as opened:
        for closed in opened.page.query_selector_all("details:not([open]) > summary"):
            closed.click()
        assert axe(opened.page) == []


def assert_quiet(opened: Opened) -> None:
    """Nothing on the console, no dialog, and no request but the page's own."""
    assert opened.messages == []
    # A browser asks for an icon by itself; the policy forbids it, and it may say so or not.
    assert [url for url in opened.requests if not url.endswith("/favicon.ico")] == [opened.page.url]


def assert_only_text(page: Any) -> None:
    """No payload ran, became an element or an attribute, or changed the style."""
    assert page.evaluate("window.hit") is None
    assert page.evaluate("[document.scripts.length, document.images.length, frames.length]") == [0, 0, 0]
    assert page.evaluate(HANDLERS) == []
    assert page.evaluate("getComputedStyle(document.querySelector('h1')).display") == "block"


def test_no_page_says_or_asks_for_anything(browser: Any, address: str) -> None:
    with Opened(browser, address) as opened:
        assert_quiet(opened)


def test_hostile_texts_are_text(browser: Any, address: str) -> None:
    with Opened(browser, address) as opened:
        assert_only_text(opened.page)


@pytest.mark.parametrize("where", ["", "served "], ids=["file", "served"])
@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_a_hostile_run_is_text_to_be_read(browser: Any, addresses: dict[str, str], payload: str, where: str) -> None:
    read = sample_store.READ[payload]
    with Opened(browser, addresses[where + payload]) as opened:
        page = opened.page
        for closed in page.query_selector_all("details:not([open]) > summary"):
            closed.click()
        assert read in page.locator(".finding td").all_inner_texts()
        assert_shown(page.locator(".finding p").all_inner_texts()[-1], payload)
        if payload in sample_store.HOSTILE:
            assert page.inner_text("h1").endswith(f" {read}")
        else:
            # Of the bytes in its scenario file.
            assert sample_store.READ[sample_store.VALUES["no UTF-8"]] in page.inner_text("#setup pre")
        assert_only_text(page)
        assert_quiet(opened)


def assert_shown(text: str, payload: str) -> None:
    """`text` is the payload as a reader sees it; where it is cut, it says how much is left out."""
    if len(payload) < 2000:
        assert text == sample_store.READ[payload]
    else:
        shown, left = re.fullmatch(r"(.*)… \(([\d,]+) more characters?\)", text).groups()  # type: ignore[union-attr]
        assert payload.startswith(shown)
        assert len(shown) + int(left.replace(",", "")) == len(payload)


def test_hostile_texts_are_there_to_be_read(browser: Any, addresses: dict[str, str]) -> None:
    names = [sample_store.READ[each] for each in sample_store.HOSTILE]
    with Opened(browser, addresses["list"]) as opened:
        text = opened.page.inner_text("body")
        assert [each for each in names if each not in text] == []
    with Opened(browser, addresses["many"]) as opened:
        text = opened.page.inner_text("body")
        short = [sample_store.READ[each] for each in PAYLOADS if len(each) < 200]
        assert [each for each in short if each not in text] == []
        assert len(re.findall(r"<script>window\.hit=1</script>x{50,}… \(10,485,\d{3} more characters\)", text)) == 1


def test_what_a_night_says_of_hostile_runs_is_there_to_be_read(browser: Any, addresses: dict[str, str]) -> None:
    short = [sample_store.READ[each] for each in PAYLOADS if len(each) < 200]
    with Opened(browser, addresses["night"]) as opened:
        for section in ("#known", "#hunted", "#blank"):
            text = opened.page.inner_text(section)
            assert [each for each in short if each not in text] == [], section
        assert_only_text(opened.page)
        assert_quiet(opened)
    with Opened(browser, addresses["list"]) as opened:
        opened.page.get_by_role("link", name="nightly/latest").click()
        opened.page.wait_for_url("**/nightly/latest/index.html")
        assert f"{3 * len(PAYLOADS)} runs: " in opened.page.inner_text("h1")
        assert opened.messages == []


def test_bytes_of_a_log_that_are_no_text_are_seen(browser: Any, addresses: dict[str, str]) -> None:
    with Opened(browser, addresses["inconclusive"]) as opened:
        for closed in opened.page.query_selector_all("details:not([open]) > summary"):
            closed.click()
        assert sample_store.LOGGED in opened.page.inner_text("main > section:last-of-type pre")
        assert_only_text(opened.page)
        assert_quiet(opened)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_word_is_broken_and_nothing_sticks_out(browser: Any, address: str, width: int) -> None:
    with Opened(browser, address, width=width) as opened:
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
        assert opened.page.evaluate(BROKEN_WORDS) == []


def test_on_paper_nothing_is_cut_off(browser: Any, address: str) -> None:
    with Opened(browser, address, width=PAPER, scheme="dark") as opened:
        opened.page.emulate_media(media="print")
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= PAPER
        # Ink on white, whatever the reader's screen is set to.
        assert opened.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert opened.page.pdf(format="A4")[:5] == b"%PDF-"


def test_the_store_is_searched_and_read_by_hand(browser: Any, addresses: dict[str, str]) -> None:
    with Opened(browser, addresses["list"]) as opened:
        page = opened.page
        page.get_by_label("scenario").fill("upsert")
        page.get_by_label("verdict").select_option("held")
        page.get_by_role("button", name="search").click()
        page.wait_for_url(re.compile(r"\?scenario=upsert&verdict=held"))
        assert page.inner_text("h1") == f"1 of {len(PAYLOADS) + OTHERS - 1} runs"
        assert page.get_by_label("scenario").input_value() == "upsert"
        page.get_by_role("link", name="an upsert, killed before the offset commit").click()
        page.wait_for_url("**/report.html")
        assert page.inner_text("h1") == "an upsert, killed before the offset commit"
        assert opened.messages == []


def test_a_cell_leads_to_its_run(browser: Any, addresses: dict[str, str]) -> None:
    for name in ("many", "served many"):
        with Opened(browser, addresses[name]) as opened:
            opened.page.locator(".matrix .pair a.violated").first.click()
            opened.page.wait_for_url("**/report.html")
            assert opened.page.inner_text("h1") == "an append, killed before the offset commit"
            assert opened.messages == []


def test_the_keyboard_reaches_every_wide_table(browser: Any, addresses: dict[str, str]) -> None:
    with Opened(browser, addresses["many"], width=400) as opened:
        wide = "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth)"
        assert opened.page.evaluate(f"{wide}.filter(e => e.tabIndex !== 0).length") == 0


def test_without_a_browser_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(chromium.VARIABLE, str(tmp_path / "none"))
    with pytest.raises(chromium.NoBrowser, match=r"none is no program\. install Chromium"):
        chromium.path()
    monkeypatch.delenv(chromium.VARIABLE)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(chromium.NoBrowser, match="there is none on PATH"):
        chromium.path()
