"""The longer adversarial cases on the real stack, with their fixed versions; the others are in tests/test_hostile.py.

.venv/bin/pytest bench/hostile.py
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.run.loop import Result
from harness.scenario import Harm, Scenario, Word
from tests.plays import COUNT, CRASH, EARLY, ONCE, TOTAL, Play, said

pytestmark = pytest.mark.stack
LOSER = """
create table payments (id bigint, account text, amount numeric(12, 2), currency text, event_time timestamp);
create table progress (partition int primary key, next_offset bigint not null, batch bigint not null);
create function lose() returns trigger language plpgsql as
  'begin if new.id = 590 then return null; end if; return new; end';
create trigger lose before insert on payments for each row execute function lose()
"""


@pytest.fixture
def play(tmp_path: Path, run_scenario: Callable[[Scenario], Result]) -> Play:
    return Play(tmp_path, run_scenario)


@pytest.mark.parametrize(("query", "word"), [("audit", Word.UNTESTED), ("payments", Word.VIOLATED)])
def test_a_fault_in_one_query_says_nothing_of_a_sink_that_another_one_feeds(play: Play, query: str, word: Word) -> None:
    when = {"point": "sink-committed", "batch": 2, "query": query}
    verdict = play("payments_then_audit", "--records", "600", schedule=[{"when": when, "do": "kill driver"}]).verdict
    assert verdict.steps[0].injected and verdict.steps[0].checkpoint == f"checkpoints/{query}"
    assert verdict.word is word


def test_where_their_sizes_differ_the_total_is_wrong_without_faults_too(play: Play) -> None:
    same = ("--max-records", "50", "--lose", "2", "--lose-records", "20")
    verdict = play("total", *same, **TOTAL, schedule=[{"when": {"batch": 4}, "do": CRASH}], sink=COUNT).verdict
    assert (verdict.word, set(verdict.kinds())) == (Word.ERROR, {"wrong aggregate"})
    assert "expected rows and pipeline do not fit" in said(verdict)


@pytest.mark.parametrize(("every", "word"), [(40, Word.INCONCLUSIVE), (2, Word.HELD)])
def test_a_long_trigger_interval_is_no_stall(play: Play, every: int, word: Word) -> None:
    schedule = [{"when": {"point": "batch-planned", "batch": 1}, "do": "kill driver"}]
    flags = ("--once", "--every", f"{every} seconds")
    keys: dict[str, Any] = {
        "setup": ONCE,
        "schedule": schedule,
        "timeout": "30s",
        "pipeline": {"interval": f"{every}s"},
    }
    verdict = play("payments", *flags, **keys).verdict
    assert (verdict.word, verdict.findings) == (word, ())


HOP: dict[str, Any] = {
    "input": {"records": 300},
    "schedule": [{"when": {"point": "batch-planned", "batch": 1}, "do": "kill driver"}],
}


@pytest.mark.parametrize(("flags", "word"), [((), Word.HELD), (("--forgets",), Word.VIOLATED)])
def test_a_second_hop_that_is_slow_is_waited_for_and_one_that_loses_is_caught(
    play: Play, flags: tuple[str, ...], word: Word
) -> None:
    """It makes its table itself, and so late: long after the last record of the topic is committed."""
    verdict = play("second_hop", "--makes", *flags, setup={"postgres": "select"}, **HOP).verdict
    assert verdict.word is word
    assert set(verdict.kinds()) == ({"lost"} if word is Word.VIOLATED else set())


def test_at_most_once_does_not_allow_a_loss_that_was_not_exposed(play: Play) -> None:
    verdict = play("transactions/offsets_before", **EARLY, setup={"postgres": LOSER}).verdict
    assert (verdict.word, set(verdict.kinds())) == (Word.VIOLATED, {"lost"})
    (beyond,) = [finding for finding in verdict.findings if finding.without_faults]
    assert (beyond.key, beyond.faults, beyond.without_faults) == ({"id": "590"}, (), True)


@pytest.mark.parametrize(("flags", "word"), [(("--dies-at", "4"), Word.ERROR), (("--never-again",), Word.VIOLATED)])
def test_a_program_that_dies_without_faults_too_is_no_violation(play: Play, flags: tuple[str, ...], word: Word) -> None:
    schedule = [{"when": {"point": "batch-planned", "batch": 2}, "do": "kill driver"}]
    result = play("payments", "--once", *flags, setup=ONCE, schedule=schedule, restart={"max_restarts": 1})
    assert result.verdict.steps[0].injected
    assert result.verdict.word is word
    if word is Word.ERROR:
        assert "fatal: no such account in batch" in said(result.verdict)
    else:
        assert set(result.verdict.kinds()) == {"stalled"}


@pytest.mark.parametrize(("flags", "word"), [(("--once",), Word.HELD), ((), Word.VIOLATED)])
def test_a_query_with_two_sources_is_caught_up_by_the_slower_one(
    play: Play, flags: tuple[str, ...], word: Word
) -> None:
    setup = {"postgres": f"create table halves (half text, id bigint{', primary key (half, id)' if flags else ''})"}
    # All at once, so that each takes as much as it may, and the slower one is done a batch later.
    keys: dict[str, Any] = {"setup": setup, "input": {"records": 600, "rate": "20000/s"}}
    result = play("both_halves", *flags, schedule=[{"when": {"batch": 2}, "do": CRASH}], **keys)
    assert result.verdict.word is word
    assert set(result.verdict.kinds()) == (set() if flags else {"duplicated"})
    assert result.verdict.counts["unseen"] == 0


@pytest.mark.parametrize(("flags", "word"), [((), Word.HELD), (("--each",), Word.VIOLATED)])
def test_before_the_first_row_only_loss_is_exposed(play: Play, flags: tuple[str, ...], word: Word) -> None:
    verdict = play("payments", *flags, schedule=[{"when": {"rows": 0, "batch": 2}, "do": "crash mid-sink"}]).verdict
    assert verdict.word is word
    # The server ends the statement of a client that is gone: without a transaction round it, its row is there.
    assert verdict.kinds() == ({"duplicated": 1} if flags else {})
    harms = {exposure.harm for exposure in verdict.exposures if exposure.would_show}
    assert harms == ({Harm.LOSS, Harm.REPETITION} if flags else {Harm.LOSS})
