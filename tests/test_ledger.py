"""The ledger: any blocks survive, a tear leaves a prefix that says so, promises are compared with facts."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import HarnessError
from harness.run_folder import ledger
from harness.run_folder.ledger import Answer, Attempts, AttemptsRead, State, digest, producer_report, read
from harness.workloads import Record
from tests.limits import examples

KEYS = st.none() | st.binary(max_size=6)
ERRORS = st.none() | st.text(st.characters(codec="utf-8"), max_size=6)
INT64 = 2**63 - 1


@dataclass
class Story:
    """What the blocks of a log say, kept the slow and plain way."""

    blocks: list[list[Record] | list[Answer]] = field(default_factory=list)

    def told(self, upto: int) -> dict[int, tuple[Any, ...]]:
        """seq -> (key, digest, wanted, state, partition, offset, error) after the first `upto` blocks."""
        out: dict[int, tuple[Any, ...]] = {}
        for block in self.blocks[:upto]:
            for item in block:
                if isinstance(item, Record):
                    out[item.seq] = (item.key, digest(item.value), item.partition, "unknown", None, None, None)
                else:
                    out[item.seq] = (*out[item.seq][:3], *item[1:])
        return out


@st.composite
def stories(draw: st.DrawFn, most: int = 6) -> Story:
    story, waiting, seq = Story(), [], 0
    for _ in range(draw(st.integers(0, most))):
        if draw(st.booleans()):
            records = []
            for _ in range(draw(st.integers(0, 4))):
                seq += draw(st.integers(1, 2**40))
                records.append(
                    Record(seq, draw(KEYS), draw(st.binary(max_size=6)), draw(st.none() | st.integers(0, 9)))
                )
            waiting += [record.seq for record in records]
            story.blocks.append(records)
        else:
            chosen = draw(st.permutations(waiting))[: draw(st.integers(0, 4))]
            waiting = [seq for seq in waiting if seq not in chosen]
            story.blocks.append([draw(answers(seq)) for seq in chosen])
    return story


@st.composite
def answers(draw: st.DrawFn, seq: int) -> Answer:
    if draw(st.booleans()):
        return Answer(seq, State.ACKNOWLEDGED, draw(st.integers(0, 2**31 - 1)), draw(st.integers(0, INT64)))
    return Answer(seq, draw(st.sampled_from([State.FAILED, State.UNKNOWN])), error=draw(ERRORS))


def written(story: Story, path: Path) -> list[int]:
    """Write the story; the size of the file after each block."""
    path.unlink(missing_ok=True)
    log, ends = Attempts(path), [0]
    for block in story.blocks:
        if block and isinstance(block[0], Answer):
            log.answers([item for item in block if isinstance(item, Answer)])
        else:
            log.meant([item for item in block if isinstance(item, Record)])
        ends.append(path.stat().st_size)
    log.close()
    return ends


def told(seen: AttemptsRead) -> dict[int, tuple[Any, ...]]:
    return {row.pop("seq"): tuple(row.values()) for row in seen.table.to_pylist()}


def counted(story: dict[int, tuple[Any, ...]], state: str) -> int:
    return sum(row[3] == state for row in story.values())


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ledger") / "attempts.log"


@given(story=stories())
def test_any_blocks_survive(log: Path, story: Story) -> None:
    written(story, log)
    seen, truth = read(log), story.told(len(story.blocks))
    assert told(seen) == truth
    assert seen.torn is None
    assert seen.table.num_rows == len(truth)
    assert (seen.acknowledged, seen.failed, seen.unknown) == tuple(counted(truth, state) for state in State)


@given(story=stories(), data=st.data())
def test_a_cut_leaves_a_prefix_and_says_so(log: Path, story: Story, data: st.DataObject) -> None:
    ends = written(story, log)
    cut = data.draw(st.integers(0, ends[-1]))
    os.truncate(log, cut)
    check_cut(read(log), story, ends, cut)


def check_cut(seen: AttemptsRead, story: Story, ends: list[int], cut: int) -> None:
    whole = max(number for number, end in enumerate(ends) if end <= cut)
    assert told(seen) == story.told(whole)
    if cut == ends[whole]:
        assert seen.torn is None
    else:
        assert seen.torn is not None
        assert (seen.torn.at, seen.torn.left) == (ends[whole], cut - ends[whole])
        assert str(seen.torn).startswith(f"torn at byte {ends[whole]}: ")


def test_a_cut_at_every_byte(tmp_path: Path) -> None:
    """More than 1000 positions, each of them tried."""
    records = [Record(seq, b"k%d" % seq, b"v" * seq) for seq in range(3)]
    sent = [Answer(0, State.ACKNOWLEDGED, 1, 7), Answer(2, State.UNKNOWN, error="no answer")]
    story = Story([records, sent])
    ends = written(story, tmp_path / "whole.log")
    content = (tmp_path / "whole.log").read_bytes()
    assert len(content) > 1000
    torn = tmp_path / "torn.log"
    for cut in range(len(content) + 1):
        torn.write_bytes(content[:cut])
        check_cut(read(torn), story, ends, cut)


@given(story=stories(most=3).filter(lambda story: bool(story.blocks)), data=st.data())
@settings(max_examples=examples(200))
def test_a_flipped_bit_ends_the_log_where_it_lies(log: Path, story: Story, data: st.DataObject) -> None:
    ends = written(story, log)
    at, bit = data.draw(st.integers(0, ends[-1] - 1)), data.draw(st.integers(0, 7))
    content = bytearray(log.read_bytes())
    content[at] ^= 1 << bit
    log.write_bytes(content)
    whole = max(number for number, end in enumerate(ends) if end <= at)
    seen = read(log)
    assert seen.torn is not None
    assert seen.torn.at == ends[whole]
    assert told(seen) == story.told(whole)


def test_the_reason_of_a_tear_is_named(tmp_path: Path) -> None:
    ends = written(Story([[Record(0, None, b"v")]]), tmp_path / "whole.log")
    content = (tmp_path / "whole.log").read_bytes()
    log = tmp_path / "torn.log"
    for bad, why in [
        (content + content[:5], "the head of a block is cut"),
        (content + b"x" * 50, "no block begins here"),
        (content + content[:4] + b"\x07" + content[5:], "no block begins here"),
        (content + content[:-1], "a block is cut"),
        (content + content[:-1] + b"\xff", "a block's checksum is wrong"),
    ]:
        log.write_bytes(bad)
        torn = read(log).torn
        assert torn is not None
        assert (torn.at, torn.left, torn.why) == (ends[-1], len(bad) - ends[-1], why)


def raw_block(kind: int, payload: bytes) -> bytes:
    """A block with a checksum that is right, whatever it holds."""
    check = crc32(payload, crc32(ledger._SIGNED.pack(kind, len(payload))))
    return ledger._HEAD.pack(ledger.MAGIC, kind, len(payload), check) + payload


def answered(**changes: list[Any]) -> bytes:
    columns = {"seq": [0], "state": ["acknowledged"], "partition": [0], "offset": [0], "error": [None]}
    return ledger._block(ledger.ANSWERS, list({**columns, **changes}.values()))


def test_a_block_that_is_whole_and_holds_nonsense_ends_the_log_too(tmp_path: Path) -> None:
    ends = written(Story([[Record(0, None, b"v")]]), tmp_path / "whole.log")
    content, log = (tmp_path / "whole.log").read_bytes(), tmp_path / "torn.log"
    meant = content[ledger._HEAD.size :]
    for bad, why in [
        (raw_block(ledger.MEANT, b"nothing of Arrow's"), ""),
        (raw_block(ledger.MEANT, meant[: len(meant) // 2]), ""),
        (raw_block(ledger.ANSWERS, meant), "other columns than ours"),
        (answered(seq=[None]), "records without a number"),
        (answered(state=["lost"]), "answers without a meaning"),
        (answered(state=[None]), "answers without a meaning"),
    ]:
        log.write_bytes(content + bad)
        torn = read(log).torn
        assert torn is not None
        assert (torn.at, torn.left) == (ends[-1], len(bad))
        assert torn.why.startswith("what a block holds is not readable (") and why in torn.why


@pytest.mark.parametrize("changes", [{"offset": None}, {"partition": None}, {"seq": "x"}])
def test_a_source_of_other_columns_or_without_places_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    rows = {"partition": 0, "offset": 0, "timestamp_ms": 0, "key": b"k", "value": b"v", "seq": 0}
    pq.write_table(pa.Table.from_pylist([{**rows, **changes}]), tmp_path / "source.parquet")
    with pytest.raises(HarnessError, match="other columns than ours, or records without a place"):
        ledger.read_source(tmp_path / "source.parquet")


def test_the_log_is_for_its_owner_alone_and_never_overwritten(tmp_path: Path) -> None:
    log = tmp_path / "attempts.log"
    Attempts(log).close()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    with pytest.raises(HarnessError, match="File exists"):
        Attempts(log)
    (tmp_path / "link.log").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(HarnessError, match="asked to create the ledger"):
        Attempts(tmp_path / "link.log")
    assert not (tmp_path / "elsewhere").exists()


def test_an_answer_needs_a_question_and_there_is_one_answer(tmp_path: Path) -> None:
    log = Attempts(tmp_path / "attempts.log")
    log.meant([Record(3, None, b"v")])
    with pytest.raises(ValueError, match="record 3 was put down after record 3"):
        log.meant([Record(3, None, b"v")])
    log.answers([Answer(3, State.UNKNOWN)])
    with pytest.raises(ValueError, match="record 3 is not waiting"):
        log.answers([Answer(3, State.UNKNOWN)])
    log.close()
    log.close()
    with pytest.raises(HarnessError, match="is closed"):
        log.meant([Record(4, None, b"v")])


def test_the_meant_are_on_the_disk_before_meant_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    log = tmp_path / "attempts.log"
    monkeypatch.setattr(os, "fdatasync", lambda number: sizes.append(os.fstat(number).st_size))
    attempts = Attempts(log)
    attempts.meant([Record(1, None, b"v")])
    assert sizes == [log.stat().st_size]
    assert sizes[0] > 0


def test_a_refusing_disk_is_one_clear_error_and_ends_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, real = Attempts(tmp_path / "attempts.log"), os.write
    log.meant([Record(1, None, b"v")])
    whole = (tmp_path / "attempts.log").stat().st_size

    def write(number: int, block: bytes) -> int:
        if len(block) < 40:
            raise OSError(28, "No space left on device")
        return real(number, block[:-20])

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(HarnessError, match="No space left on device"):
        log.meant([Record(2, None, b"v")])
    monkeypatch.undo()
    with pytest.raises(HarnessError, match="is closed"):
        log.answers([Answer(1, State.UNKNOWN)])
    seen = read(tmp_path / "attempts.log")
    assert seen.table.num_rows == 1
    assert seen.torn is not None
    assert seen.torn.at == whole


def test_no_log_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"attempts\.log; saw No such file"):
        read(tmp_path / "attempts.log")


# The second half, and the comparison.

Row = tuple[int, int, int | None, bytes | None]
"""Partition, offset, seq, value."""


def batch(rows: Sequence[Row]) -> pa.RecordBatch:
    listed = [
        {"partition": partition, "offset": offset, "timestamp_ms": 0, "key": None, "value": value, "seq": seq}
        for partition, offset, seq, value in rows
    ]
    return pa.RecordBatch.from_pylist(listed, schema=ledger.SOURCE)


def source(*rows: Row) -> pa.Table:
    return pa.Table.from_batches([batch(rows)])


@given(
    rows=st.lists(
        st.tuples(
            st.integers(0, 2**31 - 1),
            st.integers(0, INT64),
            st.none() | st.integers(-INT64, INT64),
            st.none() | st.binary(max_size=8),
        )
    ),
    every=st.integers(1, 3),
)
def test_the_source_comes_back_as_written(log: Path, rows: list[Row], every: int) -> None:
    path = log.with_name("source.parquet")
    count = ledger.write_source(path, (batch(rows[at : at + every]) for at in range(0, len(rows), every)))
    assert count == len(rows)
    table = ledger.read_source(path)
    assert table.schema.equals(ledger.SOURCE)
    assert table.equals(source(*rows))


def test_the_source_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield batch([(0, 0, 0, b"v")])
        raise KeyError("the reader died")

    with pytest.raises(KeyError):
        ledger.write_source(tmp_path / "source.parquet", broken())
    assert list(tmp_path.iterdir()) == []
    ledger.write_source(tmp_path / "source.parquet", [batch([(0, 0, 0, b"v")])])
    assert [path.name for path in tmp_path.iterdir()] == ["source.parquet"]
    assert stat.S_IMODE((tmp_path / "source.parquet").stat().st_mode) == 0o600


def test_a_source_that_cannot_be_written_or_read_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"asked to write .*saw No such file"):
        ledger.write_source(tmp_path / "missing" / "source.parquet", [])
    with pytest.raises(HarnessError, match="asked for the source as read back"):
        ledger.read_source(tmp_path / "source.parquet")
    (tmp_path / "source.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(HarnessError, match="asked for the source as read back"):
        ledger.read_source(tmp_path / "source.parquet")


def attempts(tmp_path: Path, *sent: Answer) -> AttemptsRead:
    """Records whose value is their number, each answered as told."""
    (tmp_path / "attempts.log").unlink(missing_ok=True)
    log = Attempts(tmp_path / "attempts.log")
    log.meant([Record(answer.seq, None, b"%d" % answer.seq) for answer in sent])
    log.answers(sent)
    log.close()
    return read(tmp_path / "attempts.log")


def test_a_kept_promise(tmp_path: Path) -> None:
    tried = attempts(tmp_path, Answer(0, State.ACKNOWLEDGED, 0, 0), Answer(1, State.FAILED), Answer(2, State.UNKNOWN))
    report = producer_report(tried, source((0, 0, 0, b"0")))
    assert (report.lost, report.changed, report.duplicated) == ((), (), ())
    assert (report.acknowledged, report.failed, report.unknown, report.source) == (1, 1, 1, 1)
    assert (report.recovered, report.foreign) == ((), 0)


def test_each_broken_promise_is_named_with_its_place(tmp_path: Path) -> None:
    placed = [Answer(seq, State.ACKNOWLEDGED, 0, seq) for seq in range(5)]
    tried = attempts(tmp_path, *placed, Answer(5, State.FAILED), Answer(6, State.UNKNOWN), Answer(7, State.UNKNOWN))
    report = producer_report(
        tried,
        source(
            (0, 0, 0, b"0"),
            # 1 is lost
            (0, 2, 2, b"another value"),
            (0, 3, 4, b"4"),  # 4 lies where 3 should
            (0, 4, 4, b"4"),
            (1, 0, 5, b"5"),
            (1, 1, 6, b"6"),
            (1, 2, 99, b"never meant"),
            (1, 3, None, b"without our header"),
        ),
    )
    assert report.lost == ((1, 0, 1),)
    assert report.changed == ((2, 0, 2), (3, 0, 3))
    assert report.duplicated == ((4, 0, 3), (4, 0, 4))
    assert report.recovered == (6,)
    assert report.foreign == 2


def test_a_value_that_is_gone_is_a_changed_one(tmp_path: Path) -> None:
    tried = attempts(tmp_path, Answer(0, State.ACKNOWLEDGED, 0, 0))
    assert producer_report(tried, source((0, 0, 0, None))).changed == ((0, 0, 0),)


def test_a_topic_without_our_header_is_compared_by_place_and_value(tmp_path: Path) -> None:
    tried = attempts(tmp_path, *(Answer(seq, State.ACKNOWLEDGED, 0, seq) for seq in range(3)))
    good = producer_report(tried, source(*((0, seq, None, b"%d" % seq) for seq in range(3))))
    assert (good.lost, good.changed, good.duplicated, good.foreign) == ((), (), (), 0)
    assert producer_report(tried, source((0, 0, None, b"0"), (0, 1, None, b"x"))).lost == ((2, 0, 2),)
    assert producer_report(tried, source((0, 0, None, b"0"), (0, 1, None, b"x"))).changed == ((1, 0, 1),)


@given(states=st.lists(st.tuples(st.sampled_from(list(State)), st.integers(0, 2)), max_size=12))
@settings(max_examples=examples(30))
def test_only_broken_promises_are_reported(log: Path, states: list[tuple[State, int]]) -> None:
    """A record lies in the topic 0, 1 or 2 times, whatever its answer was: each pair has one right reading."""
    rows, sent, at = [], [], 0
    for seq, (state, copies) in enumerate(states):
        place = (0, at) if state is State.ACKNOWLEDGED else (None, None)
        sent.append(Answer(seq, state, *place))
        rows += [(0, at + copy, seq, b"%d" % seq) for copy in range(copies)]
        at += 2
    report = producer_report(attempts(log.parent, *sent), source(*rows))

    def of(state: State, least: int, most: int = 2) -> tuple[int, ...]:
        return tuple(n for n, (seen, copies) in enumerate(states) if seen is state and least <= copies <= most)

    assert tuple(lost.seq for lost in report.lost) == of(State.ACKNOWLEDGED, 0, 0)
    assert report.recovered == of(State.UNKNOWN, 1)
    assert {row.seq for row in report.duplicated} == {n for n, (_, copies) in enumerate(states) if copies == 2}
    assert report.changed == ()
    assert report.foreign == 0


def test_the_head_of_a_block_is_as_documented(tmp_path: Path) -> None:
    written(Story([[Record(0, None, b"v")]]), tmp_path / "attempts.log")
    content = (tmp_path / "attempts.log").read_bytes()
    magic, kind, length, _ = struct.unpack(">4sBII", content[:13])
    assert (magic, kind, length) == (b"\x89OPL", 1, len(content) - 13)
