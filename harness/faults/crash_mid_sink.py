"""The fault `crash mid-sink`: driver and executors die while a row of the sink is being written."""

from __future__ import annotations

from harness.faults.base import killing
from harness.kinds import About, Refusal, Refusals
from harness.scenario import Fault, Trigger
from harness.stack import Means
from harness.triggers import TRIGGERS
from harness.triggers.base import Planned, Trait, has


class CrashMidSink(killing.KillsDriver):
    """A batch is in the sink in part."""

    about = About(
        name="crash mid-sink",
        summary="SIGKILL to the driver and to every executor after some rows of the sink",
        example="{when: {rows: 40}, do: crash mid-sink}",
        options=killing.Victims,
    )
    needs = frozenset({Means.SIGNAL_DRIVER, Means.SIGNAL_EXECUTORS})

    def refusals(self, fault: Fault, trigger: Trigger | None, planned: Planned) -> Refusals:
        """Only where the sink's rows are counted."""
        if trigger is not None and not has(TRIGGERS[trigger.kind], Trait.COUNTS_ROWS):
            yield Refusal("", NEEDS, whole=True)

    def trigger(self, batch: int | None, query: str | None) -> Trigger | str:
        """After how many rows, only the file can say."""
        return NEEDS


NEEDS = "crash mid-sink needs {path}.rows: after how many rows of the sink"
KIND = CrashMidSink()
