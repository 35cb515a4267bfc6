"""A checkpoint that lies on a server: the local copy that follows it, the listings that faults are judged by."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.checkpoint import Offsets
from harness.components.files.dropped import Dropped
from harness.components.files.remote_source import RemoteOpenFolder as RemoteSource
from harness.components.files.sink.listing import Reader
from harness.components.files.sink.parquet_rows import Parquet
from harness.components.files.sink.remote_folder import RemoteOpenFolder
from harness.context import CheckpointEvent
from harness.errors import ScenarioError, StackError, UsageError
from harness.history import BatchPlanned, History, TaskStarted, read
from harness.load import load
from harness.load.dump import dump
from harness.remote import Gone
from harness.remote import checkpoint_listing as remote
from harness.remote import mirror as mirrors
from harness.remote.mirror import Mirror
from harness.run.progress.agent import OPERATION, Event
from harness.run.progress.observer import Observer
from harness.run_folder.ledger import State
from harness.sinks.base import Missing
from harness.stacks.needed_parts import only_checkpoint, parts
from harness.workloads.base import Record
from tests.limits import PROCESS_S
from tests.remote_folder import LocalRemote, put

HOUSE = Path(__file__).parents[1]
PLAN = b'v1\n{"batchWatermarkMs":0}\n{"topic":{"0":%d}}'


def reads(line: str, log: Path) -> Offsets | None:
    return {int(p): int(end) for p, end in json.loads(line).get("topic", {}).items()}


@pytest.fixture
def server(tmp_path: Path) -> LocalRemote:
    (tmp_path / "server").mkdir()
    return LocalRemote(tmp_path / "server")


def mirrored(server: LocalRemote, tmp_path: Path) -> Mirror:
    (tmp_path / "run").mkdir(exist_ok=True)
    return Mirror(server, tmp_path / "run" / "checkpoint", scratch=tmp_path / "run" / "copied")


@dataclass
class Watched:
    """A checkpoint on the server, whose operations are reported as the agent in Spark does."""

    server: LocalRemote
    observer: Observer
    seen: list[CheckpointEvent]

    def create(self, place: str) -> None:
        """Begin a file, under its temporary name."""
        self._report("create", "before", place)
        put(self._temporary(place))
        self._report("create", "after", place)

    def rename(self, place: str, data: bytes = b"", *, attempt: str | None = None) -> None:
        """End it, under its name; `attempt` is what the JVM has in its environment."""
        self._report("rename", "before", place, attempt)
        self._temporary(place).unlink(missing_ok=True)
        put(self.server.path / place, data)
        self._report("rename", "after", place, attempt)

    def _report(self, op: str, when: str, place: str, attempt: str | None = None) -> None:
        path = f"{self.server.url}/{place}"
        self.say({"what": OPERATION, "attempt": attempt, "op": op, "when": when, "path": path})

    def say(self, event: Event) -> None:
        """Report it; returns once it is answered."""
        host, _, port = self.observer.reports_to.partition(":")
        with socket.create_connection((host, int(port)), timeout=PROCESS_S) as harness:
            harness.sendall(json.dumps({**event, "process": "driver", "waits": True}).encode() + b"\n")
            assert harness.recv(1) == b"\n"

    def _temporary(self, place: str) -> Path:
        path = self.server.path / place
        return path.with_name(f".{path.name}.some.tmp")


@pytest.fixture
def watched(server: LocalRemote, tmp_path: Path) -> Iterator[Watched]:
    seen: list[CheckpointEvent] = []
    copied = mirrored(server, tmp_path)
    with (
        closing(History(tmp_path / "history.jsonl")) as history,
        closing(Observer(tmp_path / "run", reads, history, mirror=copied)) as observer,
    ):
        observer.listen(seen.append)
        yield Watched(server, observer, seen)
        observer.healthy()


def told(seen: list[CheckpointEvent]) -> list[tuple[str | None, int]]:
    return [(event.point and str(event.point), event.batch) for event in seen]


def test_what_is_reported_is_told_and_is_here_by_then(watched: Watched, tmp_path: Path) -> None:
    here = tmp_path / "run" / "checkpoint"
    there: list[bool] = []
    watched.observer.listen(lambda event: there.append((here / "offsets" / str(event.batch)).is_file()))
    watched.rename("sources/0/0", b"v1\n{}")
    for batch in (0, 1):
        watched.rename(f"offsets/{batch}", PLAN % (batch + 5))
        watched.create(f"commits/{batch}")
        if batch == 0:
            watched.rename(f"commits/{batch}")
    assert told(watched.seen) == [
        (None, 0),
        ("batch-planned", 0),
        ("sink-committed", 0),
        ("batch-committed", 0),
        ("batch-planned", 1),
        ("sink-committed", 1),
    ]
    assert there == [False] + [True] * 5
    assert watched.observer.committed() == {0: 5}
    assert watched.observer.planned() == {0: 6}
    assert [query.checkpoint for query in watched.observer.queries()] == ["checkpoint"]
    assert watched.observer.reported(watched.seen[0].folder)


def test_a_task_is_of_the_query_whose_checkpoint_has_its_id(watched: Watched, tmp_path: Path) -> None:
    put(watched.server.path / "metadata", b'{"id":"an-id"}')
    watched.rename("offsets/0", PLAN % 5)
    task = {"stage": 1, "stage_attempt": 0, "partition": 0, "attempt_number": 0, "executor": "0"}
    watched.say({"what": "task-started", "attempt": "1", "query": "an-id", "batch": 0, **task})
    (found,) = [line.event for line in read(tmp_path / "history.jsonl") if isinstance(line.event, TaskStarted)]
    assert found.query == "checkpoint"


def test_what_a_dead_attempt_had_sent_is_that_attempts(watched: Watched, tmp_path: Path) -> None:
    watched.observer.attempt = 1
    watched.rename("offsets/0", PLAN % 5)
    watched.observer.attempt = 2
    watched.rename("offsets/1", PLAN % 9, attempt="1")
    watched.rename("offsets/2", PLAN % 11)
    planned = [line.event for line in read(tmp_path / "history.jsonl") if isinstance(line.event, BatchPlanned)]
    assert [(each.batch, each.attempt) for each in planned] == [(0, 1), (1, 1), (2, 2)]


def test_a_checkpoint_that_was_deleted_and_begun_anew_is_another_one(watched: Watched) -> None:
    for end in (5, 9):
        watched.rename("sources/0/0", b"v1\n{}")
        watched.rename("offsets/0", PLAN % end)
        assert watched.observer.planned() == {0: end}
        for place in ("offsets", "sources"):
            watched.server.delete(place)
    assert len(watched.observer.queries()) == 2


def states(observer: Observer) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The batches planned and committed of each checkpoint."""
    return [(state.offsets, state.commits) for state in observer.states()]


@pytest.mark.parametrize("below", ["", "one/"])
def test_of_a_checkpoint_that_was_deleted_nothing_is_left(watched: Watched, tmp_path: Path, below: str) -> None:
    for source in ("0", "1"):
        watched.rename(f"{below}sources/{source}/0", b"v1\n{}")
    watched.rename(f"{below}offsets/0", PLAN % 5)
    watched.rename(f"{below}commits/0")
    assert states(watched.observer) == [((0,), (0,))]
    watched.server.delete(f"{below}sources/1")
    watched.rename(f"{below}offsets/1", PLAN % 9)
    here = tmp_path / "run" / "checkpoint" / below
    assert [path.relative_to(here).as_posix() for path in here.glob("sources/*/*")] == ["sources/0/0"]
    for each in ("sources", "offsets", "commits"):
        watched.server.delete(f"{below}{each}")
    assert states(watched.observer) == [((), ())]
    assert not [path for path in here.rglob("*") if path.is_file()]


def test_a_commit_is_copied_with_its_plan_and_what_its_source_took(server: LocalRemote, tmp_path: Path) -> None:
    put(server.path / "offsets" / "0", PLAN % 5)
    copied = mirrored(server, tmp_path)

    def between(place: str) -> None:
        # Both appear after the reading of the commits has begun.
        if place == "offsets":
            server.before = lambda place: None
            put(server.path / "sources" / "0" / "0", b"v1\nfirst")
            put(server.path / "offsets" / "1", PLAN % 9)
            put(server.path / "commits" / "1")

    server.before = between
    put(server.path / "commits" / "0")
    (server.path / "sources").mkdir()
    copied.copy("")
    here = tmp_path / "run" / "checkpoint"
    assert not (here / "commits" / "1").exists()
    assert (here / "sources" / "0" / "0").read_bytes() == b"v1\nfirst"
    copied.refresh()
    assert (here / "commits" / "1").exists()


def test_several_queries_below_one_folder_and_their_state(server: LocalRemote, tmp_path: Path) -> None:
    for name in ("one", "two"):
        put(server.path / name / "offsets" / "0", PLAN % 5)
    put(server.path / "two" / "state" / "0" / "0" / "1.delta", b"x")
    copied, here = mirrored(server, tmp_path), tmp_path / "run" / "checkpoint"
    for name in ("one", "two"):
        copied.copy(name)
    assert sorted(p.relative_to(here).as_posix() for p in here.rglob("*") if p.is_file()) == [
        "one/offsets/0",
        "two/offsets/0",
    ]
    assert (here / "two" / "state").is_dir()
    assert not (here / "one" / "state").exists()


def test_the_listing_is_the_servers_and_a_silent_one_gives_none(watched: Watched) -> None:
    watched.rename("offsets/0", PLAN % 5)
    put(watched.server.path / "commits" / ".0.some.tmp")
    observer, folder = watched.observer, watched.seen[0].folder
    assert observer.listing(folder) == {"offsets": (0,), "commits": (), "begun": (0,)}
    watched.server.away.set()
    for method in (observer.listing, observer.settled, observer.states):
        with pytest.raises(StackError):
            method()
    # A restart goes on all the same, and so does the run.
    observer.catch_up()
    observer.healthy()


def test_an_empty_batch_that_only_the_server_has_is_an_empty_one(watched: Watched) -> None:
    watched.rename("sources/0/0", b'{"topic":{"0":0}}')
    watched.rename("offsets/0", PLAN % 5)
    folder = watched.seen[0].folder
    for batch, end in ((1, 5), (2, 9)):
        # Nobody has reported it yet: the copy is behind.
        put(watched.server.path / "offsets" / str(batch), PLAN % end)
        assert watched.observer.listing(folder)["offsets"][-1] == batch
        assert watched.observer.took_nothing(folder, batch) is (end == 5)


def test_a_listing_is_settled_once_nothing_is_on_its_way(server: LocalRemote) -> None:
    put(server.path / "offsets" / "0", PLAN % 5)
    hidden = server.path / "commits" / ".0.some.tmp"
    put(hidden)
    listings = 0

    def on_its_way(place: str) -> None:
        nonlocal listings
        listings += place == "commits"
        if listings == 2 and hidden.exists():
            hidden.rename(hidden.with_name("0"))

    server.before = on_its_way
    assert remote.settled(server, "") == {"offsets": (0,), "commits": (0,), "begun": ()}
    assert listings == 3


def test_a_file_that_cannot_be_read_is_named_and_holds_nobody_up(server: LocalRemote, tmp_path: Path) -> None:
    put(server.path / "one" / "offsets" / "0", PLAN % 5)
    put(server.path / "one" / "commits" / "0")
    server.unread.add("one/offsets/0")
    copied, here = mirrored(server, tmp_path), tmp_path / "run" / "checkpoint"

    def files() -> list[str]:
        return sorted(path.relative_to(here).as_posix() for path in here.rglob("*") if path.is_file())

    with pytest.raises(StackError, match=r"run/one/offsets/0, which is listed; it cannot be read: .*block is missing"):
        copied.copy("one")
    assert files() == ["one/commits/0"]
    server.unread.clear()
    copied.refresh()
    assert files() == ["one/commits/0", "one/offsets/0"]


# -- files on a server


def rows(folder: RemoteOpenFolder) -> int:
    with folder.reading() as found:
        return sum(map(len, found.parts))


def parquet(file: Path, count: int) -> int:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": list(range(count))}), file)
    return file.stat().st_size


def test_files_on_a_server_are_read_by_listing_and_by_manifest(server: LocalRemote, tmp_path: Path) -> None:
    server.scratch = tmp_path / "scratch"
    listed, by_manifest = (
        RemoteOpenFolder(server, "payments", Parquet(), each) for each in (Reader.LISTING, Reader.MANIFEST)
    )
    with pytest.raises(Missing):
        rows(listed)
    before = listed.mark()
    size = parquet(server.path / "payments" / "a.parquet", 3)
    parquet(server.path / "payments" / "b.parquet", 4)
    entry = {"path": f"{server.url}/payments/a.parquet", "size": size, "action": "add"}
    put(server.path / "payments" / "_spark_metadata" / "0", f"v1\n{json.dumps(entry)}".encode())
    assert rows(listed) == 7
    assert rows(by_manifest) == 3
    assert [column.name for column in listed.columns()] == ["id"]
    assert listed.mark() != before
    parquet(server.path / "payments" / "batch-3" / "c.parquet", 5)
    assert rows(RemoteOpenFolder(server, "payments", Parquet(), Reader.RECURSIVE)) == 12
    with pytest.raises(UsageError, match=r"batch-3/c\.parquet is in batch-3, which is no partition"):
        rows(listed)
    assert not list(server.scratch.iterdir())


def content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("at", ["listing", "reading"])
def test_a_file_that_is_renamed_while_its_folder_is_copied_is_in_the_copy(
    server: LocalRemote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """From a folder that is listed later to one that was listed before, or after it was listed."""
    put(server.path / "payments" / "kept", b"1")
    moving = server.path / "payments" / "sub" / "moved"
    put(moving, b"2")
    read, reads = server.read, list[str]()

    def move(place: str) -> None:
        if moving.exists() and place.startswith("payments/sub"):
            moving.rename(server.path / "payments" / "moved")

    def reading(place: str) -> bytes | None:
        reads.append(place)
        if at == "reading":
            move(place)
        return read(place)

    monkeypatch.setattr(server, "read", reading)
    server.before = move if at == "listing" else server.before
    mirrors.copied(server, "payments", tmp_path / "copy")
    assert content(tmp_path / "copy") == {"kept": b"1", "moved": b"2"}
    assert reads.count("payments/kept") == 1, "what has not changed is read once"


def test_a_copy_follows_what_is_written_anew_and_what_becomes_a_folder(server: LocalRemote, tmp_path: Path) -> None:
    for name in ("file", "folder/in", "gone/in"):
        put(server.path / "payments" / name, b"1")

    def change(place: str) -> None:
        if place == "payments" and (tmp_path / "copy" / "gone" / "in").exists():
            for name in ("gone", "file", "folder"):
                server.delete(f"payments/{name}")
            put(server.path / "payments" / "file" / "in", b"2")
            put(server.path / "payments" / "folder", b"3")

    server.before = change
    mirrors.copied(server, "payments", tmp_path / "copy")
    assert content(tmp_path / "copy") == {"file/in": b"2", "folder": b"3"}
    assert not (tmp_path / "copy" / "gone").exists()


def test_a_folder_that_never_stays_as_it_is_cannot_be_copied(
    server: LocalRemote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirrors, "COPIED_S", 0.1)
    put(server.path / "payments" / "kept", b"1")
    count = iter(range(10_000))
    server.before = lambda place: put(server.path / "payments" / "written", b"%d" % next(count))
    with pytest.raises(
        UsageError, match=r"asked to copy .*/payments; it changed .* for 0\.1 s, at last in written\. Who"
    ):
        mirrors.copied(server, "payments", tmp_path / "copy")


def test_what_a_server_has_lost_of_its_input_is_read_back_as_it_was_dropped(
    server: LocalRemote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = RemoteSource(Dropped(Path("/onceproof/run")), 1, remote=server)
    sender = source.sender()
    sender.send([sender.placed(Record(seq, b"k", b"v%d" % seq)) for seq in range(2)])
    read, lost = server.read, next(path.name for path in server.path.iterdir())

    def lose(place: str) -> bytes | None:
        if place == lost:
            raise Gone("no DataNode has a block of it")
        return read(place)

    monkeypatch.setattr(server, "read", lose)
    assert source.read_back(tmp_path / "source.parquet", within_s=10) == {0: 1, 1: 1}
    assert pq.read_table(tmp_path / "source.parquet")["value"].to_pylist() == [b"v0", b"v1"]
    monkeypatch.setattr(server, "read", lambda place: b"another")
    with pytest.raises(StackError, match="it was changed"):
        source.read_back(tmp_path / "source.parquet", within_s=10)


@pytest.mark.parametrize("back", [True, False])
def test_a_file_without_an_answer_is_looked_for_and_never_sent_again(
    server: LocalRemote, back: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.components.files.remote_sender.BACK_S", 0.3)
    source = RemoteSource(Dropped(Path("/onceproof/run")), 2, remote=server)
    sender = source.sender()
    write = server.write

    def unanswered(place: str, data: bytes) -> None:
        write(place, data)
        if not back:
            server.away.set()
        raise StackError("no answer")

    monkeypatch.setattr(server, "write", unanswered)
    answers = sender.send([sender.placed(Record(seq, b"k", b"v%d" % seq)) for seq in range(2)])
    assert {answer.state for answer in answers} == {State.ACKNOWLEDGED if back else State.UNKNOWN}
    server.away.clear()
    assert source.ends() == {0: 2}


@pytest.mark.parametrize(
    ("cause", "state"),
    [
        (TimeoutError("timed out"), State.UNKNOWN),
        (http.client.IncompleteRead(b""), State.UNKNOWN),
        (ConnectionResetError("reset"), State.FAILED),
        (None, State.FAILED),
    ],
)
def test_a_file_that_the_server_may_still_be_at_work_on_is_not_called_failed(
    server: LocalRemote, monkeypatch: pytest.MonkeyPatch, cause: Exception | None, state: State
) -> None:
    monkeypatch.setattr("harness.components.files.remote_sender.BACK_S", 0.3)
    source = RemoteSource(Dropped(Path("/onceproof/run")), 2, remote=server)
    sender = source.sender()

    def unanswered(place: str, data: bytes) -> None:
        raise StackError("asked the server") from cause

    write = server.write
    monkeypatch.setattr(server, "write", unanswered)
    answers = sender.send([sender.placed(Record(0, b"k", b"v"))])
    assert [answer.state for answer in answers] == [state]
    assert source.ends() == {}
    # What was asked for is done all the same, late.
    write(source.dropped.file(0).name, source.dropped.form.written([b"v"]))
    assert source.ends() == ({0: 1} if state is State.UNKNOWN else {})


def test_a_file_that_was_never_written_is_no_partition(server: LocalRemote, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.components.files.remote_sender.BACK_S", 0.3)
    source = RemoteSource(Dropped(Path("/onceproof/run")), 2, remote=server)
    sender = source.sender()
    server.away.set()
    answers = sender.send([sender.placed(Record(0, b"k", b"v")), sender.placed(Record(1, b"k", b"two\nlines"))])
    assert [answer.state for answer in answers] == [State.UNKNOWN, State.FAILED]
    server.away.clear()
    assert source.ends() == {}


# -- the key of a scenario

TEXT = """name: n
pipeline: {entry: pipelines/transactions/upsert.py, checkpoint: WHERE}
"""


def written(copied: Path, where: str) -> Path:
    copied.write_text(TEXT.replace("WHERE", where))
    return copied


def test_a_checkpoint_is_put_on_a_component_and_kept_when_written_out(copied: Path) -> None:
    scenario = load(written(copied, "hdfs"))
    assert parts(scenario)["hdfs"] == {"checkpoint": True}
    again = copied.with_name("again.yaml")
    again.write_text(dump(scenario))
    assert load(again).pipeline == scenario.pipeline


def test_a_component_that_keeps_no_checkpoints_is_refused(copied: Path) -> None:
    with pytest.raises(ScenarioError, match=r"2:\d+: pipeline.checkpoint must be one of azure, hdfs, minidfs, s3"):
        load(written(copied, "postgres"))


@pytest.mark.parametrize(
    ("more", "alone"),
    [
        ("", "s3"),
        ("input: {workload: transactions, source: s3}\n", ""),
        ("sink: {s3: payments, expected: select id from ledger, key: [id]}\n", ""),
    ],
)
def test_a_component_keeps_the_checkpoint_alone_unless_it_is_read_or_written(
    copied: Path, more: str, alone: str
) -> None:
    copied.write_text(TEXT.replace("WHERE", "s3") + more)
    assert only_checkpoint(load(copied)) == alone
