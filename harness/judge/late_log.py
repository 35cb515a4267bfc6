"""Is Spark's offset log a plan? With AsyncProgressTracking it is only a position.

Spark logs offsets late then, and not for every batch: what it has in flight, or has done since, no log says. A hit that
is weighed by such a log may have put nothing at stake, so no verdict may rest on it.
"""

from __future__ import annotations

from itertools import pairwise

from harness.judge.read_folder import Run
from harness.scenario.progress import ASYNC, CHECKPOINT

DECLARED = "progress is async: Spark logs offsets late, and not for every batch"
UNPROVEN = "so nothing says what a hit had in flight"


def declared(run: Run) -> str:
    """Why a log that the scenario says is late tells nothing of what was in flight; empty for any other log."""
    return f"{DECLARED}, {UNPROVEN}" if run.scenario.pipeline.progress == ASYNC else ""


def late_log(run: Run) -> str:
    """Why the offset log says nothing of what was in flight; empty if it does, or if the pipeline keeps its own."""
    return declared(run) or skipping(run)


def skipping(run: Run) -> str:
    """Why a log that nobody said to be late says nothing of it: a batch is missing in it; empty if none is."""
    if run.scenario.pipeline.progress != CHECKPOINT:
        return ""
    for query in run.progressed.queries:
        numbers = sorted(batch.batch for batch in query.batches) if query.ours else []
        for before, after in pairwise(numbers):
            if after > before + 1:
                seen = f"the offset log of {query.checkpoint} goes from batch {before} to batch {after}, {UNPROVEN}"
                return f"{seen}. With asyncProgressTrackingEnabled, say `progress: async`"
    return ""
