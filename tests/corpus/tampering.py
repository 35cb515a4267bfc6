"""A run folder that is not as the run left it: what cannot be trusted is an error, and never a verdict."""

from __future__ import annotations

from collections.abc import Iterator

from tests.corpus.case import adversary, error, held
from tests.corpus.scene import Scene

BESIDE = 16
"""The sixteenth item: the last line of the issue's "Shown by"."""


@adversary(BESIDE, error("snapshot.json"), twin=held("1 repetition"))
def torn_snapshot(run: Scene) -> Iterator[str]:
    """The run itself is whole, and the snapshot that says what was at stake holds something else."""
    run.strike(1)
    run.edits["snapshots/1-strike/snapshot.json"] = {"queries": "none"}
    yield "the snapshot is whole"
    run.edits.clear()


@adversary(BESIDE, error("checkpoint.json"), twin=held("1 repetition"))
def torn_progress(run: Scene) -> Iterator[str]:
    """checkpoint.json says of its queries what no run would write."""
    run.strike(1)
    run.edits["checkpoint.json"] = {"queries": [{"checkpoint": "checkpoint", "first": {"one": 0}}]}
    yield "it is whole"
    run.edits.clear()
