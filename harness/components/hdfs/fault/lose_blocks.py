"""The fault `lose blocks`: the disk of the one DataNode is gone, and with it the only replica of every block."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from harness.context import Reached, RunContext
from harness.faults.base import Injection, NoOptions, killing
from harness.faults.base.outage import everyone, go_on
from harness.hosts import signals
from harness.kinds import About, Refusal, Refusals
from harness.resources import labelled
from harness.scenario import CrashPoint, Fault, Impact, Step, Trigger
from harness.stack import Means
from harness.triggers.base import Planned

NO_READER = "no driver died of it: no reader has read a block that is gone"
NONE_THERE = "no block of this run lay there"


@runtime_checkable
class HasBlocks(Protocol):
    """A file system of ours that can lose what it keeps."""

    def blocks(self, run_id: str) -> int:
        """Return how many blocks of a run's files lie on the DataNode. Raises StackError."""

    def lose_blocks(self) -> None:
        """Kill the DataNode, delete all its blocks, start it again. Raises StackError."""


class LoseBlocks:
    """Names are there, and no file that had anything in it can be read; new ones can be written. It shows once a client
    reads, as a driver does that is started again, or that has planned a batch of files there."""

    about = About(
        name="lose blocks",
        summary="the DataNode of HDFS is killed and comes back without its blocks, whose only replica it had",
        example="{when: {point: sink-committed, batch: 3}, do: lose blocks}",
        options=NoOptions,
    )
    impact: Impact = Impact.NONE
    needs = frozenset({Means.RESTART_COMPONENTS})
    # Nothing moves between the trigger and the loss.
    freezes = True
    components = ("hdfs",)

    def refusals(self, fault: Fault, trigger: Trigger | None, planned: Planned) -> Refusals:
        """At any trigger, where the sink is not among what is lost: its rows would be gone, whichever program wrote
        them, and a right program would be reported as one that loses them."""
        if "hdfs" in planned.sinks_in:
            words = "takes for good what the sink in hdfs holds, whatever the program does: keep the sink elsewhere"
            yield Refusal("", f"{{path}}: {self.about.name} {words}", whole=True)

    def inject(self, run: RunContext, step: Step, reached: Reached) -> Injection:
        """Do it with all processes stopped."""
        server, driver = run.stack.servers.get("hdfs"), run.supervisor.driver
        if not isinstance(server, HasBlocks):
            return Injection(signalled={}, note="the stack runs no HDFS")
        reached.frozen += signals.freeze(everyone(run))
        try:
            lost = server.blocks(run.own.run_id)
            if not lost:
                return Injection(signalled={}, note=NONE_THERE)
            run.snapshot(reached)
            server.lose_blocks()
        finally:
            go_on(run, step, reached)
        struck = _to_read(run, step) or killing.dies(run, driver)
        return Injection(
            signalled={"datanode": described(lost)},
            snapshot_taken=True,
            why="" if struck else NO_READER,
            healed=False,
        )


def described(lost: int) -> str:
    """Return what became of the DataNode, which had so many blocks of the run."""
    return f"back after SIGKILL without its blocks, {lost} of them of this run"


def _to_read(run: RunContext, step: Step) -> bool:
    """Return whether the input of the batch in flight is gone, and still to be read. The driver was stopped when it had
    planned that batch: it may fail over it, or pass over it, and live."""
    return step.when.point is CrashPoint.BATCH_PLANNED and labelled("hdfs", "input") in run.own.parts


KIND = LoseBlocks()
