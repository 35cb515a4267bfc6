"""The fault `lose node`: the one machine of driver, executors and DataNode is gone for good, and its disk with it."""

from __future__ import annotations

from dataclasses import replace

from harness.components.hdfs.fault.lose_blocks import NONE_THERE, HasBlocks, LoseBlocks, described
from harness.context import Reached, RunContext
from harness.faults.base import Injection, NoOptions, killing
from harness.kinds import About
from harness.scenario import Impact, Step
from harness.stack import Means


class LoseNode(LoseBlocks):
    """A program that is started again finds the names of what was in HDFS, and can read nothing of it: of its
    checkpoint, if that was there, not even how far it was."""

    about = About(
        name="lose node",
        summary="SIGKILL to driver, executors and the DataNode of HDFS, which comes back without its blocks, "
        "whose only replica it had",
        example="{when: {point: sink-committed, batch: 3}, do: lose node}",
        options=NoOptions,
    )
    impact = Impact.DRIVER_KILLED
    needs = frozenset({Means.SIGNAL_DRIVER, Means.SIGNAL_EXECUTORS, Means.RESTART_COMPONENTS})

    def inject(self, run: RunContext, step: Step, reached: Reached) -> Injection:
        """Kill the pipeline, take a snapshot, and lose its blocks before it is started again."""
        server = run.stack.servers.get("hdfs")
        if not isinstance(server, HasBlocks):
            return Injection(signalled={}, note="the stack runs no HDFS")
        # Checked first: without a block to lose it would be another fault.
        lost = server.blocks(run.own.run_id)
        if not lost:
            return Injection(signalled={}, note=NONE_THERE)
        done = killing.kill_driver(run, step.do, reached, executors=True)
        if not done.signalled or done.lived:
            return done
        run.snapshot(reached)
        server.lose_blocks()
        return replace(
            done, signalled={**done.signalled, "datanode": described(lost)}, snapshot_taken=True, healed=False
        )


KIND = LoseNode()
