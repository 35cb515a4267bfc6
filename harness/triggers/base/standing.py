"""How a batch is met whose thread is held in Spark, or on its way to a server: there is time to read the state."""

from __future__ import annotations

from collections.abc import Callable

from harness.context import Reached, RunContext
from harness.hosts import signals
from harness.scenario import Victim


def first(run: RunContext, held: Callable[[int], Reached], lowest: int, *, freeze: bool) -> Reached:
    """Return where the first batch from `lowest` on stands that has records, with the JVM stopped if that is wanted.
    `held` waits for one of a batch from the given one on. Raises what that does."""
    while True:
        reached = held(lowest)
        try:
            if met(run, reached, freeze=freeze):
                return reached
        except BaseException:
            run.release(reached)
            raise
        run.release(reached)
        assert reached.batch is not None
        lowest = reached.batch + 1


def met(run: RunContext, reached: Reached, *, freeze: bool) -> bool:
    """Return whether the batch has records: then `reached` says where it stands, with the JVM stopped if that is
    wanted."""
    assert reached.folder is not None
    if run.observer.took_nothing(reached.folder, reached.batch or 0):
        return False
    reached.frozen = signals.freeze(run.supervisor.processes(Victim.JVM) if freeze else [])
    reached.before = run.observer.settled(reached.folder) if reached.frozen else run.observer.listing(reached.folder)
    return True
