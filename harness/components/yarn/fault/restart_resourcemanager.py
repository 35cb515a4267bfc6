"""The fault `restart resourcemanager`: SIGKILL to YARN's ResourceManager, which comes back on what it has kept."""

from __future__ import annotations

from dataclasses import dataclass

from harness.context import RunContext
from harness.faults.base.outage import KillServer
from harness.stack import KeepsDaemons, Means


@dataclass(frozen=True)
class KillDaemon(KillServer):
    """SIGKILL to a daemon of YARN's, which is started again after a while. `component` is its name."""

    needs = frozenset({Means.RESTART_DAEMONS})
    pauses_pipeline = False
    # ApplicationMaster reports to it, and its executors do not: they write on without it.
    missed_at_once = False

    @property
    def components(self) -> tuple[str, ...]:
        """It is no component of a run, but part of the stack."""
        return ()

    def server(self, run: RunContext) -> object:
        """Return the daemon; None on a stack without YARN."""
        return run.stack.daemons.get(self.component) if isinstance(run.stack, KeepsDaemons) else None


# Containers go on: only who is started, or has ended meanwhile, waits for it.
KIND = KillDaemon(
    "resourcemanager",
    name="restart resourcemanager",
    summary="SIGKILL to YARN's ResourceManager, which comes back with its applications; containers go on",
    example="{when: {point: batch-planned, batch: 2}, do: restart resourcemanager, for: 3s}",
)
