"""The fault `disconnect driver`: the driver is off the network for a while, and works on there."""

from __future__ import annotations

from harness.context import Reached, RunContext
from harness.faults.base import Injection, lasting
from harness.faults.base.outage import committed_by_now
from harness.kinds import About
from harness.scenario import Impact, Step
from harness.stack import Host, Means
from harness.triggers import release
from harness.wait import Deadline

TICK_S = 0.02


class DisconnectDriver(lasting.Lasts):
    """A partition: neither Kafka, nor the executors, nor the sink can be reached."""

    about = About(
        name="disconnect driver",
        summary="the driver's container is taken off its network for a while",
        example="{when: {records: 300}, do: disconnect driver, for: 10s}",
        options=lasting.For,
    )
    impact = Impact.DRIVER_CUT_OFF
    needs = frozenset({Means.SIGNAL_DRIVER, Means.CUT_NETWORK})
    # So that it is cut off where the trigger found it.
    freezes = True

    def inject(self, run: RunContext, step: Step, reached: Reached) -> Injection:
        """Take it off the network, check that it is off, and let it work on there; put it back unless it ends before.
        What was not off from the check at the beginning to the one at the end is left out."""
        hosts = [process for process in run.supervisor.processes() if isinstance(process, Host) and process.cut()]
        try:
            off = [host for host in hosts if host.disconnected()]
            if off:
                run.snapshot(reached)
            # It was frozen for the snapshot alone: a lost network does nothing to a frozen process.
            release(run, step, reached)
            limit, began_s = Deadline(lasting.lasts_s(step.do)), run.history.elapsed_s()
            while any(host.alive() for host in hosts) and not limit.over() and not run.stop.wait(TICK_S):
                pass
            off = [host for host in off if host.disconnected() or not host.alive()]
            without = committed_by_now(run)
        finally:
            back = [host for host in hosts if host.join() and not host.disconnected()]
        ended = f"cut off, and ended within {run.history.elapsed_s() - began_s:.1f} s of it"
        words = {host.name: f"cut off for {limit.seconds:g} s" if host in back else ended for host in off}
        signalled = {host.name: words[host.name] for host in off if host in back or not host.alive()}
        return Injection(signalled=signalled, snapshot_taken=True, committed_meanwhile=without)


KIND = DisconnectDriver()
