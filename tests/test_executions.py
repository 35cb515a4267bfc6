"""Executions as a fold of made-up histories, whose task events arrive late or never."""

from __future__ import annotations

from dataclasses import asdict

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.executions import Execution, executions
from harness.history import BatchPlanned, CheckpointOp, Event, Line, QueryStarted, TaskEnded, TaskStarted
from harness.operation import Op, Side
from tests.limits import examples

QUERIES = ("checkpoint", "other")
Place = tuple[str, int, int]


def numbered(events: list[Event]) -> list[Line]:
    return [Line(n, float(n), event) for n, event in enumerate(events)]


def task(place: Place, partition: int) -> TaskStarted:
    query, attempt, batch = place
    return TaskStarted(
        attempt=attempt, query=query, batch=batch, stage=batch, stage_attempt=0, partition=partition, attempt_number=0,
        executor="0",
    )  # fmt: skip


def ended(begun: TaskStarted) -> TaskEnded:
    return TaskEnded(**asdict(begun), outcome="success")


@given(st.data())
@settings(max_examples=examples(300), deadline=None)
def test_each_attempt_s_work_on_a_batch_is_one_execution(data: st.DataObject) -> None:
    """With a task for each drawn truth, which says whether its end was reported: at any time after its start."""
    places = st.tuples(st.sampled_from(QUERIES), st.integers(1, 3), st.integers(0, 3))
    expected: dict[Place, list[bool]] = data.draw(st.dictionaries(places, st.lists(st.booleans(), min_size=1)))
    events: list[Event] = []
    for place, reported in data.draw(st.permutations([*expected.items()])):
        query, attempt, batch = place
        events.append(BatchPlanned(query=query, attempt=attempt, batch=batch))
        events += [task(place, partition) for partition in range(len(reported))]
    for begun in [event for event in events if isinstance(event, TaskStarted)]:
        if expected[begun.query, begun.attempt, begun.batch][begun.partition]:
            events.insert(data.draw(st.integers(events.index(begun) + 1, len(events))), ended(begun))
    rows = executions(numbered(events))
    assert len(rows) == len(expected)
    for row in rows:
        mine = [each for each in events if isinstance(each, TaskStarted) and not isinstance(each, TaskEnded)]
        mine = [each for each in mine if (each.query, each.attempt, each.batch) == (row.query, row.attempt, row.batch)]
        assert [each.began for each in row.tasks] == [float(events.index(each)) for each in mine]
        assert [each.ended is not None for each in row.tasks] == expected[row.query, row.attempt, row.batch]
        assert all(each.ended is None or each.ended > each.began for each in row.tasks)


def test_a_query_that_the_attempt_started_again_has_both_times() -> None:
    start = QueryStarted(attempt=1, query="checkpoint", query_run="a")
    events: list[Event] = [start, task(("checkpoint", 1, 0), 0), task(("checkpoint", 2, 0), 0), start]
    assert [each.query_starts for each in executions(numbered(events))] == [(0.0, 3.0), ()]


def test_an_operation_on_a_file_of_a_batch_is_no_task_of_it() -> None:
    deleted = CheckpointOp(attempt=1, query="checkpoint", path="offsets/0", op=Op.DELETE, when=Side.AFTER)
    assert executions(numbered([deleted])) == list[Execution]()
