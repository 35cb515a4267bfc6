"""A run folder that is not as the run left it: what cannot be trusted is an error, and never a verdict."""

from __future__ import annotations

from collections.abc import Iterator

from tests.corpus.case import adversary, error, held
from tests.corpus.run_builder import RunBuilder

BESIDE = 16
"""The sixteenth item: the last line of the issue's "Shown by"."""


@adversary(BESIDE, error("history.jsonl is damaged"), twin=held("1 repetition"))
def torn_snapshot(run: RunBuilder) -> Iterator[str]:
    """The run itself is whole, and the snapshot that says what was exposed holds something else."""
    run.injection(1)
    run.edits["1-injection"] = {"queries": "none"}
    yield "the snapshot is whole"
    run.edits.clear()


@adversary(BESIDE, error("history.jsonl is damaged"), twin=held("1 repetition"))
def torn_progress(run: RunBuilder) -> Iterator[str]:
    """The history says of its queries what no run would write."""
    run.injection(1)
    run.edits["progress"] = {"queries": [{"checkpoint": "checkpoint", "first": {"one": 0}}]}
    yield "it is whole"
    run.edits.clear()
