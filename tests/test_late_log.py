"""What AsyncProgressTracking does that the log of each batch does not: batches that were whole come again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.load import load
from harness.run.loop import Result
from harness.scenario import Kind, Scenario, Word
from harness.sinks import table

SINKS = Path(__file__).parents[1] / "scenarios" / "sinks"


@pytest.mark.stack
@pytest.mark.prove
def test_what_comes_twice_was_there_before_the_batch_that_was_struck(
    run_scenario: Callable[[Scenario], Result],
) -> None:
    result = run_scenario(load(SINKS / "kafka_logged_late_task_begun.yaml"))
    assert result.verdict.word is Word.VIOLATED and result.verdict.as_expected
    twice = {str(each.key["id"]) for each in result.verdict.findings if each.kind is Kind.DUPLICATED}
    # The batch that was struck had its first task at its first record: no record of its own was in the topic.
    at_injection = table.load(result.folder / "snapshots" / "2-injection", 0)
    assert at_injection is not None
    place = [column.name for column in at_injection.columns].index("id")
    there = {row[place] for row in at_injection.rows}
    assert twice and twice <= there


@pytest.mark.stack
@pytest.mark.prove
def test_under_a_log_of_each_batch_the_same_kill_repeats_nothing(run_scenario: Callable[[Scenario], Result]) -> None:
    verdict = run_scenario(load(SINKS / "kafka_logged_in_time_task_begun.yaml")).verdict
    assert (verdict.word, verdict.findings) == (Word.HELD, ())
