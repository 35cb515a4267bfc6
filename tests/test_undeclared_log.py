"""A pipeline that tracks its progress asynchronously and does not say so: no verdict rests on its log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.load import load
from harness.run.loop import Result
from harness.scenario import Scenario, Word

READ_ONCE = Path(__file__).parents[1] / "scenarios" / "sinks" / "kafka_read_once_mid_batch.yaml"


@pytest.mark.stack
@pytest.mark.prove
def test_a_late_log_without_a_gap_is_known_by_the_thread_that_writes_it(
    run_scenario: Callable[[Scenario], Result],
) -> None:
    scenario = load(READ_ONCE)
    # Spark logs the offsets of each batch then, beside it.
    late = replace(scenario.pipeline, args=(*scenario.pipeline.args, "--late-log", "0"))
    assert scenario.pipeline.progress == "checkpoint"
    result = run_scenario(replace(scenario, pipeline=late))
    assert result.verdict.word is Word.UNTESTED, result.verdict
    assert any("`async-log-write`" in reason for reason in result.verdict.reasons)
