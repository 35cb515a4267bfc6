"""Is anything in flight when a fault strikes: by what the source has acknowledged, and by what Spark has planned."""

from __future__ import annotations

import pytest

from harness.checkpoint import Offsets
from harness.run.progress.reported import Progress
from harness.scenario.progress import CHECKPOINT


@pytest.mark.parametrize(
    ("acknowledged", "planned", "committed", "words"),
    [
        (30, {0: 20, 1: 10}, {0: 20, 1: 10}, ""),
        (40, {0: 20, 1: 10}, {0: 20, 1: 10}, "10 records acknowledged and not yet committed"),
        # A file is taken while the files beside it are still being put there.
        (30, {0: 20, 1: 10, 2: 20}, {0: 20, 1: 10}, "20 records planned and not yet committed"),
        (0, {0: 5}, {}, "5 records planned and not yet committed"),
        # A reader that went back.
        (20, {0: 10}, {0: 20}, ""),
    ],
)
def test_what_is_in_flight(acknowledged: int, planned: Offsets, committed: Offsets, words: str) -> None:
    assert Progress(CHECKPOINT, lambda: planned, lambda: committed, lambda: None).in_flight(acknowledged) == words


def test_what_is_committed_while_it_is_asked_is_not_in_flight() -> None:
    far = {0: 10}

    def planned() -> Offsets:
        before = dict(far)
        far[0] = 20
        return before

    assert Progress(CHECKPOINT, planned, lambda: dict(far), lambda: None).in_flight(10) == ""
