"""The fault `pause driver`: SIGSTOP to the driver's tree for a while, as a stop-the-world collection or a VM's move."""

from __future__ import annotations

from collections.abc import Sequence

from harness.context import Reached, RunContext
from harness.faults.base import Injection, lasting
from harness.faults.base.outage import Connects, Restartable
from harness.hosts import signals
from harness.kinds import About
from harness.scenario import Impact, Step
from harness.stack import Means, Process
from harness.wait import Deadline, until

STOPPED_WITHIN_S = 20.0


class PauseDriver(lasting.Lasts):
    """No process dies; others may take it for dead."""

    about = About(
        name="pause driver",
        summary="SIGSTOP to the driver's whole tree for a while",
        example="{when: {records: 300}, do: pause driver, for: 3s}",
        options=lasting.For,
    )
    impact = Impact.DRIVER_PAUSED
    needs = frozenset({Means.SIGNAL_DRIVER})
    # Its JVM is paused anyway.
    freezes = True

    def inject(self, run: RunContext, step: Step, reached: Reached) -> Injection:
        """Stop it (SIGSTOP), see that it is stopped, let it go on."""
        for_s = lasting.lasts_s(step.do)
        limit = Deadline(for_s)
        tree = signals.freeze(run.supervisor.processes())
        if not tree:
            return Injection(signalled={})
        try:
            # One that ended meanwhile, a worker between two tasks, no longer runs either.
            until("the driver to be paused", lambda: not any(map(signals.moves, tree)), within_s=STOPPED_WITHIN_S)
            run.snapshot(reached)
            connected = servers(run, tree)
            run.stop.wait(limit.left_s())
            run.resuming(reached)
            # What is paused closes no connection.
            ended = tuple(sorted(connected - servers(run, tree)))
            return Injection(
                signalled={p.name: f"paused for {for_s:g} s" for p in tree if p.stopped()},
                snapshot_taken=True,
                disconnected=ended,
                note=f"its server ended the connection meanwhile: {', '.join(ended)}" if ended else "",
            )
        finally:
            signals.thaw(tree)


def servers(run: RunContext, tree: Sequence[Process]) -> set[str]:
    """Return the components with whose servers any of these processes has a connection."""
    ports = {name: server.port for name, server in run.stack.servers.items() if isinstance(server, Restartable)}
    return {name for name, port in ports.items() if any(isinstance(p, Connects) and p.reaches(port) for p in tree)}


KIND = PauseDriver()
