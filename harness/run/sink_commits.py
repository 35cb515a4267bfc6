"""Sees a sink's own commit being written: its tasks are done, and a file is about to be renamed.

Such a log is written as Spark's checkpoint is, so the same watch sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from harness.context import CheckpointEvent, SinkCommit
from harness.errors import HarnessError
from harness.resources import RunResources
from harness.run.progress.checkpoint_watch import CheckpointWatch
from harness.scenario import CrashPoint, Scenario
from harness.sinks import SINKS
from harness.sinks.base import CommitLog, CommitsByRename


class SinkCommits:
    """Those of one run's sinks."""

    def __init__(self, logs: Sequence[tuple[str | None, CommitLog]]) -> None:
        self._logs = logs

    @contextmanager
    def armed(self, hook: Callable[[SinkCommit], None], *, first: bool) -> Iterator[None]:
        """Call `hook` in the watching thread with every commit that begins from now on; in the `first` attempt also
        with one that is being written already. Raises HarnessError if the watch died."""
        watches: list[CheckpointWatch] = []
        try:
            with ExitStack() as stack:
                watches += [stack.enter_context(_watched(*each, hook, first=first)) for each in self._logs]
                yield
        finally:
            # Else a commit that was not seen would be one that never came.
            for watch in watches:
                if watch.failure is not None:
                    raise HarnessError(f"the watch on the sink's commits died: {watch.failure!r}")


def sink_commits(scenario: Scenario, own: RunResources) -> SinkCommits | None:
    """Return those that the steps of a scenario ask for; None if none does."""
    if not any(step.when.point is CrashPoint.SINK_COMMITTING for step in scenario.schedule):
        return None
    logs = _logs(scenario, own)
    return SinkCommits(logs) if logs else None


def committed_to(scenario: Scenario, own: RunResources) -> list[str | None]:
    """Return the queries of the sinks that have a commit log by now, None for a sink that names none."""
    return [query for query, log in _logs(scenario, own) if log.folder.is_dir()]


def _logs(scenario: Scenario, own: RunResources) -> list[tuple[str | None, CommitLog]]:
    kinds = [(sink, SINKS[sink.kind]) for sink in scenario.sinks]
    return [(sink.query, kind.commit_log(sink, own.parts)) for sink, kind in kinds if isinstance(kind, CommitsByRename)]


@contextmanager
def _watched(
    query: str | None, log: CommitLog, hook: Callable[[SinkCommit], None], *, first: bool
) -> Iterator[CheckpointWatch]:
    # What a dead attempt left is no commit of this one.
    known = set[Path]() if first else set(_files(log.folder))

    def commit_of(path: Path) -> Sequence[CheckpointEvent]:
        final = log.becomes(path) if path.parent == log.folder and path not in known else None
        if final is not None:
            known.add(path)
            hook(SinkCommit(path, log.folder / final, query))
        return ()

    depth = len(log.folder.relative_to(log.root).parts)
    watch = CheckpointWatch(log.root, _nothing, events=commit_of, folders=(log.folder.name,), deepest=depth)
    try:
        yield watch
    finally:
        watch.close()


def _nothing(seen: CheckpointEvent) -> None:
    """Do nothing: `commit_of` has reported the commit already."""


def _files(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except FileNotFoundError:
        return []
