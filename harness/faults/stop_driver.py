"""The fault `stop driver`: SIGTERM to the program, as a cluster manager asks it to end."""

from __future__ import annotations

import signal
from contextlib import suppress

from harness.context import Reached, RunContext
from harness.errors import WaitError
from harness.faults.base import Injection, NoOptions, killing
from harness.hosts import signals
from harness.kinds import About, Refusals
from harness.scenario import Fault, Impact, Step, Trigger, Victim
from harness.stack import Means
from harness.triggers import release
from harness.triggers.base import Planned
from harness.wait import until

HELD_S = 3.0
"""How long what the trigger holds stands still once the program is asked to end. A signal meets a batch that takes
longer than the program's answer; let go at once, a short batch would be done before."""


class StopDriver:
    """It may finish what it has in flight on the way."""

    about = About(
        name="stop driver",
        summary="SIGTERM to the driver's program, which may finish what it has in flight",
        example="{when: {records: 300}, do: stop driver}",
        options=NoOptions,
    )
    impact = Impact.DRIVER_STOPPED
    # A driver that finishes what it has in flight may end well.
    needs = frozenset({Means.SIGNAL_DRIVER, Means.RESTART_ENDED})

    def refusals(self, fault: Fault, trigger: Trigger | None, planned: Planned) -> Refusals:
        """At any trigger."""
        return iter(())

    def inject(self, run: RunContext, step: Step, reached: Reached) -> Injection:
        """Ask it to end, and wait until it has."""
        targets, driver = run.supervisor.processes(Victim.PYTHON), run.supervisor.driver
        killing.scheduled(run, driver, targets)
        run.note_writers(reached)
        signalled = {p.name: "asked to end by SIGTERM" for p in signals.send(targets[:1], signal.SIGTERM)}
        if signalled and driver is not None:
            with suppress(WaitError):
                until("the driver to end", lambda: run.supervisor.ended(driver.number), within_s=HELD_S)
        # A program that finishes its batch first needs the thread, or the writer, that the trigger holds.
        release(run, step, reached)
        return killing.ending(run, driver, Injection(signalled=signalled))


KIND = StopDriver()
