"""On the real stack: a pause that outlasts the driver's session with its sink interrupts the batch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.run.loop import Result
from harness.scenario import Scenario, Word
from tests.plays import Play

pytestmark = [pytest.mark.stack, pytest.mark.prove]


@pytest.mark.parametrize(
    ("for_s", "ended", "word"), [("6s", ("postgres",), Word.HELD), ("1s", (), Word.UNTESTED)], ids=["ended", "kept"]
)
def test_a_session_that_the_server_ended_while_the_driver_was_paused(
    tmp_path: Path, run_scenario: Callable[[Scenario], Result], for_s: str, ended: tuple[str, ...], word: Word
) -> None:
    paused = {"when": {"failpoint": "rows-collected", "batch": 3}, "do": "pause driver", "for": for_s}
    verdict = Play(tmp_path, run_scenario)("session_kept", input={"records": 600}, schedule=[paused]).verdict
    assert (verdict.word, verdict.steps[0].evidence.disconnected) == (word, ended)
    assert [exposure.counts for exposure in verdict.exposures] == [True] * len(ended)
