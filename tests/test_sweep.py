"""A sweep without a stack: which cells a history shows, how they are packed, what a run says of each, the answer."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyspark
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import failpoint
from harness.faults import FAULTS, fault
from harness.history import BatchPlanned, CheckpointOp, Event, Line
from harness.nightly import possible
from harness.operation import Op, Side
from harness.scenario import (
    Attribution,
    Evidence,
    Expected,
    Exposure,
    Harm,
    Kind,
    Pipeline,
    Scenario,
    Sink,
    Step,
    StepOutcome,
    Verdict,
    Word,
)
from harness.stacks.registry import STACKS
from harness.suite.side_by_side import alone
from harness.sweep import answer, pages
from harness.sweep.cells import Cell, Passed, found
from harness.sweep.command import placed
from harness.sweep.expected import as_expected, at_step, chosen, crash_points, names, unknown
from harness.sweep.packing import APART, numbered, packed
from harness.sweep.results import Outcomes, Played, Result
from harness.sweep.rows import own
from harness.sweep.state import State
from harness.triggers import TRIGGERS
from harness.triggers.op import KIND as OPERATION
from tests import sample_runs as sample

SCENARIO = Scenario(
    name="orders",
    pipeline=Pipeline(entry="orders.py"),
    sinks=(Sink(kind="postgres", target="orders", expected="select id from ledger", key=("id",)),),
)
KILL = fault("kill driver")
MEANS = STACKS["processes"].means
BEFORE = TRIGGERS["point"].trigger("sink-committed")


def operation(op: Op, path: str, when: Side, query: str = "checkpoint") -> CheckpointOp:
    return CheckpointOp(attempt=1, query=query, path=path, op=op, when=when)


def lines(*events: Event) -> list[Line]:
    return [Line(number, float(number), event) for number, event in enumerate(events)]


def planned(batch: int, records: int = 10, query: str = "checkpoint") -> BatchPlanned:
    return BatchPlanned(query=query, attempt=1, batch=batch, ranges={0: (0, records)})


def both(op: Op, path: str, query: str = "checkpoint") -> list[CheckpointOp]:
    return [operation(op, path, side, query) for side in Side]


def places(history: list[Line]) -> dict[str, list[str]]:
    """The faults of later batches, by place."""
    out: dict[str, list[str]] = {}
    for cell in found(history, SCENARIO, MEANS).cells:
        if not cell.first:
            out.setdefault(cell.place, []).append(cell.fault)
    return out


def test_the_operations_of_batches_with_records_are_cells_in_their_order() -> None:
    history = lines(
        *both(Op.CREATE, "offsets/0"), planned(0, records=0), *both(Op.RENAME, "metadata"),
        planned(1), *both(Op.RENAME, "offsets/1"), *both(Op.CREATE, "state/0/0/2.delta"), *both(Op.RENAME, "commits/1"),
        operation(Op.MKDIRS, "state/0/0/2.delta", Side.BEFORE),
    )  # fmt: skip
    assert list(places(history)) == [
        "before rename of offsets", "after rename of offsets", "before create of state", "after create of state",
        "before rename of commits", "after rename of commits", next(each for each in places(history) if "row" in each),
    ]  # fmt: skip
    assert found(history, SCENARIO, MEANS).first_batch == 1


def test_where_no_operation_was_reported_the_checkpoints_files_show_the_places() -> None:
    assert [each for each in places(lines(planned(1))) if "row" not in each] == [
        "batch-planned", "sink-committed", "batch-committed",
    ]  # fmt: skip


def test_executors_and_servers_are_struck_while_the_batch_is_at_work() -> None:
    history = lines(planned(1), *both(Op.RENAME, "offsets/1"), *both(Op.RENAME, "commits/1"))
    seen = places(history)
    assert seen["before rename of commits"] == ["kill driver"]
    assert {"kill driver", "kill postgres", "kill kafka"} < {*seen["after rename of offsets"]}
    assert {"kill executor", "kill postgres"} < {*seen[next(each for each in seen if "row" in each)]}
    assert "crash mid-sink" not in {each for kinds in seen.values() for each in kinds}
    firsts = [cell for cell in found(history, SCENARIO, MEANS).cells if cell.first]
    assert {cell.fault for cell in firsts} == {"kill driver"}


def test_a_first_batch_has_the_operations_that_it_was_seen_to_have() -> None:
    history = lines(
        planned(1),
        *both(Op.RENAME, "commits/1"),
        planned(2),
        *both(Op.RENAME, "state/3"),
        *both(Op.RENAME, "commits/2"),
    )
    firsts = [cell.place for cell in found(history, SCENARIO, MEANS).cells if cell.first]
    assert "before rename of commits" in firsts
    assert "before rename of state" not in firsts


def test_each_sink_that_can_be_counted_has_a_row_and_a_later_one_the_gap_before_its_first() -> None:
    (orders,) = SCENARIO.sinks
    scenario = replace(SCENARIO, sinks=(orders, replace(orders, target="documents", part="second")))
    history = lines(planned(1), *both(Op.RENAME, "commits/1"))
    there = Passed(tables=["orders", "documents"])
    rows = {cell.place for cell in found(history, scenario, MEANS, there).cells if "row" in cell.place}
    assert {place.rpartition(" in ")[2] for place in rows} == {"orders", "documents"}
    assert len(rows) == 3 and "before the first row in documents" in rows
    alike = replace(scenario, sinks=(orders, replace(orders, part="second")))
    alike_tables = ["postgres orders", "postgres.second orders"]
    named = found(history, alike, MEANS, Passed(tables=alike_tables)).cells
    assert {cell.place.rpartition(" in ")[2] for cell in named if "row" in cell.place} == {*alike_tables}
    # A view, or a table that the program makes.
    assert not [cell for cell in found(history, scenario, MEANS, Passed(tables=[])).cells if "row" in cell.place]


@pytest.mark.parametrize("progress", ["group", "dstreams", "async"])
def test_no_cell_is_one_that_can_never_come(progress: str) -> None:
    scenario = replace(SCENARIO, pipeline=replace(SCENARIO.pipeline, progress=progress))
    for cell in found(lines(planned(1)), scenario, MEANS).cells:
        (step,) = cell.steps
        assert not any(TRIGGERS[step.when.kind].refusals(replace(step.when, batch=1), possible.planned(scenario)))


def test_of_several_queries_each_place_names_its_own() -> None:
    history = lines(planned(1, query="a"), planned(1, query="b"), *both(Op.RENAME, "commits/1", "a"))
    assert "before rename of commits, a" in places(history)


ONCE, OUTAGE = Step(when=BEFORE, do=KILL), Step(when=BEFORE, do=fault("kill postgres", for_s=1.0))


def cells(*firsts: bool) -> list[Cell]:
    return [Cell(steps=(ONCE,), first=first) for first in firsts]


def test_a_second_crash_comes_where_the_recovery_passes() -> None:
    history = lines(
        planned(1), *both(Op.CREATE, "offsets/1"), *both(Op.RENAME, "offsets/1"), *both(Op.RENAME, "commits/1")
    )
    twice = [cell for cell in found(history, SCENARIO, MEANS, pairs=True).cells if len(cell.steps) > 1]
    after = {each: [cell.place for cell in twice if cell.steps[0].when.place == each] for each in places(history)}
    assert len(after["before rename of offsets"]) == 7
    assert len(after["after rename of offsets"]) == len(after["before rename of commits"]) == 3
    assert after["after rename of commits"] == []
    assert "before rename of commits, then after rename of commits" in after["before rename of commits"]
    assert {cell.fault for cell in twice} == {"kill driver"}


CELLS = st.builds(Cell, steps=st.sampled_from([(ONCE,), (OUTAGE,), (ONCE, ONCE)]), first=st.booleans())


@given(st.lists(CELLS, max_size=40), st.integers(0, 3), st.integers(1, 9))
def test_each_cell_is_packed_once_with_a_batch_of_its_own(every: list[Cell], first_batch: int, most: int) -> None:
    runs = packed(SCENARIO, every, range(len(every)), first_batch, most)
    assert sorted(place for run in runs for place in run.cells) == list(range(len(every)))
    for run in runs:
        steps, numbers = run.scenario.schedule, numbered(every, run.cells)
        assert [number for mine in numbers.values() for number in mine] == [*range(1, len(steps) + 1)]
        batches = []
        for place, mine in numbers.items():
            assert [steps[number - 1].do for number in mine] == [step.do for step in every[place].steps]
            (batch,) = {steps[number - 1].when.batch for number in mine}
            assert batch is not None
            assert (batch == first_batch) is every[place].first
            batches.append(batch)
        assert all(after - before >= APART for before, after in pairwise(batches))
        assert len(run.cells) == 1 or (len(steps) <= most and not alone(run.scenario))
        assert run.scenario.restart.max_restarts >= len(steps)


def step(number: int, *, injected: bool = True) -> StepOutcome:
    evidence = Evidence(signalled={"1": "gone"}, driver_status=-9) if injected else Evidence(note="it never came")
    return StepOutcome(
        name="kill driver", point="p", batch=number, injected=injected, evidence=evidence, attempt=number
    )


def exposure(number: int, **changes: Any) -> Exposure:
    return replace(
        Exposure(step=number, position=0, sink="s", harm=Harm.LOSS, point="p", note="loss", records=7), **changes
    )


def verdict(word: Word = Word.HELD, **changes: Any) -> Verdict:
    plain = Verdict(
        word=word, as_expected=True, expected="held", steps=(step(1), step(2)), exposures=(exposure(1), exposure(2))
    )
    return replace(plain, **changes)


def told(
    verdict: Verdict,
    cells: dict[int, tuple[int, ...]] | None = None,
    *,
    batches: tuple[int | None, ...] = (1, 2),
    sound: bool = True,
    last: bool = False,
) -> Outcomes:
    return Played(
        verdict=verdict,
        cells=cells or {4: (1,), 5: (2,)},
        batches=batches,
        first_batch=1,
        sound=sound,
        last=last,
    ).outcomes()


def words(told: Outcomes) -> tuple[list[tuple[int, Word]], list[int]]:
    return [(each.cell, each.word) for each in told.results], list(told.again)


def caused(*causes: tuple[Kind, tuple[int, ...]], **more: Any) -> Attribution:
    return Attribution(causes=causes, **more)


HELD, VIOLATED, UNTESTED = Word.HELD, Word.VIOLATED, Word.UNTESTED


@pytest.mark.parametrize(
    ("of", "sound", "results", "again"),
    [
        (verdict(), True, [(4, HELD), (5, HELD)], []),
        (verdict(), False, [], [4, 5]),
        (verdict(exposures=(exposure(1),)), True, [(4, HELD), (5, UNTESTED)], []),
        (verdict(exposures=(exposure(1), exposure(2, why="x"))), True, [(4, HELD), (5, UNTESTED)], []),
        (verdict(UNTESTED, exposures=()), True, [(4, UNTESTED), (5, UNTESTED)], []),
        (verdict(UNTESTED, steps=(step(1), step(2, injected=False))), True, [], [4, 5]),
        (verdict(UNTESTED, steps=(step(1),)), True, [], [4, 5]),
        (verdict(Word.ERROR), True, [], [4, 5]),
        (verdict(Word.INCONCLUSIVE), True, [], [4, 5]),
        (verdict(Word.ERROR, exposures=()), True, [], [4, 5]),
        (verdict(exposures=(exposure(1),), attribution=Attribution(unknown=(2,))), True, [(4, HELD)], [5]),
        (verdict(VIOLATED, attribution=caused((Kind.LOST, (2,)), cut=True)), True, [(5, VIOLATED)], [4]),
        (verdict(VIOLATED, attribution=caused((Kind.LOST, (1,)))), True, [(4, VIOLATED)], [5]),
        (verdict(VIOLATED, attribution=caused((Kind.LOST, (2,)))), True, [(4, HELD), (5, VIOLATED)], []),
        (verdict(VIOLATED, attribution=caused((Kind.LOST, (2,))), reasons=("open",)), True, [(5, VIOLATED)], [4]),
        (verdict(VIOLATED, attribution=caused((Kind.LOST, (1, 2)))), True, [], [4, 5]),
        (verdict(VIOLATED, attribution=caused((Kind.LOST, ()))), True, [], [4, 5]),
    ],
)
def test_what_a_run_says_of_each_of_its_cells(
    of: Verdict, sound: bool, results: list[tuple[int, Word]], again: list[int]
) -> None:
    assert words(told(of, sound=sound)) == (results, again)


def test_a_batch_in_place_of_another_is_not_the_cell_that_was_asked_for() -> None:
    """Alone in its run, a later batch may be another one."""
    assert words(told(verdict(), batches=(1, 4))) == ([(4, HELD)], [5])
    alone = verdict(steps=(step(3),), exposures=(exposure(1),))
    assert words(told(alone, {4: (1,)}, batches=(2,))) == ([(4, HELD)], [])
    assert words(told(alone, {4: (1,)}, batches=(1,))) == ([], [4])
    (given_up,) = told(alone, {4: (1,)}, batches=(1,), last=True).results
    assert (given_up.word, given_up.reached) == (UNTESTED, False)
    assert given_up.why == "batch 3 was struck in place of batch 1"


def test_the_last_try_says_why_there_is_no_better_word() -> None:
    missed = verdict(UNTESTED, steps=(step(1), step(2, injected=False)))
    out = told(missed, last=True)
    assert [(each.cell, each.word, each.why, each.reached) for each in out.results] == [
        (4, UNTESTED, "", True),
        (5, UNTESTED, "it never came", False),
    ]
    late = verdict(Word.INCONCLUSIVE, reasons=("not caught up",))
    assert [(each.word, each.why) for each in told(late, {4: (1,)}, sound=False, last=True).results] == [
        (Word.INCONCLUSIVE, "not caught up")
    ]
    unsound = told(verdict(), {4: (1,)}, sound=False, last=True)
    assert [each.word for each in unsound.results] == [Word.INCONCLUSIVE]
    unexplained = told(verdict(VIOLATED, attribution=caused((Kind.LOST, ()))), {4: (1,)}, last=True)
    assert [each.word for each in unexplained.results] == [Word.INCONCLUSIVE]


def test_why_a_cell_exposed_nothing_is_the_judges_word() -> None:
    idle = verdict(exposures=(exposure(1),), attribution=Attribution(idle={2: "the batch held no record"}))
    assert [each.why for each in told(idle).results] == ["", "the batch held no record"]


def test_of_two_crashes_in_one_batch_either_may_have_done_it() -> None:
    found = verdict(VIOLATED, attribution=caused((Kind.LOST, (1, 2)), (Kind.DUPLICATED, (2,))))
    (pair,) = told(found, {7: (1, 2)}).results
    assert (pair.word, pair.kinds, pair.records) == (VIOLATED, (Kind.LOST, Kind.DUPLICATED), 7)
    missed = verdict(UNTESTED, steps=(step(1), step(2, injected=False)))
    (pair,) = told(missed, {7: (1, 2)}, last=True).results
    assert (pair.word, pair.reached, pair.why) == (UNTESTED, False, "it never came")


def result(cell: int, word: Word, *kinds: Kind) -> Result:
    return Result(cell=cell, word=word, kinds=kinds, records=7, reached=word is not UNTESTED)


TWICE = (Kind.DUPLICATED,)
BROKEN = Expected(word=VIOLATED, kinds=TWICE)
TABLE = Expected(at={"sink-committed": BROKEN})


@pytest.mark.parametrize(
    ("expected", "results", "code"),
    [
        (TABLE, [result(0, VIOLATED, *TWICE), result(1, VIOLATED, *TWICE)], 0),
        (TABLE, [result(0, VIOLATED, *TWICE), result(1, HELD)], 1),
        (TABLE, [result(0, VIOLATED, *TWICE), result(1, UNTESTED)], 3),
        (TABLE, [result(0, VIOLATED, *TWICE), result(1, VIOLATED, Kind.LOST)], 1),
        (Expected(at={"batch-planned": BROKEN}), [result(0, HELD), result(1, VIOLATED, *TWICE)], 1),
        (Expected(at={"batch-planned": BROKEN}), [result(0, HELD), result(1, UNTESTED)], 0),
        (Expected(at={"sink-committed": Expected()}), [result(0, HELD), result(1, UNTESTED)], 3),
        (Expected(), [result(0, HELD), result(1, UNTESTED)], 0),
        (Expected(), [result(0, HELD), result(1, VIOLATED, Kind.LOST)], 1),
        (Expected(), [result(0, UNTESTED)], 3),
        (Expected(), [result(0, HELD), result(1, Word.INCONCLUSIVE)], 3),
        (Expected(), [result(0, HELD), result(1, Word.ERROR)], 4),
        (Expected(word=VIOLATED, kinds=(Kind.LOST,)), [result(0, HELD), result(1, VIOLATED, Kind.LOST)], 0),
        (
            Expected(word=VIOLATED, kinds=(Kind.LOST,)),
            [result(0, HELD), result(1, VIOLATED, Kind.DUPLICATED)],
            1,
        ),
        (Expected(word=VIOLATED, kinds=(Kind.LOST,)), [result(0, HELD)], 1),
    ],
)
def test_the_exit_code(expected: Expected, results: list[Result], code: int) -> None:
    assert answer.code(expected, cells(True, False), results) == code


def test_a_known_failure_is_a_test_all_the_same() -> None:
    results = [result(0, VIOLATED, Kind.LOST), result(1, UNTESTED)]
    assert [answer.code(Expected(), cells(True, False), results, known) for known in ((), (0,), (1,))] == [
        1,
        0,
        1,
    ]


def test_the_most_exact_name_of_a_crash_point_says_what_is_expected() -> None:
    (step,) = cells(False)[0].steps
    assert names(step, "later batch") == (
        "kill driver sink-committed (later batch)", "kill driver sink-committed",
        "sink-committed (later batch)", "sink-committed",
    )  # fmt: skip
    for at, name in enumerate(every := names(step, "later batch")):
        said = {each: BROKEN if each == name else Expected() for each in every[at:]}
        assert at_step(Expected(at=said), step, "later batch") == BROKEN
    assert at_step(TABLE, step, "first batch") == BROKEN
    assert at_step(Expected(), step, "first batch") is None
    assert at_step(Expected(at={"sink-committed (later batch)": BROKEN}), step, "first batch") is None
    other = Step(when=OPERATION.at(Op.RENAME, Side.BEFORE, "commits", query="a"), do=KILL)
    assert crash_points(other) == (
        "kill driver before rename of commits, a", "before rename of commits, a",
        "kill driver before rename of commits", "before rename of commits",
        "kill driver sink-committed", "sink-committed",
    )  # fmt: skip


def test_one_kind_of_batch_can_be_named() -> None:
    every = cells(True, False)
    assert chosen(every, ["sink-committed (first batch)"]) == every[:1]
    assert chosen(every, ["kill driver sink-committed (later batch)"]) == every[1:]
    later = replace(SCENARIO, crash_points=("sink-committed (later batch)",))
    assert unknown(later, every) == ""
    assert unknown(later, every[:1]).startswith("crash_points names 'sink-committed (later batch)', which is no")


def test_of_two_crashes_each_may_do_what_it_does_alone() -> None:
    pair = Cell(steps=(ONCE, Step(when=TRIGGERS["point"].trigger("batch-planned"), do=KILL)))
    assert as_expected(TABLE, pair, result(0, VIOLATED, *TWICE))
    assert as_expected(TABLE, pair, result(0, HELD))
    assert not as_expected(TABLE, pair, result(0, VIOLATED, Kind.LOST))
    assert not as_expected(TABLE, pair, result(0, Word.INCONCLUSIVE))


def test_crash_points_that_are_named_are_those_that_the_pipeline_has() -> None:
    every = [*cells(False), Cell(steps=(Step(when=TRIGGERS["point"].trigger("batch-planned"), do=KILL),))]
    assert chosen(every, ["sink-committed"]) == every[:1]
    assert chosen(every, ["kill driver batch-planned"]) == every[1:]
    assert chosen(every, ["all"]) == chosen(every, []) == every
    assert unknown(replace(SCENARIO, crash_points=("all",), verdict=TABLE), every) == ""
    assert unknown(replace(SCENARIO, crash_points=("sink-comitted",)), every) == (
        "crash_points names 'sink-comitted', which is no crash point that is tried; did you mean 'sink-committed'?: "
        "sink-committed, kill driver sink-committed, batch-planned, kill driver batch-planned"
    )
    missing = replace(SCENARIO, crash_points=("all",), verdict=Expected(at={"failpoint a": BROKEN}))
    assert unknown(missing, every).startswith("verdict names 'failpoint a', which is no crash point that is tried")


def test_failpoints_that_the_program_comes_to_are_crash_points() -> None:
    history = lines(planned(1), *both(Op.RENAME, "commits/1"))
    passed = Passed(failpoints={"after-insert": False, "No name": False, "in-task": True})
    seen = [cell for cell in found(history, SCENARIO, MEANS, passed).cells if not cell.first]
    assert {each.place for each in seen if "failpoint" in each.place} == {"failpoint after-insert", "failpoint in-task"}
    assert "failpoint after-insert" not in {cell.place for cell in found(history, SCENARIO, MEANS).cells}
    # An executor has something in flight where a task of it stands.
    executors = [each.place for each in seen if each.fault == "kill executor" and "failpoint" in each.place]
    assert executors == ["failpoint in-task"]


def test_a_process_leaves_the_names_of_the_failpoints_that_it_comes_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "failpoints"
    monkeypatch.setattr(failpoint, "_reached", set())
    failpoint.reach("unasked")
    monkeypatch.setenv(failpoint.FOLDER, str(folder))
    failpoint.reach("in-driver")
    monkeypatch.setattr(pyspark.TaskContext, "get", lambda: pyspark.TaskContext())
    failpoint.reach("in-task", batch=3)
    assert failpoint.seen(folder) == {"in-driver": False, "in-task": True}


def test_the_commit_of_a_sink_with_a_log_of_its_own_is_a_crash_point() -> None:
    history = lines(planned(1, query="a"), planned(1, query="b"), *both(Op.RENAME, "commits/1", "a"))
    sinks = tuple(Sink(kind="delta", target=name, expected="select id from ledger", query=name) for name in ("a", "b"))
    scenario = replace(SCENARIO, sinks=sinks)
    seen = found(history, scenario, MEANS, Passed(commit_logs=["a", "b"])).cells
    own = [cell for cell in seen if "sink-committing" in cell.place]
    assert [(cell.place, cell.fault) for cell in own if not cell.first] == [
        ("sink-committing, a", "kill driver"), ("sink-committing, b", "kill driver"),
    ]  # fmt: skip
    assert not [cell for cell in found(history, SCENARIO, MEANS).cells if "sink-committing" in cell.place]


def test_several_sinks_of_one_query_have_one_commit_to_crash() -> None:
    history = lines(planned(1), *both(Op.RENAME, "commits/1"))
    for logs in ([None, None], ["a", "a"], ["a"]):
        scenario = replace(SCENARIO, sinks=tuple(Sink(kind="delta", target="t", query=name) for name in logs))
        seen = found(history, scenario, MEANS, Passed(commit_logs=logs), pairs=True).cells
        own = [cell for cell in seen if cell.place == "sink-committing"]
        assert [cell.first for cell in own] == [False, True], logs
        assert "sink-committing, then before rename of commits" in {cell.place for cell in seen}


def test_of_several_executors_none_is_known_to_stand_at_a_failpoint() -> None:
    history, passed = lines(planned(1)), Passed(failpoints={"in-task": True})
    two = replace(SCENARIO, pipeline=replace(SCENARIO.pipeline, executors=2))
    faults = {
        many: {cell.fault for cell in found(history, each, MEANS, passed).cells if cell.place == "failpoint in-task"}
        for many, each in ((1, SCENARIO), (2, two))
    }
    assert faults[1] - faults[2] == {"kill executor"}


def test_a_cell_has_of_its_run_what_its_own_steps_did() -> None:
    mine, other, both_ = (
        replace(finding, faults=faults)
        for finding, faults in zip(
            (sample.duplicated(1), sample.duplicated(2), sample.lost()), (("b",), ("a",), ("a", "b")), strict=True
        )
    )
    whole = verdict(
        VIOLATED, findings=(mine, other, both_), attribution=caused((Kind.LOST, (1, 2)), labels={1: "a", 2: "b"})
    )
    assert own(whole, (2,)).findings == (mine,)
    assert own(whole, (2,)).steps == (step(2),)
    assert own(whole, (2,)).exposures == (exposure(1),)
    assert own(whole, (1, 2)).findings == (mine, other, both_)


def test_the_grid_fits_a_terminal_and_has_each_cell() -> None:
    long = TRIGGERS["failpoint"].trigger("a-failpoint-with-a-very-long-name-that-goes-on-and-on-and-on")
    every = [*cells(True, False), Cell(steps=(Step(when=long, do=KILL),))]
    shown = answer.grid(every, [result(0, HELD), result(1, VIOLATED, Kind.DUPLICATED)])
    assert all(len(line) <= answer.WIDTH for line in shown)
    assert len(shown) == 3
    assert "held (7)" in shown[1]
    assert "DUPLICATED" in shown[1]
    assert "not tried" in shown[2]
    pair = [*every, Cell(steps=(ONCE, ONCE)), Cell(steps=(ONCE, ONCE))]
    told_ = answer.grid(pair, [result(3, HELD), result(4, VIOLATED, Kind.LOST)])
    assert told_[-1] == f"{BEFORE.place}, then another: 1 held, 1 LOST"
    # Whatever their order, each row has its own cells.
    moved = [
        replace(each, cell=(each.cell + 2) % 5) for each in (result(0, HELD), result(1, VIOLATED, Kind.DUPLICATED))
    ]
    assert answer.grid([*pair[3:], *pair[:3]], moved)[1] == shown[1]


def test_the_sentence_counts_what_was_tried_and_what_was_not() -> None:
    every = cells(True, False, False)
    held = [result(0, HELD), result(1, HELD), result(2, UNTESTED)]
    assert answer.sentence("a.py", every, held) == "a.py: held at all 2 exposed cells; 1 not reached"
    broken = [result(0, HELD), result(1, VIOLATED, Kind.LOST), result(2, HELD)]
    assert answer.sentence("a.py", every, broken) == "a.py: breaks at 1 of 3 exposed cells (lost)"
    idle = [
        replace(result(0, UNTESTED), reached=True, why="empty"),
        replace(result(1, UNTESTED), reached=True, why="empty"),
    ]
    assert answer.sentence("a.py", every, idle) == "a.py: untested; 2 not exposed; 1 not tried"
    named = answer.sentence("a.py", every, held, left_out=7)
    assert named.endswith("; 1 not reached; 7 left out by crash_points")
    at = f"kill driver {BEFORE.place}"
    assert answer.unanswered(every, idle) == [f"not exposed: {at} (first batch), {at} (later batch): empty"]


def test_the_page_has_each_cell_where_it_breaks_and_what_says_nothing(tmp_path: Path) -> None:
    every = cells(True, False, False)
    results = [result(0, HELD), result(1, VIOLATED, Kind.LOST), replace(result(2, UNTESTED), why="<it> never came")]
    failing = {1: Path("failing/a.yaml")}
    page = pages.write(tmp_path / "sweep.html", "a.py", every, results, sentence="breaks at 1 of 2", failing=failing)
    text = page.read_text(encoding="utf-8")
    assert "breaks at 1 of 2" in text
    assert "held (7)" in text
    assert "onceproof run failing/a.yaml" in text
    assert "&lt;it&gt; never came" in text


@pytest.mark.parametrize("marker", ["", ".git"])
def test_a_scenario_for_one_cell_finds_its_program(tmp_path: Path, marker: str) -> None:
    for folder in filter(None, ("jobs", "scenarios", "reports/failing", marker)):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "jobs" / "a.py").touch()
    pipeline = replace(SCENARIO.pipeline, entry="jobs/a.py")
    scenario = replace(SCENARIO, pipeline=pipeline, path=str(tmp_path / "scenarios" / "a.yaml"))
    entry = placed(scenario, tmp_path / "reports" / "failing" / "b.yaml").pipeline.entry
    assert entry == ("jobs/a.py" if marker else str(tmp_path / "jobs" / "a.py"))


def test_a_sweep_that_was_killed_goes_on_with_what_it_knows(tmp_path: Path) -> None:
    path, every = tmp_path / "sweep.jsonl", cells(True, False)
    begun = State(path, "a", every)
    assert begun.results == []
    known = replace(result(1, VIOLATED, Kind.LOST), steps=(2,), folder=Path("x"))
    begun.add([known])
    with path.open("a", encoding="utf-8") as file:
        file.write('{"key": "torn')
    assert State(path, "a", every).results == [known]
    assert State(path, "a", every[1:]).results == [replace(known, cell=0)]
    assert State(path, "a", every[:1]).results == []
    begun.add([known])
    assert State(path, "of another program", every).results == []
    assert State(path, "a", every).results == []
    begun.end()
    assert not path.exists()


def test_every_kind_of_fault_that_a_place_admits_can_be_said() -> None:
    assert all(fault(each.about.name) for each in FAULTS if not each.about.options.model_fields)
