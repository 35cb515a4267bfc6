"""Cases that once talked a verdict into green, or into red, on the real stack. Each has a twin that differs in one fact
and has another verdict; a twin in what is claimed is judged on the same run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.run.loop import Result
from harness.scenario import Harm, Kind, Scenario, Word
from tests.plays import COUNT, CRASH, EARLY, ONCE, TOTAL, Play, blamed, said

pytestmark = [pytest.mark.stack, pytest.mark.prove]


@pytest.fixture
def play(tmp_path: Path, run_scenario: Callable[[Scenario], Result]) -> Play:
    return Play(tmp_path, run_scenario)


# 1: the first batch.


@pytest.mark.parametrize(("flags", "word"), [(("--once",), Word.HELD), ((), Word.VIOLATED)])
def test_the_first_batch_with_records_is_struck_and_named(play: Play, flags: tuple[str, ...], word: Word) -> None:
    schedule = [{"when": {"point": "sink-committed", "batch": 0}, "do": "kill driver"}]
    verdict = play("payments", *flags, schedule=schedule, **({"setup": ONCE} if flags else {})).verdict
    (step,) = verdict.steps
    assert (verdict.word, step.injected, set(verdict.kinds())) == (word, True, set() if flags else {"duplicated"})
    named = (f"kill driver at sink-committed of batch {step.batch}, attempt 1",)
    assert blamed(verdict.findings) == (set() if flags else {named})


# 2: what reaches the judged sink.


@pytest.mark.parametrize(("last", "word"), [(40, Word.UNTESTED), (400, Word.VIOLATED)])
def test_a_struck_batch_counts_by_what_its_filter_lets_through(play: Play, last: int, word: Word) -> None:
    kept = f"id < {last}"
    expected = f"select id, account, amount from ledger where {kept}"
    to = {"postgres": "payments", "expected": expected, "key": ["id"]}
    verdict = play("payments", "--where", kept, sink=to).verdict
    assert verdict.steps[0].injected
    assert verdict.word is word
    assert ("records pass `expected`" in said(verdict)) == (word is Word.UNTESTED)


# 4: errors that cancel.


@pytest.mark.parametrize("when", [{"batch": 4}, {"failpoint": "sink-written", "batch": 4}])
def test_a_batch_lost_without_faults_and_one_of_its_size_counted_twice_are_never_held(
    play: Play, when: dict[str, Any]
) -> None:
    same = ("--max-records", "50", "--lose", "2")
    verdict = play("total", *same, **TOTAL, schedule=[{"when": when, "do": CRASH}], sink=COUNT).verdict
    assert verdict.steps[0].injected
    assert (verdict.word, verdict.findings) == (Word.UNTESTED, ())
    assert "gives the same totals" in said(verdict)


# 6: `expected` that is wrong.


def test_a_wrong_query_is_no_violation(play: Play) -> None:
    expected = "select id, account, cast(amount * 2 as decimal(12, 2)) as amount from ledger"
    to = {"postgres": "payments", "expected": expected, "key": ["id"]}
    result = play("payments", "--once", setup=ONCE, sink=to)
    assert (result.verdict.word, set(result.verdict.kinds())) == (Word.ERROR, {"corrupted"})
    assert "expected rows and pipeline do not fit" in said(result.verdict)
    assert blamed(result.verdict.findings) == {()}
    right = play.claimed(result, expected="select id, account, amount from ledger")
    assert (right.word, right.findings) == (Word.HELD, ())


def test_a_query_with_ties_is_an_error(play: Play) -> None:
    number = "select id, account, row_number() over (partition by account order by {}) as seq from ledger"
    to = {"postgres": "payments", "expected": number.format("currency"), "key": ["id"]}
    setup = {"postgres": "create table payments (id bigint primary key, account text, seq bigint)"}
    result = play("payments", "--once", "--columns", "id,account,seq", setup=setup, sink=to)
    assert result.verdict.word is Word.ERROR
    assert "when the ledger is in another order" in said(result.verdict)
    right = play.claimed(result, expected=number.format("_offset"))
    assert (right.word, right.findings) == (Word.HELD, ())


# 9: at most once. A loss that was not exposed: bench/hostile.py.


def test_at_most_once_allows_the_loss_of_what_was_exposed(play: Play) -> None:
    verdict = play("transactions/offsets_before", **EARLY).verdict
    assert verdict.word is Word.HELD
    assert {(finding.kind, finding.without_faults) for finding in verdict.findings} == {(Kind.LOST, False)}


# 14: a query that folds.

DISTINCT = {
    "postgres": "select distinct id, account from payments",
    "expected": "select id, account from ledger",
    "key": ["id"],
}


def test_a_query_that_folds_duplicates_has_to_say_so(play: Play) -> None:
    result = play("payments", sink=DISTINCT)
    assert (result.verdict.word, result.verdict.findings) == (Word.UNTESTED, ())
    assert "view: deduplicated" in said(result.verdict)
    meant = play.claimed(result, folds=True)
    assert meant.word is Word.UNTESTED
    assert "view: deduplicated" not in "\n".join(meant.reasons)
    assert [(exposure.harm, exposure.would_show) for exposure in meant.exposures] == [(Harm.REPETITION, False)]


def test_a_query_that_folds_duplicates_on_purpose_shows_a_loss(play: Play) -> None:
    schedule = [{"when": {"point": "batch-planned", "batch": 3}, "do": "kill driver"}]
    result = play("payments", sink={**DISTINCT, "view": "deduplicated"}, schedule=schedule)
    assert (result.verdict.word, result.verdict.findings) == (Word.HELD, ())
    assert result.verdict.notes
    unsaid = play.claimed(result, folds=False)
    assert unsaid.word is Word.UNTESTED
    assert "view: deduplicated" in said(unsaid)


# 15: one row in all.


@pytest.mark.parametrize(("flags", "word"), [(("--once",), Word.HELD), ((), Word.VIOLATED)])
def test_a_grand_total_is_judged(play: Play, flags: tuple[str, ...], word: Word) -> None:
    verdict = play("total", *flags).verdict
    assert verdict.word is word
    assert set(verdict.kinds()) == (set() if flags else {"wrong aggregate"})
    batch = verdict.steps[0].batch
    named = (f"{CRASH} at sink-committed of batch {batch}, attempt 1",)
    assert blamed(verdict.findings) == (set() if flags else {named})
