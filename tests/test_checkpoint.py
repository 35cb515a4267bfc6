"""What the harness reads from Spark's checkpoint, and how it sees Spark write one."""

from __future__ import annotations

import errno
import json
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inotify_simple import INotify

from harness.checkpoint import Progress, caught_up, count, listing, offsets_of, watermark_of
from harness.context import CheckpointEvent
from harness.history import History
from harness.run.progress.checkpoint_watch import CheckpointWatch, event_of
from harness.run.progress.observer import Observer
from harness.scenario import CrashPoint
from harness.snapshot import Batch
from harness.wait import until
from tests.provided import reader

OFFSETS = 'v1\n{{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{{}}}}\n{{"orders":{{"0":{0},"1":{1}}}}}\n'

ORDERS = reader("orders")
NOWHERE = Path("nowhere")


def log(checkpoint: Path, batch: int, *ends: int) -> None:
    """Write `offsets/batch` as Spark does: a temporary file, then a rename."""
    write(checkpoint / "offsets", batch, OFFSETS.format(*ends))


def write(folder: Path, batch: int, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{batch}.0f9c6f3e-1b2c-4d5e-8f00-000000000000.tmp"
    temporary.write_text(text)
    temporary.rename(folder / str(batch))


@given(st.dictionaries(st.integers(0, 99), st.integers(0, 2**62), min_size=1))
def test_offsets_of_a_topic_survive_the_file_format(ends: dict[int, int]) -> None:
    line = json.dumps({"orders": {str(p): o for p, o in ends.items()}})
    assert offsets_of(f'v1\n{{"batchWatermarkMs":0}}\n{line}', ORDERS, NOWHERE) == ends


@pytest.mark.parametrize("text", ["", "v1", "v1\n{}\n-", 'v1\n{"other":{"0":1}}', 'v1\n{"orders":{"0":1'])
def test_a_log_without_the_topic_has_no_offsets(text: str) -> None:
    assert offsets_of(text, ORDERS, NOWHERE) is None


def test_listing_counts_only_whole_files(tmp_path: Path) -> None:
    log(tmp_path, 0, 1, 1)
    log(tmp_path, 10, 2, 2)
    write(tmp_path / "commits", 0, "v1")
    (tmp_path / "commits" / ".10.aa-bb.tmp").touch()
    (tmp_path / "commits" / ".0.crc").touch()
    assert listing(tmp_path) == {"offsets": (0, 10), "commits": (0,), "begun": (10,)}
    assert listing(tmp_path / "nowhere") == {"offsets": (), "commits": (), "begun": ()}


def test_a_plan_that_is_being_written_is_listed_apart(tmp_path: Path) -> None:
    log(tmp_path, 0, 1, 1)
    for name in (".1.aa-bb.tmp", ".x.aa-bb.tmp", ".1.crc"):
        (tmp_path / "offsets" / name).touch()
    assert listing(tmp_path) == {"offsets": (0,), "commits": (), "begun": (), "planning": (1,)}


def test_done_is_the_newest_committed_batch_and_ranges_start_where_the_last_ended(tmp_path: Path) -> None:
    progress = Progress(tmp_path, ORDERS)
    assert (progress.planned(), progress.done()) == ({}, {})
    for batch, ends in ((0, (5, 3)), (1, (9, 3)), (2, (12, 8))):
        log(tmp_path, batch, *ends)
        progress.note_offsets(batch)
    progress.note_offsets(3)  # not there: nothing to note
    progress.committed = {0, 1}
    write(tmp_path / "sources" / "0", 0, 'v1\n{"orders":{"0":2,"1":0}}')
    assert progress.planned() == {0: 12, 1: 8}
    assert progress.done() == {0: 9, 1: 3}
    assert progress.batches() == (
        Batch(batch=0, ranges={0: (2, 5), 1: (0, 3)}, committed=True, watermark_ms=0),
        Batch(batch=1, ranges={0: (5, 9), 1: (3, 3)}, committed=True, watermark_ms=0),
        Batch(batch=2, ranges={0: (9, 12), 1: (3, 8)}, committed=False, watermark_ms=0),
    )


@pytest.mark.parametrize(
    ("line", "mark"),
    [('{"batchWatermarkMs":17}', 17), ("{}", None), ("[]", None), ("{", None), ('{"batchWatermarkMs":true}', None)],
)
def test_the_watermark_of_a_batch_is_read_or_unknown(line: str, mark: int | None) -> None:
    assert watermark_of(f'v1\n{line}\n{{"orders":{{"0":1}}}}') == mark
    assert watermark_of("v1") is None


def test_a_query_that_reads_something_else_has_no_word_in_how_far_ours_is(tmp_path: Path) -> None:
    ours, other = tmp_path / "ours", tmp_path / "other"
    observer = Observer(tmp_path, ORDERS, History(None))
    seen: list[CheckpointEvent] = []
    try:
        for folder in (other, ours):
            for name in ("offsets", "commits"):
                (folder / name).mkdir(parents=True)
        write(other / "offsets", 7, 'v1\n{"batchWatermarkMs":0}\n{"logOffset":3}')
        until("the other query", observer.started, within_s=60.0)
        assert not observer.has_progress() and not observer.all()
        with observer.armed(seen.append):
            write(other / "commits", 7, "v1")
            write(other / "offsets", 8, 'v1\n{"batchWatermarkMs":0}\n{"logOffset":4}')
            log(ours, 0, 5, 3)
            write(ours / "commits", 0, "v1")
            until("our batch", lambda: observer.committed() == {0: 5, 1: 3}, within_s=60.0)
        assert observer.has_progress()
        assert {event.folder for event in seen} == {ours}, "no trigger is met by another query"
        assert (observer.newest_batch(), observer.folder()) == (0, ours)
        # It takes our topic too, later: then it counts.
        log(other, 9, 2, 0)
        until("the other's batch", lambda: observer.committed() == {0: 0, 1: 0}, within_s=60.0)
    finally:
        observer.close()


def test_behind_needs_every_partition() -> None:
    assert caught_up({0: 5, 1: 5}, {0: 5, 1: 4})
    assert not caught_up({0: 5}, {0: 5, 1: 1})
    assert caught_up({}, {0: 0})
    assert count({0: 5, 1: 4}) == 9


@pytest.mark.parametrize(
    ("path", "point"),
    [
        ("c/offsets/3", CrashPoint.BATCH_PLANNED),
        ("c/commits/.3.0a-1b.tmp", CrashPoint.SINK_COMMITTED),
        ("c/commits/3", CrashPoint.BATCH_COMMITTED),
    ],
)
def test_sight_names_the_window(path: str, point: CrashPoint) -> None:
    assert event_of(Path(path)) == CheckpointEvent(point, 3, Path("c"))


@pytest.mark.parametrize("source", ["0", "1", "12", "orders"])
def test_sight_names_the_source_that_begins(source: str) -> None:
    assert event_of(Path(f"c/sources/{source}/0")) == CheckpointEvent(None, 0, Path("c"), source)


@pytest.mark.parametrize(
    "path", ["c/offsets/.3.0a-1b.tmp", "c/commits/.3.crc", "c/commits/.3.0a.tmp.crc", "c/state/0/3", "c/sources/1/1"]
)
def test_sight_is_blind_to_the_rest(path: str) -> None:
    assert event_of(Path(path)) is None


@pytest.mark.parametrize("polling", [False, True])
def test_watch_sees_every_window_of_a_checkpoint_made_later_and_deeper(tmp_path: Path, polling: bool) -> None:
    seen: list[CheckpointEvent] = []
    watch = CheckpointWatch(tmp_path, seen.append, polling=polling)
    try:
        checkpoint = tmp_path / "tmp" / "temporary-1"
        write(checkpoint / "sources" / "0", 0, 'v1\n{"orders":{"0":0,"1":0}}')
        for batch in range(5):
            log(checkpoint, batch, batch, batch)
            write(checkpoint / "commits", batch, "v1")
        last = CheckpointEvent(CrashPoint.BATCH_COMMITTED, 4, checkpoint)
        until("the last commit", lambda: last in seen, within_s=60.0)
    finally:
        watch.close()
    assert watch.failure is None
    order = [(s.batch, s.point) for s in seen if s.point in (CrashPoint.BATCH_PLANNED, CrashPoint.BATCH_COMMITTED)]
    if not polling:  # a poll may see both folders at once
        both = (CrashPoint.BATCH_PLANNED, CrashPoint.BATCH_COMMITTED)
        assert sorted(order) == sorted((batch, point) for batch in range(5) for point in both)
    assert {batch for batch, _ in order} == set(range(5))


@pytest.mark.parametrize("polling", [False, True])
def test_a_checkpoint_deleted_and_begun_again_in_the_same_place_starts_from_nothing(
    tmp_path: Path, polling: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.run.progress.observer.CheckpointWatch", partial(CheckpointWatch, polling=polling))
    (tmp_path / "root").mkdir()
    checkpoint = tmp_path / "root" / "checkpoint"
    history = History(tmp_path / "history.jsonl")
    observer = Observer(tmp_path / "root", ORDERS, history)

    def commit(batch: int, end: int) -> None:
        log(checkpoint, batch, end, end)
        write(checkpoint / "commits", batch, "v1")

    try:
        write(checkpoint / "sources" / "0", 0, 'v1\n{"orders":{"0":0,"1":0}}')
        for batch in range(3):
            commit(batch, 10 * (batch + 1))
        until("three batches", lambda: observer.committed() == {0: 30, 1: 30}, within_s=60.0)
        shutil.rmtree(checkpoint)
        until("the watch to read", lambda: not observer._watch._seen, within_s=60.0)
        write(checkpoint / "sources" / "0", 0, 'v1\n{"orders":{"0":0,"1":0}}')
        commit(0, 5)
        until("the first batch again", lambda: observer.committed() == {0: 5, 1: 5}, within_s=60.0)
        commit(1, 30)
        until("the second", lambda: observer.committed() == {0: 30, 1: 30}, within_s=60.0)
    finally:
        observer.close()
        history.close()


@dataclass
class Queries:
    """A pipeline of several queries, each with a checkpoint of its own."""

    observer: Observer
    root: Path

    def commit(self, name: str, batch: int, end: int) -> None:
        """A query plans and commits a batch; returns when it was seen."""
        folder = self.root / name
        for part in ("offsets", "commits"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        log(folder, batch, end, end)
        write(folder / "commits", batch, "v1")
        known = self.observer.all
        until(
            f"batch {batch} of {name}",
            lambda: any(
                p.folder == folder and batch in p.committed and p.last_attempt == self.observer.attempt for p in known()
            ),
            within_s=60.0,
        )


@pytest.fixture
def queries(tmp_path: Path) -> Iterator[Queries]:
    made = Queries(Observer(tmp_path, ORDERS, History(None)), tmp_path)
    yield made
    made.observer.close()


def test_a_life_is_whole_once_each_query_of_the_one_before_is_at_work(queries: Queries) -> None:
    observer = queries.observer
    observer.attempt = 1
    queries.commit("kept", 0, 5)
    assert observer.all_queries_active()
    queries.commit("temporary-1", 0, 5)
    observer.attempt = 2
    queries.commit("kept", 1, 9)
    assert observer.has_progress() and not observer.all_queries_active()
    assert observer.committed() == {0: 5, 1: 5}, "the other query may still come to its old checkpoint"
    queries.commit("temporary-2", 0, 9)
    assert observer.all_queries_active()
    assert observer.committed() == {0: 9, 1: 9}, "nobody will go on with the dead attempt's temporary one"
    observer.attempt = 3
    queries.commit("kept", 2, 12)
    assert not observer.all_queries_active() and observer.committed() == {0: 5, 1: 5}


def test_a_batch_without_a_record_is_known(queries: Queries) -> None:
    for batch, end in enumerate((4, 4, 7)):
        queries.commit("c", batch, end)
    took_nothing = queries.observer.took_nothing
    assert [took_nothing(queries.root / "c", batch) for batch in range(4)] == [False, True, False, False]


def test_a_first_batch_is_compared_with_where_its_sources_began(tmp_path: Path) -> None:
    progress = Progress(tmp_path, ORDERS)
    log(tmp_path, 0, 4, 2)
    assert not progress.took_nothing(0), "where it began is not known"
    write(tmp_path / "sources" / "0", 0, '\0v1\n{"orders":{"0":4,"1":2}}')
    assert progress.took_nothing(0)
    log(tmp_path, 0, 4, 3)
    assert not progress.took_nothing(0)


def test_a_predecessor_that_spark_has_purged_is_remembered(tmp_path: Path) -> None:
    progress = Progress(tmp_path, ORDERS)
    for batch, ends in enumerate(((4, 2), (4, 2), (4, 3))):
        log(tmp_path, batch, *ends)
        progress.note_offsets(batch)
        if batch:
            (tmp_path / "offsets" / str(batch - 1)).unlink()
    assert [progress.took_nothing(batch) for batch in (1, 2)] == [True, False]


def test_a_batch_that_is_planned_anew_is_looked_at_anew(tmp_path: Path) -> None:
    progress = Progress(tmp_path, ORDERS)
    for batch in (0, 1):
        log(tmp_path, batch, 4, 4)
        progress.note_offsets(batch)
    assert progress.took_nothing(1)
    log(tmp_path, 1, 5, 4)
    assert not progress.took_nothing(1)


def test_the_batch_of_a_query_that_reads_something_else_is_empty_if_no_source_went_on(tmp_path: Path) -> None:
    progress = Progress(tmp_path, ORDERS)
    write(tmp_path / "sources" / "0", 0, 'v1\n{"hop":{"0":0}}')
    for batch, end in enumerate((0, 3, 3)):
        write(tmp_path / "offsets", batch, f'v1\n{{"batchWatermarkMs":{batch}}}\n{{"hop":{{"0":{end}}}}}')
        progress.note_offsets(batch)
    assert progress.elsewhere
    assert [progress.took_nothing(batch) for batch in range(3)] == [True, False, True]
    assert [batch.ranges for batch in progress.batches()] == [{}, {}, {}]


BOTH = 'v1\n{{"batchWatermarkMs":0}}\n{{"orders":{{"0":{0},"1":{1}}}}}\n{{"orders":{{"0":{2},"1":{3}}}}}'


def twice(checkpoint: Path, batch: int, *ends: int) -> None:
    """A batch of a query that reads the topic by two sources."""
    write(checkpoint / "offsets", batch, BOTH.format(*ends))


@given(st.lists(st.dictionaries(st.integers(0, 5), st.integers(0, 99), min_size=1), min_size=1, max_size=4))
def test_several_sources_are_as_far_as_the_slowest_that_reads_the_partition(sources: list[dict[int, int]]) -> None:
    lines = [json.dumps({"orders": {str(p): o for p, o in ends.items()}}) for ends in sources]
    text = "\n".join(["v1", '{"batchWatermarkMs":0}', *lines, '{"other":{"0":0}}', "-"])
    partitions = {p for ends in sources for p in ends}
    assert offsets_of(text, ORDERS, NOWHERE) == {p: min(ends[p] for ends in sources if p in ends) for p in partitions}


def test_sources_that_the_program_names_have_their_lines_and_logs_by_name(tmp_path: Path) -> None:
    progress = Progress(tmp_path, lambda line, log: ORDERS(line, log) if log.name == "mine" else None)
    write(tmp_path / "sources" / "mine", 0, 'v1\n{"orders":{"0":1}}')
    for batch, end in enumerate((1, 3)):
        lines = ["v2", '{"batchWatermarkMs":7}', "other:-", '10:{"a":1}', f'mine:{{"orders":{{"0":{end}}}}}']
        write(tmp_path / "offsets", batch, "\n".join(lines))
        progress.note_offsets(batch)
    assert progress.lines[1] == {"10": '{"a":1}', "mine": '{"orders":{"0":3}}', "other": "-"}
    assert progress.watermarks == {0: 7, 1: 7}
    assert [progress.took_nothing(batch) for batch in range(2)] == [True, False]
    assert [batch.ranges for batch in progress.batches()] == [{0: (1, 1)}, {0: (1, 3)}]


def test_two_sources_of_one_query_are_caught_up_by_the_slower(tmp_path: Path) -> None:
    progress = Progress(tmp_path, ORDERS)
    write(tmp_path / "sources" / "0", 0, 'v1\n{"orders":{"0":1,"1":0}}')
    write(tmp_path / "sources" / "1", 0, 'v1\n{"orders":{"0":3,"1":0}}')
    write(tmp_path / "sources" / "2", 0, 'v1\n{"other":{"0":0}}')
    for batch, ends in enumerate(((1, 0, 3, 0), (1, 0, 9, 4), (9, 4, 9, 4))):
        twice(tmp_path, batch, *ends)
        progress.note_offsets(batch)
        progress.committed.add(batch)
    assert [progress.took_nothing(batch) for batch in range(3)] == [True, False, False]
    assert progress.done() == {0: 9, 1: 4}
    assert [batch.ranges for batch in progress.batches()] == [
        {0: (1, 1), 1: (0, 0)},
        {0: (1, 1), 1: (0, 0)},
        {0: (1, 9), 1: (0, 4)},
    ]


def test_a_state_says_how_far_the_fastest_of_several_sources_is(tmp_path: Path) -> None:
    progress = Progress(tmp_path, ORDERS)
    write(tmp_path / "offsets", 0, 'v1\n{}\n{"orders":{"0":7}}')
    assert (progress.state("c").planned, progress.state("c").planned_most) == ({0: 7}, {})
    twice(tmp_path, 1, 9, 4, 12, 3)
    write(tmp_path / "commits", 0, "")
    write(tmp_path / "commits", 1, "")
    twice(tmp_path, 2, 20, 4, 12, 3)
    state = progress.state("c")
    assert (state.committed, state.committed_most) == ({0: 9, 1: 3}, {0: 12, 1: 4})
    assert (state.planned, state.planned_most) == ({0: 12, 1: 3}, {0: 20, 1: 4})


def test_two_sources_of_one_checkpoint_are_no_second_checkpoint_and_a_second_one_is(queries: Queries) -> None:
    observer, folder = queries.observer, queries.root / "c"

    def begin() -> None:
        for source in ("1", "0"):
            write(folder / "sources" / source, 0, 'v1\n{"orders":{"0":0,"1":0}}')

    observer.attempt = 1
    begin()
    queries.commit("c", 0, 5)
    assert len(observer.queries()) == 1
    shutil.rmtree(folder)
    until("the watch to read", lambda: not observer._watch._seen, within_s=60.0)
    observer.attempt = 2
    begin()
    until("the second", lambda: len(observer.queries()) == 2, within_s=60.0)
    queries.commit("c", 0, 9)
    queries.commit("c", 1, 12)
    first, second = observer.queries()
    assert (first.checkpoint, second.checkpoint) == ("c", "c")
    assert (first.first, second.first) == ({1: 0}, {2: 0})
    assert [b.ranges[0] for b in first.batches] == [(0, 5)]
    assert [b.ranges[0] for b in second.batches] == [(0, 9), (9, 12)]
    gone, there = observer.states()
    assert (gone.offsets, gone.planned) == ((), {})
    assert (there.offsets, there.commits, there.planned) == ((0, 1), (0, 1), {0: 12, 1: 12})


def test_the_books_say_which_attempts_worked_on_which_batch(queries: Queries) -> None:
    observer = queries.observer
    observer.attempt = 1
    queries.commit("a", 0, 5)
    queries.commit("b", 0, 7)
    log(queries.root / "a", 1, 9, 9)
    until("the plan", lambda: observer.newest_batch() == 1, within_s=60.0)
    observer.attempt = 2
    write(queries.root / "a" / "commits", 1, "v1")
    until("the commit", lambda: observer.touched(2), within_s=60.0)
    queries.commit("b", 1, 9)
    a, b = observer.queries()
    assert [(batch.batch, batch.attempts, batch.committed) for batch in a.batches] == [
        (0, (1,), True),
        (1, (1, 2), True),
    ]
    assert [(batch.batch, batch.attempts) for batch in b.batches] == [(0, (1,)), (1, (2,))]
    assert (a.first, b.first) == ({1: 0, 2: 1}, {1: 0, 2: 1})


def test_a_watch_that_the_kernel_refuses_is_no_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: INotify, path: Path, mask: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(INotify, "add_watch", full)
    observer = Observer(tmp_path, ORDERS, History(None))
    try:
        until("the watch to fail", lambda: observer._watch.failure is not None, within_s=60.0)
        with pytest.raises(Exception, match="max_user_watches"):
            observer.healthy()
    finally:
        observer.close()


def test_observer_tells_the_armed_hook_first_and_a_broken_listener_is_no_silence(tmp_path: Path) -> None:
    history = History(tmp_path / "history.jsonl")
    root = tmp_path / "root"
    root.mkdir()
    observer = Observer(root, ORDERS, history)
    booked = threading.Event()
    known_at_hook: list[int] = []

    def hook(seen: CheckpointEvent) -> None:
        known_at_hook.append(observer.newest_batch())
        booked.set()

    with observer.armed(hook):
        log(root / "checkpoint", 0, 4, 4)
        assert booked.wait(60.0)
    assert known_at_hook == [-1]
    until("the books", lambda: observer.planned() == {0: 4, 1: 4}, within_s=60.0)
    observer.healthy()

    def broken(seen: CheckpointEvent) -> None:
        raise RuntimeError("boom")

    with observer.armed(broken):
        log(root / "checkpoint", 1, 5, 5)
        until("the watch to fail", lambda: observer._watch.failure is not None, within_s=60.0)
    with pytest.raises(Exception, match="the watch on the checkpoint died"):
        observer.healthy()
    observer.close()
    history.close()


@pytest.mark.parametrize("polling", [False, True])
def test_what_a_dead_attempt_wrote_is_told_before_the_next_one_begins(tmp_path: Path, polling: bool) -> None:
    """However long the one who is told takes for each event."""
    told, go = list[int](), threading.Event()

    def slow(seen: CheckpointEvent) -> None:
        go.wait(20.0)
        told.append(seen.batch)

    watch = CheckpointWatch(tmp_path, slow, polling=polling)
    try:
        (tmp_path / "commits").mkdir()
        for batch in range(20):
            (tmp_path / "commits" / str(batch)).touch()
        assert not watch.reported_all(within_s=0.0)
        go.set()
        assert watch.reported_all(within_s=20.0)
        assert sorted(told) == list(range(20))
        assert watch.reported_all(within_s=20.0)
    finally:
        watch.close()
