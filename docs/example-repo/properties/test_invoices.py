"""Whatever the schedule of failures: each invoice is in the table once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import assume, given

from harness.strategies import REAL, schedules


@REAL
@given(scenario=schedules("scenarios/invoices.yaml"))
def test_each_invoice_is_there_once(run_scenario: Callable[..., Any], scenario: Any) -> None:
    verdict = run_scenario(scenario).verdict
    assume(verdict.word != "untested")
    assert verdict.word == "held", f"{verdict.word}: {dict(verdict.kinds())}"
