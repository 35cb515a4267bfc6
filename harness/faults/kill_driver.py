"""The fault `kill driver`: SIGKILL to the driver's whole tree, or to its Python program or its JVM alone."""

from __future__ import annotations

from harness.context import Reached, RunContext
from harness.faults.base import Injection, killing
from harness.kinds import About, Refusals
from harness.scenario import Fault, Impact, Step, Trigger
from harness.stack import Means
from harness.triggers.base import Planned


class KillDriver:
    """What the kernel's out-of-memory killer does, or a lost node."""

    about = About(
        name="kill driver",
        summary="SIGKILL to the driver: its whole tree, its Python program or its JVM",
        example="{when: {point: sink-committed, batch: 3}, do: kill driver}",
        options=killing.Victims,
    )
    impact = Impact.DRIVER_KILLED
    needs = frozenset({Means.SIGNAL_DRIVER})

    def refusals(self, fault: Fault, trigger: Trigger | None, planned: Planned) -> Refusals:
        """At any trigger, but for a program that dies alone."""
        return killing.python_alone(fault, trigger)

    def inject(self, run: RunContext, step: Step, reached: Reached) -> Injection:
        """Kill it, and see it gone."""
        return killing.kill_driver(run, step.do, reached)

    def freezes(self, fault: Fault) -> bool:
        """Its JVM dies anyway."""
        return killing.freezes(fault)


KIND = KillDriver()
