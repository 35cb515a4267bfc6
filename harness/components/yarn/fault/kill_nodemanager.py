"""The fault `kill nodemanager`: SIGKILL to YARN's NodeManager alone; its containers live on, and it knows none of them
when it comes back."""

from __future__ import annotations

from dataclasses import replace

from harness.components.yarn.fault.restart_resourcemanager import KillDaemon
from harness.context import Reached, RunContext
from harness.faults.base import Injection, killing
from harness.scenario import Step
from harness.stack import Driver

GIVEN_UP_S = 60.0


class KillNodeManager(KillDaemon):
    """YARN takes the attempt for lost, and starts the next one; the old driver ends when ResourceManager disowns it."""

    # The lost driver works on for seconds, without NodeManager: let go, it commits the batch before it is disowned.
    holds_on = True

    def inject(self, run: RunContext, step: Step, reached: Reached) -> Injection:
        """As any daemon, and how the attempt ended that was lost with it."""
        driver = run.supervisor.driver
        done = super().inject(run, step, reached)
        if driver is None or not done.signalled:
            return done
        return replace(done, driver_status=run.supervisor.ending(driver.number, within_s=0.0))

    def died(self, run: RunContext, driver: Driver | None) -> bool:
        """Return whether the attempt that was at work has ended, as it does once it is disowned."""
        return killing.dies(run, driver, within_s=GIVEN_UP_S)


KIND = KillNodeManager(
    "nodemanager",
    summary="SIGKILL to YARN's NodeManager, which comes back without its containers: the attempt is lost",
    example="{when: {point: batch-planned, batch: 2}, do: kill nodemanager, for: 3s}",
)
