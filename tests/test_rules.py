"""The seven rules: each point that the judge before them got wrong, with a twin that differs in one fact."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from harness.checkers.cells import Row
from harness.executions import executions
from harness.faults import fault
from harness.history import Line, QueryStarted, TaskEnded, TaskStarted
from harness.judge import Judged, judged
from harness.judge.ran_again import Ran, in_the_driver, ran_again
from harness.scenario import Expected, Guarantee, Kind, Sink, Word
from harness.snapshot import ENDED, Batch, Query
from tests.corpus.run_builder import CHECKPOINT, Moment, RunBuilder, blame, run_builder
from tests.folders import PER_RECORD, STEP, TOTALS, TYPES

pytestmark = pytest.mark.usefixtures("asked_once")

Build = Callable[[RunBuilder], None]
AUDIT = Sink(kind="postgres", target="audit", expected="select id, account, amount from ledger", key=("id",))
TWO = [TYPES["payments"], TYPES["payments"]]
DUPLICATED, LOST, WRONG = Kind.DUPLICATED, Kind.LOST, Kind.WRONG_AGGREGATE


@pytest.fixture
def ruled(tmp_path: Path) -> Iterator[Callable[[Build], Judged]]:
    """Judge a run of four batches of ten records, killed when batch 1 was in the sink, with three clean baseline runs,
    as changed."""
    yield lambda build: judged(_built(tmp_path / "run", build).write())


def _built(path: Path, build: Build) -> RunBuilder:
    run = run_builder(path)
    run.injection(1)
    run.calm()
    build(run)
    return run


def told(found: Judged) -> tuple[Word, dict[str, int], set[str]]:
    """The word, the findings by kind, the steps that caused them."""
    verdict = found.verdict
    return verdict.word, verdict.kinds(), {fault for finding in verdict.findings for fault in finding.faults}


def words(found: Judged) -> str:
    """All that a verdict says."""
    verdict = found.verdict
    notes = [finding.note for finding in verdict.findings] + [exposure.note for exposure in verdict.exposures]
    return "\n".join([*verdict.reasons, *verdict.notes, *notes])


def test_expected_rows_that_reprocessing_cannot_change_are_tested(ruled: Callable[[Build], Judged]) -> None:
    found = ruled(lambda run: run.sink(replace(PER_RECORD, expected="select distinct id, account, amount from ledger")))
    assert told(found) == (Word.HELD, {}, set())
    assert "reprocessing cannot change these expected rows" in words(found)


def test_records_without_expected_rows_are_not_tested(ruled: Callable[[Build], Judged]) -> None:
    found = ruled(lambda run: run.sink(replace(PER_RECORD, expected=f"{PER_RECORD.expected} where id < 10")))
    assert told(found)[0] is Word.UNTESTED
    assert "none of its 10 records has an expected row" in words(found)


def empty_beside_a_whole_one(run: RunBuilder, *, baseline: bool) -> None:
    run.sink(PER_RECORD, AUDIT, types=TWO)
    run.tables = [run.rows((0, 40)), []]
    run.calm(*[[] if baseline else run.tables] * 3)


def test_a_sink_that_got_nothing_has_lost_all_of_it(ruled: Callable[[Build], Judged]) -> None:
    found = ruled(lambda run: empty_beside_a_whole_one(run, baseline=True))
    assert told(found) == (Word.VIOLATED, {LOST: 40}, {blame(1)})


def test_a_sink_that_gets_nothing_beside_a_whole_one_loses_all_of_it_without_faults_too(
    ruled: Callable[[Build], Judged],
) -> None:
    found = ruled(lambda run: empty_beside_a_whole_one(run, baseline=False))
    assert told(found) == (Word.VIOLATED, {LOST: 40}, set())
    assert all(finding.without_faults for finding in found.verdict.findings)
    assert "audit holds no row: is it the right table?" in words(found)


@pytest.mark.parametrize("beside", [False, True])
def test_a_sink_without_an_expected_key_may_be_the_wrong_table(ruled: Callable[[Build], Judged], beside: bool) -> None:
    """One that is empty where no other sink holds anything, and one that holds other rows."""

    def build(run: RunBuilder) -> None:
        run.sink(PER_RECORD, AUDIT, types=TWO)
        other: list[Row] = [("9999", "a1", "1.00")] if beside else []
        run.tables = [run.rows((0, 40)) if beside else [], other]
        run.calm(*[run.tables] * 3)

    found = ruled(build)
    assert "is it the right table?" in words(found)
    assert told(found)[0] is Word.UNTESTED


def staged_rows(run: RunBuilder) -> None:
    """Batch 0 was committed, and its rows come again out of a staging table."""
    run.found(holds=20)
    run.tables = [run.rows((0, 40), again=[(0, 10)])]


def test_what_only_runs_with_the_fault_show_is_its_doing(ruled: Callable[[Build], Judged]) -> None:
    found = ruled(staged_rows)
    assert told(found) == (Word.VIOLATED, {DUPLICATED: 10}, {blame(1)})
    assert "only in runs with this fault" in words(found)


def test_what_baseline_runs_show_too_is_not(ruled: Callable[[Build], Judged]) -> None:
    def build(run: RunBuilder) -> None:
        staged_rows(run)
        run.calm(*[run.tables] * 3)

    found = ruled(build)
    assert told(found) == (Word.VIOLATED, {DUPLICATED: 10}, set())
    assert all(finding.without_faults for finding in found.verdict.findings)


def test_kinds_may_agree_where_rows_differ(ruled: Callable[[Build], Judged]) -> None:
    def build(run: RunBuilder) -> None:
        run.claim(verdict=Expected(word=Word.VIOLATED, kinds=(DUPLICATED,), without_faults=True))
        run.tables = [run.rows((0, 40), again=[(30, 31)])]
        run.calm(*[[run.rows((0, 40), again=[(n, n + 1)])] for n in (3, 5, 7)])

    found = ruled(build)
    assert told(found) == (Word.VIOLATED, {DUPLICATED: 1}, set())
    assert found.verdict.as_expected
    assert "of other records in each baseline run" in words(found)


def test_no_violation_without_a_baseline_run(ruled: Callable[[Build], Judged]) -> None:
    def build(run: RunBuilder) -> None:
        run.tables = [run.rows((0, 40), again=[(10, 20)])]
        run.baseline_runs = []

    found = ruled(build)
    assert (found.verdict.word, found.baseline_runs_needed) == (Word.INCONCLUSIVE, 1)


def two_sinks(run: RunBuilder, expected: str) -> None:
    run.sink(PER_RECORD, replace(AUDIT, expected=expected), types=TWO)
    run.tables = [run.rows((0, 40), again=[(10, 20)]), run.rows((0, 40))]


IN_ANY_ORDER = "select id, account, first_value(amount) over () as amount from ledger"


def test_an_error_of_one_sink_does_not_hide_the_violation_of_another(ruled: Callable[[Build], Judged]) -> None:
    found = ruled(lambda run: two_sinks(run, IN_ANY_ORDER))
    assert told(found)[0] is Word.VIOLATED
    assert "gives other rows when the ledger is in another order" in words(found)


def test_a_sink_whose_expected_rows_are_wrong_has_no_violation(ruled: Callable[[Build], Judged]) -> None:
    def build(run: RunBuilder) -> None:
        two_sinks(run, IN_ANY_ORDER)
        run.tables = [run.rows((0, 40)), run.rows((0, 30))]

    assert told(ruled(build))[0] is Word.ERROR


def test_a_step_that_no_attempt_survives_was_a_test(ruled: Callable[[Build], Judged]) -> None:
    """A new version that cannot read the checkpoint: nothing ran again, and nothing went on beyond."""

    def build(run: RunBuilder) -> None:
        run.found(again=None)
        run.progress, run.tables = 10, [run.rows((0, 20))]
        run.outcome = {"caught_up": False, "stalled": {"kind": "gave up", "idle_s": 1.0, "words": "it died 6 times"}}
        run.claim(verdict=Expected(word=Word.VIOLATED, kinds=(Kind.STALLED,)))

    found = ruled(build)
    assert found.verdict.as_expected, found.verdict.reasons
    assert told(found) == (Word.VIOLATED, {Kind.STALLED: 1}, {blame(1)})


def test_a_step_that_caused_a_violation_was_a_test(ruled: Callable[[Build], Judged]) -> None:
    """The batch is in the sink, and the next attempt begins beyond it. Lines that the driver had received are lost."""

    def build(run: RunBuilder) -> None:
        run.injection(1, point="sink-committed", holds=20, again=2)
        taken = [(0, 10), (10, 20), (25, 30), (30, 40)]
        run.batches = [
            Batch(batch=n, ranges={0: each}, committed=True, attempts=(1 if n < 2 else 2,))
            for n, each in enumerate(taken)
        ]
        run.queries = [Query(checkpoint=CHECKPOINT, batches=tuple(run.batches), first={1: 0, 2: 2})]
        run.tables = [run.rows((0, 20), (25, 40))]
        run.claim(verdict=Expected(word=Word.VIOLATED, kinds=(LOST,)))

    found = ruled(build)
    assert told(found) == (Word.VIOLATED, {LOST: 5}, {blame(1)})
    assert found.verdict.as_expected
    assert (found.verdict.reasons, found.verdict.exposures) == ((), ())
    assert "no step counts" not in words(found)


def emptied(run: RunBuilder, *rest: tuple[int, int]) -> None:
    """The rows of the first two batches were there at the fault, and are gone in the end."""
    run.found(holds=20)
    run.tables = [run.rows(*rest)]


@pytest.mark.parametrize("rest", [[], [(20, 40)]])
def test_a_sink_that_a_fault_emptied_is_the_right_table(
    ruled: Callable[[Build], Judged], rest: list[tuple[int, int]]
) -> None:
    def build(run: RunBuilder) -> None:
        emptied(run, *rest)
        run.claim(verdict=Expected(word=Word.VIOLATED, kinds=(LOST,)))

    found = ruled(build)
    assert found.verdict.as_expected, found.verdict.reasons
    assert told(found) == (Word.VIOLATED, {LOST: 40 if not rest else 20}, {blame(1)})


def test_at_most_once_allows_what_the_driver_held_in_memory(ruled: Callable[[Build], Judged]) -> None:
    """Three batches are flushed at once: rows of committed batches die with the driver."""

    def build(run: RunBuilder) -> None:
        run.claim(guarantee=Guarantee.AT_MOST_ONCE)
        run.found(holds=5)
        run.tables = [run.rows((0, 5), (20, 40))]

    assert told(ruled(build))[0] is not Word.VIOLATED


def test_exactly_once_does_not(ruled: Callable[[Build], Judged]) -> None:
    def build(run: RunBuilder) -> None:
        run.found(holds=10)
        run.tables = [run.rows((0, 10), (20, 40))]

    assert told(ruled(build)) == (Word.VIOLATED, {LOST: 10}, {blame(1)})


def test_at_most_once_does_not_allow_a_loss_without_faults(ruled: Callable[[Build], Judged]) -> None:
    def build(run: RunBuilder) -> None:
        run.claim(guarantee=Guarantee.AT_MOST_ONCE)
        run.tables = [run.rows((0, 30))]
        run.calm(*[run.tables] * 3)

    assert told(ruled(build)) == (Word.VIOLATED, {LOST: 10}, set())


def repaired(run: RunBuilder, *, again: bool) -> None:
    """The first restart doubles batch 1, the second one cleans up."""
    run.injection(2)
    run.found(2, tables=[run.rows((0, 30), again=[(10, 20)] if again else [])])


def test_what_a_later_restart_repairs_was_broken(ruled: Callable[[Build], Judged]) -> None:
    found = ruled(lambda run: repaired(run, again=True))
    assert told(found) == (Word.VIOLATED, {DUPLICATED: 10}, {blame(1)})
    assert "there at the reading of step 2, and gone in the end" in words(found)


def test_what_was_never_broken_is_held(ruled: Callable[[Build], Judged]) -> None:
    assert told(ruled(lambda run: repaired(run, again=False))) == (Word.HELD, {}, set())


def ended_by_itself(run: RunBuilder, *, again: bool) -> None:
    """Attempt 2 commits batch 1, which it has done again, and ends; the start of attempt 3 cleans up."""
    doubled = run.rows((0, 20), again=[(10, 20)] if again else [])
    run.moments.append(
        Moment(attempt=2, moment=ENDED.format(2), planned=2, committed=2, again=2, at_s=4.0, tables=[doubled])
    )


def test_what_the_start_after_an_attempt_that_ended_by_itself_repairs_was_broken(
    ruled: Callable[[Build], Judged],
) -> None:
    found = ruled(lambda run: ended_by_itself(run, again=True))
    assert told(found) == (Word.VIOLATED, {DUPLICATED: 10}, {blame(1)})
    assert "there when attempt 2 had ended by itself, and gone in the end" in words(found)


def test_an_attempt_that_ended_by_itself_and_broke_nothing(ruled: Callable[[Build], Judged]) -> None:
    assert told(ruled(lambda run: ended_by_itself(run, again=False))) == (Word.HELD, {}, set())


def test_totals_that_the_start_after_such_an_attempt_repairs_are_not_held(ruled: Callable[[Build], Judged]) -> None:
    def build(run: RunBuilder) -> None:
        run.sink(TOTALS)
        run.found(tables=[run.rows((0, 20))])
        ended_by_itself(run, again=True)

    found = ruled(build)
    assert told(found) == (Word.INCONCLUSIVE, {}, set())
    assert "when attempt 2 had ended by itself, " in words(found)


def missing(run: RunBuilder, **then: Any) -> None:
    """The second restart passes over batch 2, and the third one gives it."""
    run.injection(2, point="batch-planned", holds=20, again=3)
    run.injection(3)
    run.found(3, tables=[run.rows((0, 20), (30, 40))], **then)


def test_what_a_later_restart_gives_was_lost(ruled: Callable[[Build], Judged]) -> None:
    found = ruled(missing)
    assert told(found) == (Word.VIOLATED, {LOST: 10}, {blame(2, point="batch-planned", attempt=2)})
    assert "missing at the reading of step 3, and there in the end" in words(found)


def test_a_reading_that_lacks_what_no_step_interrupted_blames_none(ruled: Callable[[Build], Judged]) -> None:
    """The program empties its table and fills it again, and was read in between."""

    def build(run: RunBuilder) -> None:
        missing(run)
        run.found(3, tables=[[]])

    found = ruled(build)
    assert told(found) == (Word.INCONCLUSIVE, {}, set())
    assert "too many or too few rows at a reading, and are right in the end" in words(found)


def test_a_reading_of_a_sink_that_is_late_lacks_what_no_step_interrupted(ruled: Callable[[Build], Judged]) -> None:
    def build(run: RunBuilder) -> None:
        ended_by_itself(run, again=False)
        run.moments[-1] = replace(run.moments[-1], tables=[[]])
        run.claim(quiet_period_s=5.0)

    assert told(ruled(build)) == (Word.HELD, {}, set())


def test_at_most_once_allows_what_a_later_restart_gives(ruled: Callable[[Build], Judged]) -> None:
    def build(run: RunBuilder) -> None:
        missing(run)
        at_most_once(run)

    assert told(ruled(build))[0] is not Word.VIOLATED


@pytest.mark.parametrize(("declared", "word"), [(2.0, Word.VIOLATED), (4.0, Word.HELD)])
def test_a_row_is_late_for_as_long_as_the_scenario_says(
    ruled: Callable[[Build], Judged], declared: float, word: Word
) -> None:
    def build(run: RunBuilder) -> None:
        missing(run)
        run.claim(quiet_period_s=declared)

    assert told(ruled(build))[0] is word


def test_what_a_transaction_hides_at_a_reading_is_not_lost(ruled: Callable[[Build], Judged]) -> None:
    assert told(ruled(lambda run: missing(run, writing={"0": ["a transaction"]})))[0] is Word.HELD


def test_a_sink_that_the_program_never_wrote_exposes_nothing(ruled: Callable[[Build], Judged]) -> None:
    """Spark's word that its sink is committed is of another table."""

    def build(run: RunBuilder) -> None:
        run.found(tables=[[]])
        run.tables = [[]]
        run.calm(*[run.tables] * 3)

    found = ruled(build)
    assert told(found)[0] is Word.UNTESTED
    assert found.verdict.exposures == ()


def test_the_readings_say_which_of_two_steps_did_it(ruled: Callable[[Build], Judged]) -> None:
    def build(run: RunBuilder) -> None:
        run.injection(1)
        run.tables = [run.rows((0, 40), again=[(10, 20)])]

    assert told(ruled(build)) == (Word.VIOLATED, {DUPLICATED: 10}, {blame(1, attempt=2)})


def test_a_total_that_two_steps_doubled_names_both(ruled: Callable[[Build], Judged]) -> None:
    def build(run: RunBuilder) -> None:
        run.sink(replace(TOTALS, expected="select 'all' as account, count(*) as n, sum(amount) as total from ledger"))
        run.injection(2)
        run.found(1, tables=[run.rows((0, 20))])
        run.found(2, tables=[run.rows((0, 30), again=[(10, 20)])])
        run.tables = [run.rows((0, 40), again=[(10, 20), (20, 30)])]

    assert told(ruled(build)) == (Word.VIOLATED, {WRONG: 1}, {blame(1), blame(2, attempt=2)})


def test_at_least_once_allows_a_total_that_only_reprocessing_explains(ruled: Callable[[Build], Judged]) -> None:
    def build(run: RunBuilder) -> None:
        run.claim(guarantee=Guarantee.AT_LEAST_ONCE)
        run.sink(TOTALS)
        run.injection(2, point="batch-planned", holds=20)
        run.tables = [run.rows((0, 40), again=[(10, 20)])]

    assert told(ruled(build))[0] is Word.HELD


def test_at_least_once_does_not_allow_one_that_lacks_a_batch(ruled: Callable[[Build], Judged]) -> None:
    def build(run: RunBuilder) -> None:
        run.claim(guarantee=Guarantee.AT_LEAST_ONCE)
        run.sink(TOTALS)
        run.injection(2, point="batch-planned", holds=20)
        run.tables = [run.rows((0, 20), (30, 40))]

    assert told(ruled(build)) == (Word.VIOLATED, {WRONG: 4}, {blame(2, point="batch-planned", attempt=2)})


def at_most_once(run: RunBuilder) -> None:
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)


def test_at_most_once_allows_no_low_total_without_a_baseline_run(ruled: Callable[[Build], Judged]) -> None:
    def build(run: RunBuilder) -> None:
        at_most_once(run)
        run.sink(TOTALS)
        run.tables = [run.rows((0, 30))]
        run.baseline_runs = []

    found = ruled(build)
    assert (found.verdict.word, found.baseline_runs_needed) == (Word.INCONCLUSIVE, 1)


def test_nor_one_that_baseline_runs_differ_in(ruled: Callable[[Build], Judged]) -> None:
    def build(run: RunBuilder) -> None:
        at_most_once(run)
        run.sink(TOTALS)
        run.tables = [run.rows((0, 30))]
        run.calm(run.tables, [], [])

    assert told(ruled(build))[0] is Word.INCONCLUSIVE


@pytest.mark.parametrize("guarantee", Guarantee)
def test_no_guarantee_allows_a_row_with_another_amount(ruled: Callable[[Build], Judged], guarantee: Guarantee) -> None:
    def build(run: RunBuilder) -> None:
        run.claim(guarantee=guarantee)
        rows = run.rows((0, 40))
        run.tables = [[(row[0], row[1], "7") if row[0] == "33" else row for row in rows]]

    assert told(ruled(build))[:2] == (Word.VIOLATED, {Kind.CORRUPTED: 1})


def test_a_reading_that_failed_neither_allows_a_loss_nor_forbids_it(ruled: Callable[[Build], Judged]) -> None:
    def build(run: RunBuilder) -> None:
        at_most_once(run)
        run.unread = {"1-injection/0": "server gone"}
        run.tables = [run.rows((0, 10), (20, 40))]

    word, _, _ = told(ruled(build))
    assert word not in (Word.VIOLATED, Word.HELD)


def test_a_step_that_was_not_read_stays_a_candidate(ruled: Callable[[Build], Judged]) -> None:
    def build(run: RunBuilder) -> None:
        run.injection(2)
        run.unread = {"1-injection/0": "server gone"}
        run.found(2, tables=[run.rows((0, 10), (20, 30))])
        run.tables = [run.rows((0, 10), (20, 40))]

    found = ruled(build)
    assert told(found) == (Word.VIOLATED, {LOST: 10}, set())
    assert {step for finding in found.verdict.findings for step in finding.fits} == {blame(1), blame(2, attempt=2)}


def test_another_payload_at_a_reading_is_no_repetition(ruled: Callable[[Build], Judged]) -> None:
    """The program puts rows right later."""

    def build(run: RunBuilder) -> None:
        run.injection(2)
        run.found(2, tables=[[(key, account, "7") for key, account, _ in run.rows((0, 30))]])

    assert told(ruled(build))[0] is not Word.VIOLATED


def test_what_was_there_twice_before_any_fault_is_no_fault_s_doing(ruled: Callable[[Build], Judged]) -> None:
    found = ruled(lambda run: run.found(1, tables=[run.rows((0, 20), again=[(0, 10)])]))
    assert told(found)[0] is not Word.VIOLATED


def test_two_steps_may_each_add_a_copy(ruled: Callable[[Build], Judged]) -> None:
    def build(run: RunBuilder) -> None:
        run.injection(1)
        run.found(2, tables=[run.rows((0, 20), again=[(10, 20)])])
        run.tables = [run.rows((0, 40), again=[(10, 20), (10, 20)])]

    assert told(ruled(build)) == (Word.VIOLATED, {DUPLICATED: 10}, {blame(1), blame(1, attempt=2)})


def test_readings_do_not_tell_when_a_sum_of_doubles_went_wrong(ruled: Callable[[Build], Judged]) -> None:
    def build(run: RunBuilder) -> None:
        expected = "select account, sum(amount::double) as total from ledger group by account"
        run.sink(
            replace(TOTALS, expected=expected), types=[[TYPES["totals"][0], ("total", "double precision", "float")]]
        )
        run.injection(2)
        run.found(2, tables=[run.rows((0, 30), again=[(10, 20)])])
        run.tables = [run.rows((0, 40), again=[(10, 20)])]

    word, _, causes = told(ruled(build))
    assert word is Word.VIOLATED
    assert causes != {blame(2, attempt=2)}


def test_a_console_beside_a_sink_does_not_spoil_baseline_runs(ruled: Callable[[Build], Judged]) -> None:
    def build(run: RunBuilder) -> None:
        run.sink(PER_RECORD, Sink(kind="console", target="", expected=None))
        run.tables = [run.rows((0, 40), again=[(10, 20)]), None]
        run.calm(*[[run.rows((0, 40)), None]] * 3)

    word, kinds, causes = told(ruled(build))
    assert (word, kinds, causes) == (Word.VIOLATED, {DUPLICATED: 10}, {blame(1)})


def test_an_error_of_one_sink_keeps_no_baseline_run_from_being_made(ruled: Callable[[Build], Judged]) -> None:
    def build(run: RunBuilder) -> None:
        two_sinks(run, IN_ANY_ORDER)
        run.baseline_runs = []

    assert ruled(build).baseline_runs_needed == 1


def lived(run: RunBuilder, fault_name: str, **evidence: object) -> None:
    """The fault of step 1 spares the driver."""
    step = run.steps[0]
    known = {"driver_status": None, "signalled": {"kafka": "SIGKILL"}, **evidence}
    alive = replace(step.evidence, **known)  # type: ignore[arg-type]
    run.steps[0] = replace(step, name=fault_name, point="batch-planned", crash_point=None, evidence=alive)
    run.claim(schedule=(replace(STEP, do=fault(fault_name)),))


def test_a_batch_that_was_committed_without_the_server_was_not_interrupted(ruled: Callable[[Build], Judged]) -> None:
    def build(run: RunBuilder) -> None:
        run.found(1, holds=10, again=None)
        lived(run, "kill kafka", committed_meanwhile={"checkpoint": 1})

    assert told(ruled(build))[0] is Word.UNTESTED


@pytest.mark.parametrize("fault_name", ["kill postgres", "pause driver"])
def test_what_is_lost_by_a_driver_that_lived_was_interrupted(ruled: Callable[[Build], Judged], fault_name: str) -> None:
    """It took no notice of the outage, or its session had expired when it went on."""

    def build(run: RunBuilder) -> None:
        run.found(1, holds=10, again=None)
        run.tables = [run.rows((0, 10), (20, 40))]
        lived(run, fault_name, committed_meanwhile={"checkpoint": 1})
        run.claim(verdict=Expected(word=Word.VIOLATED, kinds=(Kind.LOST,)))

    found = ruled(build)
    assert told(found)[:2] == (Word.VIOLATED, {"lost": 10})
    assert found.verdict.as_expected and len(told(found)[2]) == 1


def test_what_a_driver_that_lived_never_missed_interrupted_nothing(ruled: Callable[[Build], Judged]) -> None:
    def build(run: RunBuilder) -> None:
        run.found(1, holds=10, again=None)
        lived(run, "lose blocks", healed=False)

    assert told(ruled(build))[0] is Word.UNTESTED


def test_one_that_was_not_is_exposed_to_a_loss(ruled: Callable[[Build], Judged]) -> None:
    def build(run: RunBuilder) -> None:
        run.found(1, holds=10, again=None)
        lived(run, "kill kafka")

    assert told(ruled(build))[0] is Word.HELD


def task(partition: int, began: float, ended: float) -> list[Line]:
    """A task of the batch in flight, seconds since the run began."""
    begun = TaskStarted(
        attempt=1,
        query="checkpoint",
        batch=1,
        stage=3,
        stage_attempt=0,
        partition=partition,
        attempt_number=0,
        executor="0",
    )
    return [Line(0, began, begun), Line(0, ended, TaskEnded(**asdict(begun), outcome="success"))]


@pytest.mark.parametrize(
    ("fault_name", "tasks", "word"),
    [
        ("kill kafka", [(1.0, 2.0)], Word.UNTESTED),
        ("kill kafka", [(1.0, 4.0)], Word.HELD),
        ("kill kafka", [(1.0, 2.0), (3.5, 4.0)], Word.HELD),
        ("kill kafka", [], Word.HELD),
        ("kill postgres", [(1.0, 2.0)], Word.HELD),
    ],
)
def test_a_batch_whose_tasks_had_read_the_source_does_not_miss_it(
    ruled: Callable[[Build], Judged], fault_name: str, tasks: list[tuple[float, float]], word: Word
) -> None:
    """The server is away from 3 s on."""

    def build(run: RunBuilder) -> None:
        run.found(1, holds=10, again=None)
        lived(run, fault_name, signalled={fault_name.removeprefix("kill "): "SIGKILL"})
        run.lines = [line for partition, each in enumerate(tasks) for line in task(partition, *each)]

    assert told(ruled(build)) == (word, {}, set())


@pytest.mark.parametrize(("ended", "word"), [(("postgres",), Word.HELD), (("kafka",), Word.UNTESTED)])
def test_a_pause_that_outlasts_the_session_with_the_sink_interrupts(
    ruled: Callable[[Build], Judged], ended: tuple[str, ...], word: Word
) -> None:
    def build(run: RunBuilder) -> None:
        run.found(1, holds=10, again=None)
        lived(run, "pause driver", disconnected=ended)

    assert told(ruled(build)) == (word, {}, set())


def started(at_s: float, *, stage: int = 3, number: int = 0, executor: str = "1") -> Line:
    task = TaskStarted(
        attempt=1,
        query="q",
        batch=4,
        stage=stage,
        stage_attempt=0,
        partition=0,
        attempt_number=number,
        executor=executor,
    )
    return Line(0, at_s, task)


def ended(at_s: float) -> Line:
    """The end of that task."""
    return Line(0, at_s, TaskEnded(**asdict(started(at_s).event), outcome="success"))


@pytest.mark.parametrize(("executor", "local"), [("0", False), ("driver", True)])
def test_a_task_with_a_local_master_runs_in_the_driver(executor: str, local: bool) -> None:
    assert in_the_driver(executions([started(1.0, executor=executor)])) is local


QUERY_AT_2_5 = Line(0, 2.5, QueryStarted(attempt=1, query="q", query_run="b"))


@pytest.mark.parametrize(
    ("lines", "again"),
    [
        ([], Ran.UNKNOWN),
        ([started(1.0)], Ran.NO),
        ([started(1.0), ended(1.5)], Ran.DONE),
        ([started(1.0), ended(2.5)], Ran.NO),
        ([started(1.0), ended(1.5), started(3.0, stage=4)], Ran.NO),
        ([started(1.0), started(3.0, stage=4)], Ran.NO),
        ([started(1.0), started(3.0, number=1)], Ran.RETRIED),
        ([started(1.0), QUERY_AT_2_5, started(3.0, stage=4)], Ran.RESTARTED),
        ([Line(0, 0.5, QUERY_AT_2_5.event), started(1.0), started(3.0, stage=4)], Ran.NO),
    ],
)
def test_a_batch_ran_again_by_a_retry_or_since_its_query_was_started_again(lines: list[Line], again: Ran) -> None:
    assert ran_again(executions(lines), since_s=2.0) is again
