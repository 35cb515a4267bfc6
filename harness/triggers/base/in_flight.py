"""What the triggers that know no place in the protocol share: something has to be in flight when they are met."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.context import Listing, Reached, RunContext, running
from harness.hosts import signals
from harness.kinds import Refusal, Refusals
from harness.scenario import Step, Trigger, Victim
from harness.triggers.base import Planned, wait_until


def wait_for_work(run: RunContext, step: Step, met: Callable[[], bool], *, freeze: bool) -> Reached:
    """Return when `met` is true, the batch that the step names was planned, and a query has one with records in flight.
    Raises WaitError once that cannot come."""
    when = step.when
    wait_until(run, when, met)
    if when.batch is not None:
        wait_until(run, when, lambda: _newest(run, when) >= (when.batch or 0))
    # A driver that has just been born, or waits for its restart, has nothing in flight: to kill it would strike
    # nothing.
    wait_until(run, when, run.has_progress)
    reached = Reached(when.batch, before=run.observer.listing())
    if run.observer.folder() is not None:
        # Nor has one between two batches.
        wait_until(run, when, lambda: _caught(run, when, reached, freeze=freeze))
    return reached


def works(reached: Reached, listing: Listing) -> bool:
    """Return whether the batch that was in flight is still planned and not committed."""
    return reached.folder is None or running(reached.batch, listing)


def blind(trigger: Trigger, planned: Planned) -> Refusals:
    """Without a checkpoint it is not seen whether something is in flight."""
    if not planned.checkpoint:
        words = (
            "may find nothing in flight: progress is not checkpoint, so batches are not seen; use a failpoint or rows"
        )
        yield Refusal(trigger.kind, words)


def _newest(run: RunContext, when: Trigger) -> int:
    """Return the highest batch that is planned; of the query that is named."""
    listings = [run.observer.listing(folder) for folder in run.observer.folders(when.query)]
    return max((batch for listing in listings for batch in listing.get("offsets", ())), default=-1)


def _caught(run: RunContext, when: Trigger, reached: Reached, *, freeze: bool) -> bool:
    """Return whether one of our queries, or the one that is named, has a batch with records in flight. Then the JVM is
    frozen where the fault allows it, and `reached` says which batch of which query."""
    for folder in run.observer.folders(when.query):
        if _busy(run, folder) is None:
            continue
        frozen = signals.freeze(run.supervisor.processes(Victim.JVM) if freeze else [])
        batch = _busy(run, folder, still=bool(frozen))
        if batch is not None and not run.observer.took_nothing(folder, batch):
            reached.batch, reached.folder, reached.frozen = batch, folder, frozen
            reached.before = run.observer.settled(folder) if frozen else run.observer.listing(folder)
            return True
        signals.thaw(frozen)
    return False


def _busy(run: RunContext, folder: Path, *, still: bool = False) -> int | None:
    """Return the newest batch of a checkpoint, if it is planned and not committed; `still`: its writer is stopped."""
    listing = run.observer.settled(folder) if still else run.observer.listing(folder)
    batch = max(listing.get("offsets", ()), default=None)
    return batch if running(batch, listing) else None
