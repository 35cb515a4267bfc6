"""The fault `crash application`: driver and executors die at once, as when a whole cluster loses power."""

from __future__ import annotations

from harness.context import Reached, RunContext
from harness.faults.base import Injection, killing
from harness.kinds import About, Refusals
from harness.scenario import Fault, Impact, Step, Trigger
from harness.stack import Means
from harness.triggers.base import Planned


class CrashApplication:
    """No process is left to write on."""

    about = About(
        name="crash application",
        summary="SIGKILL to the driver and to every executor at once",
        example="{when: {records: 300}, do: crash application}",
        options=killing.Victims,
    )
    impact = Impact.DRIVER_KILLED
    needs = frozenset({Means.SIGNAL_DRIVER, Means.SIGNAL_EXECUTORS})

    def refusals(self, fault: Fault, trigger: Trigger | None, planned: Planned) -> Refusals:
        """At any trigger, but for a program that dies without its JVM."""
        return killing.python_alone(fault, trigger)

    def inject(self, run: RunContext, step: Step, reached: Reached) -> Injection:
        """Kill all of them, and see them gone."""
        return killing.kill_driver(run, step.do, reached, executors=True)

    def freezes(self, fault: Fault) -> bool:
        """Its JVM dies anyway."""
        return killing.freezes(fault)


KIND = CrashApplication()
