"""Whether Spark's offset log is a plan.

With AsyncProgressTracking it is only a position: Spark logs offsets late then, and not for every batch. No log says
what it has in flight, or has done since. A step that is weighed by such a log may have exposed nothing, so no verdict
rests on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from harness.judge.injections import Injection
from harness.judge.read_folder import Run
from harness.scenario.progress import ASYNC, CHECKPOINT

DECLARED = "progress is async: Spark logs offsets late, and not for every batch"
THREAD = (
    "the driver had Spark's thread `async-log-write` when a fault was injected: "
    "it logs offsets late, and not for every batch"
)
CURE = "With asyncProgressTrackingEnabled, say `progress: async`"
UNPROVEN = "so nothing says what an injection had in flight"


def declared(run: Run) -> str:
    """Return why a log that the scenario says is late tells nothing of what was in flight; empty for any other log."""
    return f"{DECLARED}, {UNPROVEN}" if run.scenario.pipeline.progress == ASYNC else ""


def late_log(run: Run, injections: Sequence[Injection]) -> str:
    """Return why the offset log says nothing of what was in flight; empty if it does, or if the pipeline keeps its
    own."""
    return declared(run) or undeclared(run, injections)


def undeclared(run: Run, injections: Sequence[Injection]) -> str:
    """Return why a log that the scenario does not call late says nothing of what was in flight: a batch is missing in
    it, or the driver had a thread that writes it beside the batches. Empty if neither is so."""
    if run.scenario.pipeline.progress != CHECKPOINT:
        return ""
    if any(each.at is not None and each.at.snapshot.late_log for each in injections):
        return f"{THREAD}, {UNPROVEN}. {CURE}"
    return _skipping(run)


def _skipping(run: Run) -> str:
    for query in run.progressed.queries:
        numbers = sorted(batch.batch for batch in query.batches) if query.ours else []
        for before, after in pairwise(numbers):
            if after > before + 1:
                seen = f"the offset log of {query.checkpoint} goes from batch {before} to batch {after}, {UNPROVEN}"
                return f"{seen}. {CURE}"
    return ""
