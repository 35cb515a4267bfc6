"""How a batch is met whose thread is held in Spark, or on its way to a server: there is time to look."""

from __future__ import annotations

from collections.abc import Callable

from harness.context import RunContext, TriggerHit
from harness.hosts import signals
from harness.scenario import Victim


def first(run: RunContext, held: Callable[[int], TriggerHit], lowest: int, *, freeze: bool) -> TriggerHit:
    """Return where the first batch from `lowest` on stands that has records, with the JVM stopped if that is wanted.
    `held` waits for one of a batch from the given one on. Raises what that does."""
    while True:
        hit = held(lowest)
        try:
            if met(run, hit, freeze=freeze):
                return hit
        except BaseException:
            run.release(hit)
            raise
        run.release(hit)
        assert hit.batch is not None
        lowest = hit.batch + 1


def met(run: RunContext, hit: TriggerHit, *, freeze: bool) -> bool:
    """Return whether the batch has records: then `hit` says where it stands, with the JVM stopped if that is wanted."""
    assert hit.folder is not None
    if run.observer.took_nothing(hit.folder, hit.batch or 0):
        return False
    hit.frozen = signals.freeze(run.supervisor.processes(Victim.JVM) if freeze else [])
    hit.before = run.observer.settled(hit.folder) if hit.frozen else run.observer.listing(hit.folder)
    return True
