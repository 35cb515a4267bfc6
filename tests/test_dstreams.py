"""Programs of Spark Streaming (DStreams): what their files say of each batch, and what an injection exposes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from harness.checkers.offset_ranges import OffsetRange
from harness.dstreams.batch_times import Stream
from harness.dstreams.java_stream import NoJavaStreamError
from harness.dstreams.written import Allocated, Block, events, of_checkpoint, written
from harness.errors import HarnessError, ScenarioError
from harness.history import History
from harness.judge.exposure import PLANNED, RECEIVED, exposed
from harness.judge.progress_at_injection import QueryProgress, query_progress
from harness.load import load
from harness.run.progress.batch_times import BatchTimes
from harness.scenario import Evidence, Harm
from harness.scenario.impact import Impact
from harness.snapshot import Batch, Gone, Progressed, Query, QueryState
from harness.sources.base import OpenSource
from harness.wait import until
from tests.folders import INJECTED, PER_RECORD
from tests.java_objects import Java, added, allocated, checkpoint, checkpoint_of, graph, pair, record, time
from tests.java_objects import stream as stream_of
from tests.scales import Make, batch, benches, injected, injection, progress

SENT = 100


def program(folder: Path, *records: bytes, sent: int = SENT) -> Stream:
    log = folder / "receivedBlockMetadata"
    log.mkdir(exist_ok=True)
    (log / "log-1-60001").write_bytes(b"".join(records))
    return Stream(folder, connected=lambda: [(0, 0, sent)])


def seen(stream: Stream, data: bytes, attempt: int = 1) -> Stream:
    stream.read(attempt)
    stream.note(of_checkpoint(data), attempt)
    return stream


def test_a_log_of_blocks_is_read_record_by_record_and_one_that_is_not_whole_is_left() -> None:
    whole = record(added(800, 3), added(900, 4, kept=False)) + record(allocated(1000, 800, 900))
    found, taken = events(whole + record(added(1100, 2))[:-1])
    assert taken == len(whole)
    assert found == [Block(0, 800, 3, True), Block(0, 900, 4, False), Allocated(1000, ((0, 900), (0, 800)))]
    assert events(record(added(800, 3, first=7)))[0] == [Block(0, 800, 3, True, 7)]
    with pytest.raises(NoJavaStreamError, match="no event"):
        events(record(b"\xac\xed\x00\x05\x70"))


def test_a_checkpoint_says_which_batches_are_pending_and_which_files_they_took() -> None:
    found = of_checkpoint(checkpoint(3000, 2000, 3000, files={3000: ["file:/in/a"]}))
    assert (found.time_ms, found.pending_ms, found.files) == (3000, (2000, 3000), {3000: ("file:/in/a",)})
    assert [found.number(time) for time in (1000, 3000)] == [0, 2]


NAMED = pair(time(1000), ["file:/in/a"])
WRITES_ITSELF = b"\xac\xed\x00\x05\x73\x72\x00\x01A" + bytes(8) + b"\x03\x00\x00\x78\x70"
"""A stream that breaks off within an object, before what its class has added."""
NO_CHECKPOINTS = {
    "empty": b"",
    "another codec": b"ZSTD and more",
    "cut": checkpoint(1000)[:60],
    "null": b"\xac\xed\x00\x05\x70",
    "cut in an object": b"\xac\xed\x00\x05\x73",
    "cut after the codec's name": b"LZ4Block",
    "cut in the codec's header": checkpoint(1000)[:15],
    "a block of a negative length": WRITES_ITSELF + b"\x7a\xff\xff\xff\xfb",
    "a reference before the first": b"\xac\xed\x00\x05\x71\x00\x00\x00\x00",
    "no graph": checkpoint_of(graph=None),
    "a graph of another form": checkpoint_of(graph="graph"),
    "a time of another form": checkpoint_of(checkpointTime=Java("Time", {"millis": "1000"})),
    "no pending times": checkpoint_of(pendingTimes=None),
    "pending times of another form": checkpoint_of(pendingTimes=["1000"]),
    "settings of another form": checkpoint_of(sparkConfPairs=[None]),
    "batches of no length": checkpoint_of(graph=graph([], interval=0)),
    "no map of files": checkpoint_of(graph=graph(None)),
    "files in entries of another form": checkpoint_of(graph=graph([Java("scala.Tuple3", {"_1": "file:/in/a"})])),
    "files in entries of Scala 2.12": checkpoint_of(graph=graph(Java("HashMap", {}, [time(1000), ["file:/in/a"]]))),
    "some files in such entries": checkpoint_of(graph=graph([NAMED, pair(time(2000), "file:/in/b")])),
    "files of another time": checkpoint_of(graph=graph([pair("1000", ["file:/in/a"])])),
}


@pytest.mark.parametrize("data", NO_CHECKPOINTS.values(), ids=NO_CHECKPOINTS)
def test_what_is_no_checkpoint_is_refused_and_a_restart_passes_over_it(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(NoJavaStreamError):
        of_checkpoint(data)
    (tmp_path / "checkpoint-3000").write_bytes(data)
    (tmp_path / "checkpoint-2000").write_bytes(checkpoint(2000))
    stream = Stream(tmp_path)
    stream.note_launch(2)
    assert stream.redone == {2: 1}


def test_files_are_read_from_a_map_as_scala_writes_one() -> None:
    one = Java("scala.collection.generic.DefaultSerializationProxy", {}, [NAMED])
    assert of_checkpoint(checkpoint_of(graph=graph(one))).files == {1000: ("file:/in/a",)}
    assert of_checkpoint(checkpoint_of(graph=graph([]))).files == {}


@pytest.mark.parametrize(
    "event",
    [
        Java("BatchAllocationEvent", {"time": None, "allocatedBlocks": []}),
        Java("BlockAdditionEvent", {"receivedBlockInfo": "block"}),
    ],
)
def test_a_log_of_blocks_of_another_form_is_refused(event: Java) -> None:
    with pytest.raises(NoJavaStreamError, match="log of received blocks"):
        events(record(stream_of(event)))


def test_a_restart_takes_the_newest_checkpoint_and_a_backup_after_it(tmp_path: Path) -> None:
    for name in ("checkpoint-900", "checkpoint-1000.bk", "checkpoint-1000", "temp"):
        (tmp_path / name).touch()
    assert [path.name for path in written(tmp_path)] == ["checkpoint-1000", "checkpoint-1000.bk", "checkpoint-900"]


def test_a_batch_is_settled_only_once_no_restart_would_do_it_again(tmp_path: Path) -> None:
    blocks = [record(added(800, 3), allocated(1000, 800)), record(added(1800, 4), allocated(2000, 1800))]
    stream = seen(program(tmp_path, *blocks), checkpoint(2000, 1000, 2000))
    assert (stream.listed()["commits"], stream.done(), stream.planned()) == ((), {}, {0: 7})
    seen(stream, checkpoint(2000, 2000))
    assert (stream.listed()["commits"], stream.done()) == ((0,), {0: 3})
    seen(stream, checkpoint(2000))
    assert (stream.listed()["commits"], stream.done()) == ((0, 1), {0: 3}), "a restart begins with batch 1 again"
    (tmp_path / "checkpoint-2000").write_bytes(checkpoint(2000))
    stream.note_launch(2)
    assert stream.redone == {2: 1}
    seen(stream, checkpoint(3000, 3000), attempt=2)
    assert (stream.done(), stream.query("c").first) == ({0: 7}, {1: 0, 2: 1})
    assert [batch.attempts for batch in stream.batches()] == [(1,), (1, 2), (2,)]


def test_a_checkpoint_of_an_earlier_time_than_its_name_takes_back_what_was_settled(tmp_path: Path) -> None:
    stream = seen(program(tmp_path, record(added(800, 3), allocated(1000, 800))), checkpoint(2000, 2000))
    assert stream.done() == {0: 3}
    assert seen(stream, checkpoint(1000, 2000)).done() == {}


def test_what_a_receiver_had_not_stored_is_gone(tmp_path: Path) -> None:
    first = [record(added(800, 3), allocated(1000, 800))]
    stream = seen(program(tmp_path, *first), checkpoint(1000, 1000))
    stream._received.connected = lambda: [(0, 0, 10), (5000, 10, SENT)]  # type: ignore[union-attr]
    (tmp_path / "checkpoint-1000").write_bytes(checkpoint(1000, 1000))
    stream.note_launch(2)
    later = [*first, record(added(5800, 5), allocated(6000, 5800))]
    (tmp_path / "receivedBlockMetadata" / "log-1-60001").write_bytes(b"".join(later))
    query = seen(stream, checkpoint(6000, 6000), attempt=2).query("c")
    assert query.gone == (Gone(attempt=1, partition=0, start=3, end=10),)
    assert query.first == {1: 0, 2: 0}
    assert query.batches[-1].ranges == {0: (10, 15)}


def test_what_a_receiver_held_in_memory_is_in_no_batch_of_the_next_attempt(tmp_path: Path) -> None:
    first = [record(added(800, 3, kept=False), allocated(1000, 800), added(1100, 4, kept=False))]
    stream = seen(program(tmp_path, *first), checkpoint(1000))
    stream._received.connected = lambda: [(0, 0, 10), (5000, 10, SENT)]  # type: ignore[union-attr]
    (tmp_path / "checkpoint-1000").write_bytes(checkpoint(1000))
    stream.note_launch(2)
    later = [*first, record(allocated(2000, 1100), added(5800, 5, kept=False), allocated(6000, 5800))]
    (tmp_path / "receivedBlockMetadata" / "log-1-60001").write_bytes(b"".join(later))
    query = seen(stream, checkpoint(6000, 6000), attempt=2).query("c")
    assert [batch.ranges for batch in query.batches] == [{0: (0, 3)}, {0: (3, 3)}, {0: (10, 15)}]
    assert query.first == {1: 0, 2: 1}, "the batch that is done again is empty: nothing is begun with it"


def test_a_block_is_of_no_connection_from_before_its_attempt_though_it_is_named_by_an_earlier_time(
    tmp_path: Path,
) -> None:
    """It was due to be cut at 1000 and at 6000; its reader connected at 1003 and at 6003, and it was cut then."""
    first = [record(added(800, 3), allocated(2000, 800))]
    stream = Stream(tmp_path, connected=lambda: [(1003.0, 0, 10), (6003.0, 10, SENT)], launched={1: 500.0, 2: 5500.0})
    program(tmp_path, *first)
    seen(stream, checkpoint(2000, 2000, zero=1000))
    program(tmp_path, *first, record(added(5800, 5), added(6000, 2), allocated(7000, 5800, 6000)))
    query = seen(stream, checkpoint(7000, 7000, zero=1000), attempt=2).query("c")
    assert [batch.ranges for batch in query.batches] == [{0: (0, 3)}, {0: (10, 17)}]
    assert query.gone == (Gone(attempt=1, partition=0, start=3, end=10),)


def test_what_was_lost_at_the_end_of_the_input_is_passed_by_empty_batches(tmp_path: Path) -> None:
    first = [record(added(800, 3), allocated(1000, 800))]
    stream = seen(program(tmp_path, *first), checkpoint(1000, 1000))
    stream._received.connected = lambda: [(0, 0, 10), (5500, 10, 10)]  # type: ignore[union-attr]
    program(tmp_path, *first, record(allocated(6000)), record(allocated(7000)))
    seen(stream, checkpoint(7000, 7000), attempt=2)
    assert (stream.done(), stream.query("c").gone) == ({0: 3}, ()), "its receiver had connected within the batch"
    program(tmp_path, *first, *map(record, [allocated(6000), allocated(7000), allocated(8000)]))
    seen(stream, checkpoint(8000, 8000), attempt=2)
    query, state = stream.query("c"), stream.state("c")
    assert (stream.done(), state.planned, state.committed) == ({0: 10}, {0: 10}, {0: 10})
    assert query.gone == (Gone(attempt=1, partition=0, start=3, end=10),)
    assert [batch.ranges for batch in query.batches] == [{0: (0, 3)}, *([{0: (3, 3)}] * 3)]


def test_what_several_attempts_lost_in_a_row_is_each_ones_own(tmp_path: Path) -> None:
    connections = [(0.0, 0, 10), (5500.0, 10, 15), (8500.0, 15, SENT)]
    first = [record(added(800, 3), allocated(1000, 800))]
    stream = Stream(tmp_path, connected=lambda: connections, launched={2: 5000.0, 3: 8000.0})
    program(tmp_path, *first)
    seen(stream, checkpoint(1000, 1000))
    program(tmp_path, *first, record(added(8800, 5), allocated(9000, 8800)))
    query = seen(stream, checkpoint(9000, 9000), attempt=3).query("c")
    lost = [(each.attempt, each.start, each.end) for each in query.gone]
    assert lost == [(1, 3, 10), (2, 10, 15)]


def test_what_was_lost_between_what_several_attempts_had_stored_is_each_ones_own(tmp_path: Path) -> None:
    connections = [(500.0, 0, 10), (5000.0, 10, 20), (9000.0, 20, 30)]
    stream = Stream(tmp_path, connected=lambda: connections, launched={1: 0.0, 2: 4500.0, 3: 8500.0})
    blocks = [
        record(added(at - 200, count), allocated(at, at - 200)) for at, count in ((1000, 3), (6000, 4), (10000, 10))
    ]
    for attempt, at in enumerate((1000, 6000, 10000), 1):
        program(tmp_path, *blocks[:attempt])
        seen(stream, checkpoint(at, at), attempt)
    lost = [(each.attempt, each.start, each.end) for each in stream.query("c").gone]
    assert lost == [(1, 3, 10), (2, 14, 20)]


def test_a_block_that_a_jvm_logs_after_its_program_s_death_is_of_the_dead_attempt(tmp_path: Path) -> None:
    stream = seen(program(tmp_path, record(added(800, 3), allocated(1000, 800))), checkpoint(1000))
    stream._received.connected = lambda: [(100.0, 0, 10), (9000.0, 10, SENT)]  # type: ignore[union-attr]
    stream._launched = {1: 50.0, 2: 2000.0}
    (tmp_path / "checkpoint-1000").write_bytes(checkpoint(1000))
    stream.note_launch(2)
    with (tmp_path / "receivedBlockMetadata" / "log-1-60001").open("ab") as file:
        file.write(record(added(1700, 2, kept=False)))
    stream.read(2)
    assert {each.block.number: each.attempt for each in stream._received.blocks.values()} == {800: 1, 1700: 1}  # type: ignore[union-attr]
    with (tmp_path / "receivedBlockMetadata" / "log-1-60001").open("ab") as file:
        file.write(record(added(9500, 5), allocated(10_000, 9500)))
    query = seen(stream, checkpoint(10_000, 10_000), attempt=2).query("c")
    assert [batch.ranges for batch in query.batches if batch.attempts == (2,)][-1] == {0: (10, 15)}


def test_a_receiver_that_stored_more_than_was_sent_is_no_receiver_of_ours(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="has stored 3 records of the 2"):
        seen(program(tmp_path, record(added(800, 3)), sent=2), checkpoint(1000))
    with pytest.raises(HarnessError, match="several receivers"):
        seen(program(tmp_path, record(added(800, 3), added(810, 3, stream_id=1))), checkpoint(1000))


def numbered(folder: Path, *records: bytes, many: int = SENT) -> Stream:
    program(folder, *records)
    stream = Stream(folder, numbered=lambda: many)
    stream.first_attempt = 1
    return stream


def test_a_receiver_that_numbers_its_blocks_says_itself_which_records_a_batch_has(tmp_path: Path) -> None:
    blocks = [record(added(800, 3, first=0)), record(added(801, 4, first=3), allocated(1000, 800, 801))]
    stream = seen(numbered(tmp_path, *blocks), checkpoint(1000, 1000))
    (tmp_path / "checkpoint-1000").write_bytes(checkpoint(1000, 1000))
    stream.note_launch(2)
    # Its place was kept after the first block alone, so the second one is stored again.
    again = record(added(5800, 4, first=3), added(5801, 5, first=7), allocated(6000, 5800, 5801))
    program(tmp_path, *blocks, again)
    query = seen(stream, checkpoint(6000, 6000), attempt=2).query("c")
    assert [batch.ranges for batch in query.batches] == [{0: (0, 7)}, {0: (7, 12)}]
    assert (query.gone, query.first) == ((), {1: 0, 2: 0})
    assert [stream.took_nothing(batch) for batch in (0, 5)] == [False, False]
    assert (stream.done(), stream.state("c").planned) == ({0: 7}, {0: 12})


def test_what_a_numbered_receiver_held_in_memory_and_went_on_beyond_is_gone(tmp_path: Path) -> None:
    first = [
        record(added(800, 3, first=0, kept=False), allocated(1000, 800)),
        record(added(1100, 4, first=3, kept=False)),
    ]
    stream = seen(numbered(tmp_path, *first), checkpoint(1000))
    (tmp_path / "checkpoint-1000").write_bytes(checkpoint(1000))
    stream.note_launch(2)
    # Its place was kept, so what it had stored is asked for by nobody; the two records behind it no attempt stored.
    later = [*first, record(allocated(2000, 1100), added(5800, 5, first=9, kept=False), allocated(6000, 5800))]
    program(tmp_path, *later)
    seen(stream, checkpoint(6000, 6000), attempt=2)
    assert stream.query("c").gone == (), "the batch that went beyond may be done again"
    program(tmp_path, *later, record(allocated(7000)))
    query = seen(stream, checkpoint(7000, 7000), attempt=2).query("c")
    assert query.gone == (Gone(attempt=1, partition=0, start=3, end=9),)
    assert [batch.ranges[0] for batch in query.batches if batch.ranges[0][0] < batch.ranges[0][1]] == [(0, 3), (9, 14)]


def test_what_a_numbered_receiver_lost_with_two_attempts_is_each_one_s_own(tmp_path: Path) -> None:
    stream = seen(numbered(tmp_path, record(added(800, 5, first=0), allocated(1000, 800))), checkpoint(1000))
    (tmp_path / "checkpoint-1000").write_bytes(checkpoint(1000))
    log = tmp_path / "receivedBlockMetadata" / "log-1-60001"
    # Each attempt keeps its place behind what it holds in memory; the second one also behind what it had not stored.
    for attempt, first in ((1, 5), (2, 8)):
        with log.open("ab") as file:
            file.write(record(added(1000 + 100 * attempt, 3, first=first, kept=False)))
        stream.read(attempt)
        stream.note_launch(attempt + 1)
    with log.open("ab") as file:
        file.write(record(added(5800, 4, first=14), allocated(6000, 5800), allocated(7000)))
    query = seen(stream, checkpoint(7000, 7000), attempt=3).query("c")
    lost = [(each.attempt, each.start, each.end) for each in query.gone]
    assert lost == [(1, 5, 8), (2, 8, 14)]


def test_what_a_numbered_receiver_never_stored_went_with_any_attempt_since(tmp_path: Path) -> None:
    stream = seen(numbered(tmp_path, record(added(800, 5, first=0), allocated(1000, 800))), checkpoint(1000))
    (tmp_path / "checkpoint-1000").write_bytes(checkpoint(1000))
    stream.note_launch(2)
    stream.note_launch(3)
    later = record(added(5800, 4, first=9), allocated(6000, 5800), allocated(7000))
    with (tmp_path / "receivedBlockMetadata" / "log-1-60001").open("ab") as file:
        file.write(later)
    query = seen(stream, checkpoint(7000, 7000), attempt=3).query("c")
    assert query.gone == tuple(Gone(attempt=attempt, partition=0, start=5, end=9) for attempt in (1, 2))


def test_a_numbered_receiver_of_a_program_begun_anew_begins_where_its_own_first_block_does(tmp_path: Path) -> None:
    old = seen(numbered(tmp_path, record(added(800, 5, first=0), allocated(1000, 800))), checkpoint(1000))
    made_again = Stream(tmp_path, numbered=lambda: SENT)
    made_again.first_attempt = 2
    made_again.follows([old])
    made_again.succeeds(old, 2)
    with (tmp_path / "receivedBlockMetadata" / "log-1-60001").open("wb") as file:
        file.write(record(allocated(6000)))
    query = seen(made_again, checkpoint(6000, zero=5000), attempt=2).query("c")
    assert (query.made_again, [each.ranges for each in query.batches]) == (True, [{}]), "nobody knows yet"
    whole = replace(old.query("c"), first={1: 0})
    met = injection(None, queries=(QueryState(checkpoint="c", offsets=(0,), planned={0: 5}),))
    (found,) = query_progress(met, Progressed(queries=(whole, query), end={0: 9}), PER_RECORD)
    assert (found.taken, found.next, found.reread) == ((OffsetRange(0, 0, 5),), None, ())
    with (tmp_path / "receivedBlockMetadata" / "log-1-60001").open("ab") as file:
        file.write(record(added(6800, 4, first=5), allocated(7000, 6800)))
    query = seen(made_again, checkpoint(7000, zero=5000), attempt=2).query("c")
    assert [each.ranges for each in query.batches] == [{0: (5, 5)}, {0: (5, 9)}]
    assert (query.gone, made_again.done()) == ((), {0: 5})


def test_a_program_begun_anew_passes_over_the_files_of_the_one_before(tmp_path: Path) -> None:
    old, made_again = (Stream(tmp_path, in_file=lambda uri: (int(uri[-1]), 20)) for _ in range(2))
    old.note(of_checkpoint(checkpoint(2000, 2000, files={1000: ["file:/in/1"], 2000: ["file:/in/2"]})), 1)
    made_again.follows([old])
    made_again.note(of_checkpoint(checkpoint(7000, 7000, zero=5000, files={7000: ["file:/in/3"]})), 2)
    assert [each.ranges for each in made_again.batches()] == [{1: (20, 20), 2: (20, 20), 3: (0, 20)}]
    assert made_again.planned() == {1: 20, 2: 20, 3: 20}


def test_a_batch_with_nothing_but_what_was_stored_before_took_nothing(tmp_path: Path) -> None:
    first = record(added(800, 3, first=0), allocated(1000, 800))
    second = record(added(1800, 3, first=0), allocated(2000, 1800))
    stream = seen(numbered(tmp_path, first, second), checkpoint(2000, 2000))
    assert [stream.took_nothing(batch) for batch in (0, 1)] == [False, True]
    assert [batch.ranges for batch in stream.batches()] == [{0: (0, 3)}, {0: (3, 3)}]


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (added(800, 3), "a block of 3 records, and does not say which; store it with the number"),
        (added(800, 3, first=98), "stored records 98 to 101; there are 100"),
        (added(800, 3, first=-1), "stored records -1 to 2; there are 100"),
    ],
)
def test_a_receiver_that_numbers_no_block_or_none_that_is_there_is_an_error(
    block: bytes, words: str, tmp_path: Path
) -> None:
    with pytest.raises(HarnessError, match=words):
        seen(numbered(tmp_path, record(block)), checkpoint(1000))


def test_files_are_in_the_batch_that_the_checkpoint_says(tmp_path: Path) -> None:
    stream = Stream(tmp_path, in_file=lambda uri: (int(uri[-1]), 20) if uri.startswith("file:/in/") else None)
    stream.note(
        of_checkpoint(checkpoint(2000, 2000, files={1000: ["file:/in/1"], 2000: ["file:/in/2", "file:/other/3"]})), 1
    )
    assert [batch.ranges for batch in stream.batches()] == [{1: (0, 20)}, {1: (20, 20), 2: (0, 20)}]
    assert (stream.done(), stream.planned()) == ({1: 20}, {1: 20, 2: 20})


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    yield from benches(tmp_path)


def test_what_a_receiver_held_in_memory_cannot_come_twice(make: Make) -> None:
    bench = make()
    there = injected(bench, bench.first(2), replace(progress(2, 1, again=2), batch=1))
    assert (there.reprocessed, there.incomplete, there.counting) == ((), (), ()), "all of it is in the sink"
    assert "is in the sink" in there.why
    ends = bench.scale(bench.rows(without=batch(1)))
    half = injected(bench, bench.first(1), replace(progress(2, 1, again=2), batch=1), scale=ends)
    assert (half.point, [exposure.harm for exposure in half.counting]) == (PLANNED, [Harm.LOSS])


def test_what_a_receiver_had_not_stored_is_exposed_beside_what_comes_again(make: Make) -> None:
    bench = make()
    lost = (OffsetRange(0, 10, 12),)
    left = replace(progress(2, 1, again=1), batch=1, received=lost)
    out = injected(bench, bench.first(2), left, scale=bench.scale(bench.rows(without=lost)))
    assert out.reprocessed == batch(1)
    assert (out.incomplete, {exposure.harm for exposure in out.exposures}) == (lost, {Harm.LOSS, Harm.REPETITION})


def test_a_batch_that_is_done_and_runs_again_is_exposed_beside_the_one_that_was_planned(make: Make) -> None:
    """A restart of a program of DStreams runs the batch again that was done last."""
    bench = make()
    out = injected(bench, bench.first(2), replace(progress(3, 1), batch=2))
    assert (out.incomplete, {exposure.harm for exposure in out.counting}) == (batch(2), {Harm.REPETITION, Harm.LOSS})
    assert bench.scale().keys(out.reprocessed) >= bench.scale().keys(batch(1))


def test_what_an_earlier_attempt_lost_is_not_in_flight_at_a_later_injection() -> None:
    batches = (
        Batch(batch=0, ranges={0: (0, 20)}, committed=True, attempts=(1,)),
        Batch(batch=1, ranges={0: (25, 40)}, committed=True, attempts=(2, 3)),
    )
    query = Query(
        checkpoint="c",
        batches=batches,
        gone=(Gone(attempt=1, partition=0, start=20, end=25),),
        first={1: 0, 2: 1, 3: 1},
        by_time=True,
    )
    state = QueryState(checkpoint="c", offsets=(0, 1), commits=(0,), planned={0: 40}, committed={0: 20})
    second = injection(None, queries=(state,), number=2)
    (found,) = query_progress(second, Progressed(queries=(query,), end={0: 60}), PER_RECORD)
    assert (found.taken, found.skipped) == ((OffsetRange(0, 25, 40),), ())


def test_a_stored_block_that_no_batch_had_may_be_lost_with_its_driver(make: Make) -> None:
    bench = make()
    waits = replace(progress(2, 2), batch=1, received=batch(2))
    out = injected(bench, bench.first(2), waits)
    assert (out.incomplete, [(exposure.harm, exposure.would_show) for exposure in out.exposures]) == (
        batch(2),
        [(Harm.LOSS, True)],
    )
    assert out.point == RECEIVED


def test_a_batch_that_is_done_is_not_done_again_by_a_driver_that_lives(make: Make) -> None:
    bench = make()
    met = injection(
        bench.held(bench.first(2)), outcome=replace(INJECTED, evidence=Evidence(signalled={"postgres": "gone"}))
    )
    planned = replace(progress(3, 1), next=None, batch=2)
    out = exposed(bench.scale(), met, [planned], many=1, until=None, executions=())
    assert {exposure.harm for exposure in out.exposures} == {Harm.LOSS}


def test_an_injection_says_what_its_receiver_had_not_stored(make: Make) -> None:
    batches = (
        Batch(batch=0, ranges={0: (0, 5)}, committed=True, attempts=(1,)),
        Batch(batch=1, ranges={0: (5, 9)}, committed=True, attempts=(1, 2)),
        Batch(batch=4, ranges={0: (12, 20)}, committed=True, attempts=(2,)),
    )
    gone = (Gone(attempt=1, partition=0, start=9, end=12), Gone(attempt=2, partition=0, start=20, end=22))
    state = QueryState(checkpoint="c", offsets=(0, 1), commits=(0,), planned={0: 9}, committed={0: 5}, stored={0: 10})
    met = injection(make().held([]), queries=(state,))

    def reached(**query: Any) -> QueryProgress:
        progressed = Progressed(queries=(Query(checkpoint="c", batches=batches, gone=gone, **query),), end={0: 22})
        (found,) = query_progress(met, progressed, PER_RECORD)
        return found

    logged = reached(first={1: 0, 2: 1})
    assert (logged.low, logged.high, logged.next, logged.received) == ({0: 5}, {0: 9}, {0: 5}, (OffsetRange(0, 9, 12),))
    assert (logged.taken, logged.skipped, logged.batch) == ((OffsetRange(0, 5, 9),), (), 1)
    assert reached(first={1: 0, 2: 4}).skipped == (OffsetRange(0, 5, 12),)
    lived = replace(met.outcome, evidence=replace(met.outcome.evidence, driver_status=None))
    met = replace(met, outcome=lived, impact=Impact.EXECUTORS_KILLED, swept=True)
    assert reached(first={1: 0}).received == (OffsetRange(0, 9, 12),), "one of them stored, and in no batch"
    met = replace(met, swept=False)
    assert reached(first={1: 0}).received == (OffsetRange(0, 9, 12),)


def test_what_was_lost_before_an_injection_or_after_another_one_is_not_of_its_doing(make: Make) -> None:
    batches = (
        Batch(batch=0, ranges={0: (0, 20)}, committed=True, attempts=(1,)),
        Batch(batch=1, ranges={0: (25, 40)}, committed=True, attempts=(1,)),
        Batch(batch=2, ranges={0: (45, 60)}, committed=True, attempts=(2,)),
    )
    gone = tuple(Gone(attempt=1, partition=0, start=start, end=start + 5) for start in (20, 40))
    query = Query(checkpoint="c", batches=batches, gone=gone, first={1: 0, 2: 2})
    table = make().held([])
    early, late = (
        injection(table, queries=(QueryState(checkpoint="c", offsets=(0,), commits=(), planned={0: end}),))
        for end in (20, 40)
    )
    progressed = Progressed(queries=(query,), end={0: 60})
    (first,) = query_progress(replace(early, impact=Impact.EXECUTOR_KILLED), progressed, PER_RECORD, later=[late])
    (second,) = query_progress(late, progressed, PER_RECORD)
    assert (first.received, second.received) == ((OffsetRange(0, 20, 25),), (OffsetRange(0, 40, 45),))


class Program:
    """Writes a checkpoint as a program of DStreams does, under the eyes of who follows it."""

    def __init__(self, root: Path, source: Lines) -> None:
        self.folder = root / "checkpoint"
        (self.folder / "receivedBlockMetadata").mkdir(parents=True)
        self.events: list[tuple[str, int]] = []
        self.source = source
        self.observer = BatchTimes(root, cast(OpenSource, source), History(None))
        self.observer.attempt = 1
        self.observer.listen(lambda seen: self.events.append((str(seen.point), seen.batch)))

    def logs(self, *records: bytes) -> None:
        """The receivers' log grows."""
        with (self.folder / "receivedBlockMetadata" / "log-1-60001").open("ab") as file:
            file.write(b"".join(records))
        self.observer.catch_up()

    def saves(self, at: int, *pending: int) -> None:
        """A checkpoint appears, and the one of its name becomes a backup."""
        path, hidden = self.folder / f"checkpoint-{at}", self.folder / "temp"
        hidden.write_bytes(checkpoint(at, *pending))
        if path.exists():
            path.rename(path.with_name(f"{path.name}.bk"))
        hidden.rename(path)
        self.observer.catch_up()

    def restarts(self, number: int) -> None:
        self.observer.catch_up()
        self.observer.attempt = number


class Lines:
    """A source of lines, all on one connection."""

    def offsets(self, line: str, log: Path) -> None:
        raise AssertionError("there is no offset log")

    def __init__(self) -> None:
        self.connections = [(0.0, 0, SENT)]

    def received(self) -> list[tuple[float, int, int]]:
        return self.connections


@pytest.fixture
def followed(tmp_path: Path) -> Iterator[Program]:
    program = Program(tmp_path, Lines())
    with closing(program.observer):
        yield program


def test_the_points_of_a_batch_are_told_in_their_order_and_each_once(followed: Program) -> None:
    followed.logs(record(added(800, 3), allocated(1000, 800)))
    assert followed.events == [], "nobody knows yet from when the batches are counted"
    followed.saves(1000, 1000)
    followed.saves(1000)
    followed.logs(record(added(1800, 4), allocated(2000, 1800)))
    points = ["batch-planned", "batch-checkpointed", "batch-committed"]
    assert followed.events == [*((point, 0) for point in points), ("batch-planned", 1)]
    observer = followed.observer
    assert observer.listing() == {"offsets": (0, 1), "commits": (0,), "settled": ()}
    assert (observer.planned(), observer.committed()) == ({0: 7}, {}), "a restart does batch 0 again"
    assert [observer.took_nothing(followed.folder, batch) for batch in (0, 1)] == [False, False]
    observer.healthy()


def test_a_block_that_no_batch_has_is_told_before_its_batch_is_planned(followed: Program) -> None:
    followed.logs(record(added(800, 3), allocated(1000, 800)))
    followed.saves(1000, 1000)
    followed.saves(1000)
    followed.logs(record(added(1300, 2)))
    followed.logs(record(added(1500, 2)))
    followed.logs(record(allocated(2000, 1300, 1500)))
    assert followed.events[3:] == [("block-received", 1), ("batch-planned", 1)]


def test_what_is_in_the_log_and_in_no_batch_stays_when_its_attempt_is_dead(followed: Program) -> None:
    followed.logs(record(added(800, 3), allocated(1000, 800)))
    followed.saves(1000, 1000)
    followed.logs(record(added(1300, 2), added(1500, 4, kept=False)))
    assert [state.stored for state in followed.observer.states()] == [{0: 9}]
    followed.restarts(2)
    assert [state.stored for state in followed.observer.states()] == [{0: 5}], "what was in memory alone is gone"
    assert followed.events[-1] == ("block-received", 1)
    followed.logs(record(allocated(2000, 1300, 1500)))
    (state,) = followed.observer.states()
    assert (state.planned, state.stored) == ({0: 5}, {})


def test_what_an_attempt_had_in_memory_waits_for_no_batch_of_the_next_one(followed: Program) -> None:
    followed.saves(1000, 1000)
    followed.restarts(2)
    followed.logs(record(allocated(2000)))
    told = len(followed.events)
    followed.observer.attempt = 1
    followed.logs(record(added(2300, 2, kept=False)))
    followed.observer.attempt = 2
    followed.logs(record(allocated(3000)))
    assert followed.events[told:] == [("block-received", 2), ("batch-planned", 2)]
    assert [state.stored for state in followed.observer.states()] == [{}]


def test_what_the_dead_attempt_left_is_not_the_work_of_the_next_one(followed: Program) -> None:
    followed.logs(record(added(800, 3), allocated(1000, 800)))
    followed.saves(1000, 1000)
    followed.restarts(2)
    assert followed.observer.states() and not followed.observer.touched(2)
    assert not followed.observer.has_progress()
    followed.logs(record(allocated(2000)))
    assert followed.observer.touched(2) and followed.observer.has_progress()
    (query,) = followed.observer.queries()
    assert query.first == {1: 0, 2: 0}


def test_a_program_that_does_not_take_up_its_checkpoint_is_another_one(
    followed: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed.source.connections = [(0.0, 0, 3)]
    followed.logs(record(added(800, 3), allocated(1000, 800)))
    followed.saves(1000, 1000)
    monkeypatch.setattr("harness.run.progress.batch_times.time", lambda: 8.2)
    followed.restarts(2)
    followed.source.connections.append((8300.0, 3, SENT))
    followed.logs(record(added(8500, 4), allocated(9000, 8500)))
    path = followed.folder / "checkpoint-9000"
    path.with_name("temp").write_bytes(checkpoint(9000, 9000, zero=8000))
    path.with_name("temp").rename(path)
    followed.observer.catch_up()
    old, new = followed.observer.queries()
    assert (old.first, [batch.ranges for batch in old.batches]) == ({1: 0}, [{0: (0, 3)}])
    assert (new.first, [batch.ranges for batch in new.batches]) == ({2: 0}, [{0: (3, 7)}])


def test_a_program_begun_anew_has_no_batch_of_the_dead_one_that_was_of_less_than_an_interval_before(
    followed: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections = followed.source.connections = [(0.0, 0, 10)]
    followed.logs(record(added(8200, 3), allocated(8300, 8200)))
    followed.saves(8300, 8300)
    followed.logs(record(added(8700, 4), added(8800, 2), allocated(9000, 8700)))
    monkeypatch.setattr("harness.run.progress.batch_times.time", lambda: 9.3)
    followed.restarts(2)
    connections.append((9600.0, 10, SENT))
    followed.logs(record(allocated(10_000)))
    path = followed.folder / "checkpoint-10000"
    path.with_name("temp").write_bytes(checkpoint(10_000, 10_000, zero=9000))
    path.with_name("temp").rename(path)
    followed.observer.catch_up()
    _, new = followed.observer.queries()
    assert (new.first, [(each.batch, each.ranges) for each in new.batches]) == ({2: 0}, [(0, {0: (10, 10)})])
    followed.logs(record(added(10_500, 4), allocated(11_000, 10_500)))
    _, new = followed.observer.queries()
    assert ([each.ranges for each in new.batches], new.gone) == ([{0: (10, 10)}, {0: (10, 14)}], ())
    assert followed.observer.planned() == {0: 14}


def test_what_an_attempt_without_a_checkpoint_had_stored_is_in_no_batch(tmp_path: Path) -> None:
    stream = program(tmp_path, record(added(800, 3), allocated(1000, 800)))
    stream.read(1)
    stream.note_launch(2)
    stream._received.connected = lambda: [(0, 0, 3), (1300, 3, SENT)]  # type: ignore[union-attr]
    with (tmp_path / "receivedBlockMetadata" / "log-1-60001").open("ab") as file:
        file.write(record(added(1400, 2), allocated(2000, 1400)))
    query = seen(stream, checkpoint(2000, 2000, zero=1000), attempt=2).query("c")
    assert (query.first, [(each.batch, each.ranges) for each in query.batches]) == ({2: 0}, [(0, {0: (3, 5)})])
    assert query.gone == (Gone(attempt=1, partition=0, start=0, end=3),)


def test_a_checkpoint_in_another_compression_ends_the_run_with_its_reason(followed: Program) -> None:
    (followed.folder / "temp").write_bytes(b"(\xb5/\xfd zstd")
    (followed.folder / "temp").rename(followed.folder / "checkpoint-1000")
    until("the watch to end", lambda: not followed.observer._watch._thread.is_alive(), within_s=30.0)
    with pytest.raises(HarnessError, match=r"spark\.io\.compression\.codec"):
        followed.observer.healthy()


SCENARIO = """
name: a program of DStreams
pipeline: {{entry: p.py, progress: {progress}}}
input: {{source: {source}}}
sink: {{postgres: payments, expected: select id from ledger, key: [id]}}
schedule: [{{when: {when}, do: {do}}}]
verdict: held
"""
KILL = "crash application"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("dstreams", "socket", "{point: batch-checkpointed, batch: 2}", KILL), ""),
        (("dstreams", "socket", "{point: block-received, batch: 2}", KILL), ""),
        (("dstreams", "files", "{point: block-received, batch: 2}", KILL), "the source is read without a receiver"),
        (("checkpoint", "files", "{point: block-received, batch: 2}", KILL), "say `progress: dstreams`"),
        (("dstreams", "files", "{rows: 4}", KILL), ""),
        (("dstreams", "socket", "{point: sink-committed, batch: 2}", KILL), "DStreams log no offsets"),
        (
            ("dstreams", "socket", "{batch: 2}", "crash before offset commit"),
            "crash application` at `point: batch-committed`",
        ),
        (
            ("dstreams", "socket", "{failpoint: x}", "crash before offset commit"),
            "crash application` at `point: batch-com",
        ),
        (("dstreams", "socket", "{rows: 4}", "kill executor"), ""),
        (
            ("dstreams", "socket", "{point: batch-committed, batch: 2}", "kill executor"),
            "no executor has anything in flight",
        ),
        (("checkpoint", "files", "{point: batch-checkpointed, batch: 2}", KILL), "say `progress: dstreams`"),
        (("dstreams", "record_log", "{rows: 4}", KILL), ""),
        (("dstreams", "record_log, offset: position", "{rows: 4}", KILL), "offset is for a reader"),
        (("dstreams", "record_log, inclusive: true", "{rows: 4}", KILL), "inclusive is for a reader"),
        (("dstreams", "kafka", "{rows: 4}", KILL), "they read files, record_log, socket"),
        (("dstreams, checkpoint: s3", "socket", "{rows: 4}", KILL), "in the run's own folder alone"),
        (("dstreams", "files, afterwards: renamed", "{rows: 4}", KILL), "afterwards is for files"),
    ],
)
def test_a_scenario_of_dstreams_names_their_own_points_and_a_source_that_they_read(
    tmp_path: Path, given: tuple[str, str, str, str], words: str
) -> None:
    progress, source, when, do = given
    (tmp_path / "p.py").touch()
    (tmp_path / "pyproject.toml").touch()
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO.format(progress=progress, source=source, when=when, do=do))
    if not words:
        assert load(path).pipeline.progress == "dstreams"
        return
    with pytest.raises(ScenarioError, match=words):
        load(path)
