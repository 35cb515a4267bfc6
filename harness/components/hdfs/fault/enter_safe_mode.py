"""The fault `enter safe mode`: for a while the NameNode refuses every change, as it does while blocks are missing."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from harness.context import Reached, RunContext
from harness.faults.base import Injection, killing, lasting
from harness.faults.base.outage import everyone, go_on
from harness.hosts import signals
from harness.kinds import About
from harness.scenario import Impact, Step
from harness.stack import Means

NO_CHANGE = "no driver died of it: nothing that was asked for in that time was a change, or it was asked for again"


@runtime_checkable
class HasSafeMode(Protocol):
    """A file system of the stack that can refuse changes."""

    def safe_mode(self, *, on: bool) -> None:
        """Enter it, or leave it; returns once that is so. Raises StackError."""


class EnterSafeMode(lasting.Lasts):
    """Files can be read, and nothing can be written or renamed."""

    about = About(
        name="enter safe mode",
        summary="the NameNode of HDFS refuses every change for a while",
        example="{when: {point: sink-committed, batch: 3}, do: enter safe mode, for: 10s}",
        options=lasting.For,
    )
    impact = Impact.NONE
    needs = frozenset({Means.RESTART_COMPONENTS})
    # Nothing moves between the trigger and the safe mode.
    freezes = True
    components = ("hdfs",)

    def inject(self, run: RunContext, step: Step, reached: Reached) -> Injection:
        """Enter it with all processes stopped, let them go on, leave it."""
        server, for_s, driver = run.stack.servers.get("hdfs"), lasting.lasts_s(step.do), run.supervisor.driver
        if not isinstance(server, HasSafeMode):
            return Injection(signalled={}, note="the stack runs no HDFS")
        reached.frozen += signals.freeze(everyone(run))
        # The NameNode may have entered it, whatever the answer was.
        try:
            try:
                run.snapshot(reached)
                server.safe_mode(on=True)
            finally:
                go_on(run, step, reached)
            run.stop.wait(for_s)
        finally:
            server.safe_mode(on=False)
        died = killing.dies(run, driver)
        words = f"in safe mode for {for_s:g} s"
        return Injection(signalled={"namenode": words}, snapshot_taken=True, why="" if died else NO_CHANGE)


KIND = EnterSafeMode()
