"""The fault `kill driver without resourcemanager`: SIGKILL to YARN's ResourceManager, and to the driver before it is
back."""

from __future__ import annotations

from dataclasses import replace

from harness.components.yarn.fault.restart_resourcemanager import KillDaemon
from harness.context import Reached, RunContext
from harness.faults.base import Injection, killing
from harness.faults.base.outage import Restartable, go_on
from harness.hosts import signals
from harness.scenario import Impact, Step
from harness.stack import Means


class KillDriverWithoutResourceManager(KillDaemon):
    """No process is there to see the driver's end: ResourceManager learns it from NodeManager once it has recovered the
    application, and starts the next attempt then."""

    needs = frozenset({Means.RESTART_DAEMONS, Means.SIGNAL_DRIVER})

    def inject(self, run: RunContext, step: Step, reached: Reached) -> Injection:
        """Kill the one and then the other, read what is left, bring ResourceManager back."""
        server, driver = self.server(run), run.supervisor.processes()
        if not isinstance(server, Restartable) or not driver:
            return Injection(signalled={})
        # What is in flight stays so until the driver's turn has come.
        reached.frozen += signals.freeze(driver)
        server.stop()
        try:
            done = killing.kill_driver(run, step.do, reached)
            if done.signalled:
                run.snapshot(reached)
            # The executors end as they do after any driver.
            go_on(run, step, reached)
            words = self.meanwhile(run, step, server)
        finally:
            server.start()
        if not done.signalled:
            return done
        return replace(done, signalled={self.component: words, **done.signalled}, snapshot_taken=True)


KIND = KillDriverWithoutResourceManager(
    "resourcemanager",
    impact=Impact.DRIVER_KILLED,
    name="kill driver without resourcemanager",
    summary="SIGKILL to YARN's ResourceManager, which comes back after a while, and to the driver before that",
    example="{when: {point: sink-committed, batch: 3}, do: kill driver without resourcemanager, for: 3s}",
)
