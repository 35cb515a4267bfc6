"""Executions as a fold of made-up histories: a simulated query, killed anywhere, with task events that arrive late or
never."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.executions import Execution, Outcome, executions
from harness.history import (
    AttemptEnded,
    AttemptStarted,
    BatchCommitted,
    BatchPlanned,
    CheckpointOp,
    Event,
    Line,
    OffsetsSaved,
    SinkCommitted,
    SourceBegun,
    TaskEnded,
    TaskStarted,
)
from harness.operation import Op, Side
from tests.limits import examples

QUERY, PARTITIONS, PER_BATCH = "checkpoint", 2, 10
STEPS = ("planned", "tasks", "in sink", "committed")


def numbered(events: list[Event]) -> list[Line]:
    return [Line(n, float(n), event) for n, event in enumerate(events)]


def task(attempt: int, batch: int, partition: int) -> TaskStarted:
    return TaskStarted(
        attempt=attempt, query=QUERY, batch=batch, stage=batch, stage_attempt=0, partition=partition, attempt_number=0,
        executor="0",
    )  # fmt: skip


def ended(begun: TaskStarted) -> TaskEnded:
    return TaskEnded(**asdict(begun), outcome="success")


@dataclass
class Made:
    """What the harness and Spark saw, apart, and what was executed: by attempt and batch its outcome, and by task
    whether its end is known."""

    harness: list[Event] = field(default_factory=list)
    spark: list[tuple[int, Event]] = field(default_factory=list)
    """With the place in `harness` before which it happened."""
    expected: dict[tuple[int, int], Outcome] = field(default_factory=dict)
    known: dict[tuple[int, int], list[bool]] = field(default_factory=dict)

    def saw(self, event: Event) -> None:
        self.spark.append((len(self.harness), event))


@st.composite
def made(draw: st.DrawFn) -> Made:
    """Some attempts, killed one after the other. Each goes on behind the last batch whose commit is there, does some
    batches whole, and some steps of one more. Of a commit that was there at the kill nobody may have heard."""
    out, batch, planned, unheard = Made(), 0, set[int](), False
    attempts = draw(st.integers(1, 4))
    for attempt in range(1, attempts + 1):
        out.harness.append(AttemptStarted(attempt=attempt))
        # Only an attempt that begins a batch shows behind which one it goes on.
        for _ in range(draw(st.integers(int(unheard), 3))):
            run(out, (attempt, batch), planned, len(STEPS), draw)
            out.expected[attempt, batch] = Outcome.COMMITTED
            batch += 1
        last, steps = attempt == attempts, draw(st.integers(0, len(STEPS) - 1))
        unheard = not last and steps == len(STEPS) - 1 and draw(st.booleans())
        if steps:
            run(out, (attempt, batch), planned, steps, draw)
            out.expected[attempt, batch] = Outcome.OPEN if last else Outcome.CUT_SHORT
        if unheard:
            out.expected[attempt, batch] = Outcome.COMMITTED
            batch += 1
        if not last:
            out.harness.append(AttemptEnded(attempt=attempt, status=-9, scheduled=True))
    return out


def run(out: Made, place: tuple[int, int], planned: set[int], steps: int, draw: st.DrawFn) -> None:
    attempt, batch = place
    for step in STEPS[:steps]:
        if step == "planned":
            if batch not in planned:
                planned.add(batch)
                ranges = dict.fromkeys(range(PARTITIONS), (batch * PER_BATCH, (batch + 1) * PER_BATCH))
                out.harness.append(BatchPlanned(query=QUERY, batch=batch, attempt=attempt, ranges=ranges))
            else:
                path = f"commits/{batch}"
                out.harness.append(
                    CheckpointOp(attempt=attempt, query=QUERY, path=path, op=Op.CREATE, when=Side.BEFORE)
                )
        elif step == "tasks":
            for partition in range(PARTITIONS):
                begun = task(attempt, batch, partition)
                out.saw(begun)
                reported = steps == len(STEPS) or draw(st.booleans())
                out.known.setdefault((attempt, batch), []).append(reported)
                if reported:
                    out.saw(ended(begun))
        elif step == "in sink":
            out.harness.append(SinkCommitted(query=QUERY, batch=batch, attempt=attempt))
        else:
            out.harness.append(BatchCommitted(query=QUERY, batch=batch, attempt=attempt))


@st.composite
def arrived(draw: st.DrawFn, found: Made) -> list[Event]:
    """The events as they reach the harness: those of tasks in their order, each at once or later than it happened."""
    late: dict[int, list[Event]] = {}
    place = 0
    for happened, event in found.spark:
        place = draw(st.integers(max(place, happened), len(found.harness)))
        late.setdefault(place, []).append(event)
    out: list[Event] = []
    for number, event in enumerate(found.harness):
        out += [*late.get(number, []), event]
    return [*out, *late.get(len(found.harness), [])]


@given(st.data())
@settings(max_examples=examples(300), deadline=None)
def test_each_attempt_s_work_on_a_batch_is_one_execution(data: st.DataObject) -> None:
    found = data.draw(made())
    rows = executions(numbered(data.draw(arrived(found))))
    assert {(row.attempt, row.batch): row.outcome for row in rows} == found.expected
    assert len(rows) == len(found.expected)
    for row in rows:
        assert row.query == QUERY
        assert row.ranges == dict.fromkeys(range(PARTITIONS), (row.batch * PER_BATCH, (row.batch + 1) * PER_BATCH))
        known = found.known.get((row.attempt, row.batch), [])
        assert [each.outcome == "success" for each in row.tasks] == known
        assert [each.ended is None for each in row.tasks] == [not reported for reported in known]


def test_a_checkpoint_that_was_begun_again_has_its_batches_again() -> None:
    first = [SourceBegun(query=QUERY, batch=0, attempt=1), *whole(1, 0), *whole(1, 1)]
    again = [SourceBegun(query=QUERY, batch=0, attempt=2), *whole(2, 0)]
    ended_ = AttemptEnded(attempt=1, status=-9)
    rows = executions(numbered([AttemptStarted(attempt=1), *first, ended_, AttemptStarted(attempt=2), *again]))
    assert [(row.attempt, row.batch, row.outcome) for row in rows] == [
        (1, 0, Outcome.COMMITTED), (1, 1, Outcome.COMMITTED), (2, 0, Outcome.COMMITTED)
    ]  # fmt: skip


def whole(attempt: int, batch: int) -> list[Event]:
    return [kind(query=QUERY, batch=batch, attempt=attempt) for kind in (BatchPlanned, SinkCommitted, BatchCommitted)]


def test_a_pipeline_that_saves_its_own_offsets_has_a_row_between_two_of_them() -> None:
    saved = [({}, 1), ({0: 5}, 1), ({0: 5, 1: 2}, 1), ({0: 5, 1: 2}, 2), ({0: 9, 1: 2}, 2)]
    events: list[Event] = [AttemptStarted(attempt=1)]
    events += [OffsetsSaved(attempt=attempt, next=at) for at, attempt in saved[:3]]
    events += [AttemptEnded(attempt=1, status=-9), AttemptStarted(attempt=2)]
    events += [OffsetsSaved(attempt=attempt, next=at) for at, attempt in saved[3:]]
    rows = executions(numbered(events))
    told = [(row.attempt, row.ranges, row.outcome) for row in sorted(rows, key=lambda row: (row.attempt, row.began))]
    assert told == [
        (1, {0: (0, 5)}, Outcome.COMMITTED),
        (1, {1: (0, 2)}, Outcome.COMMITTED),
        (1, {}, Outcome.CUT_SHORT),
        (2, {0: (5, 9)}, Outcome.COMMITTED),
        (2, {}, Outcome.OPEN),
    ]


def test_the_deletion_of_an_old_file_is_no_work_on_its_batch() -> None:
    deleted = CheckpointOp(attempt=1, query=QUERY, path="offsets/0", op=Op.DELETE, when=Side.AFTER)
    assert executions(numbered([AttemptStarted(attempt=1), deleted])) == []


def test_without_events_there_are_none() -> None:
    assert executions([]) == list[Execution]()
