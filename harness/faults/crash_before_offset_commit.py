"""The fault `crash before offset commit`: the driver dies when the sink has a batch and Spark's `commits/N` has not."""

from __future__ import annotations

from dataclasses import replace

from harness.context import Reached, RunContext
from harness.faults.base import Injection, Proof, killing
from harness.faults.base.killing import COMMITS, victim_of
from harness.kinds import About, Refusal, Refusals
from harness.scenario import CrashPoint, Fault, Step, Trigger, Victim
from harness.triggers import TRIGGERS
from harness.triggers.base import LATE_LOG, Planned, Trait, at_point, has

NO_CHECKPOINT = "no checkpoint to read: that the offsets were not saved yet is the failpoint's word alone"
WHERE = "crash before offset commit needs {path}.batch or {path}.failpoint"
NEEDS = "crash before offset commit needs {path}.failpoint: "
BY_TIME = (
    "{path}.do is crash before offset commit, and DStreams have none; say `crash application` at "
    "`point: batch-committed`, where the sink has the batch, and a restart does it again"
)
UNSEEN = "progress is not checkpoint, so only the pipeline's own code knows"


class CrashBeforeOffsetCommit(killing.KillsDriver):
    """Its trigger is a batch, or a failpoint where the pipeline saves its offsets itself."""

    about = About(
        name="crash before offset commit",
        summary="SIGKILL to the driver when the sink has the batch and Spark's `commits/N` is not there yet",
        example="{when: {batch: 3}, do: crash before offset commit}",
        options=killing.Victims,
    )

    def trigger(self, batch: int | None, query: str | None) -> Trigger | str:
        """Return the crash point between the sink's commit and Spark's."""
        if batch is None:
            return WHERE
        return at_point(CrashPoint.SINK_COMMITTED, batch=batch, query=query, implied=True)

    def refusals(self, fault: Fault, trigger: Trigger | None, planned: Planned) -> Refusals:
        """Any other trigger says something else."""
        if victim_of(fault) is Victim.PYTHON:
            yield COMMITS
        if planned.by_time:
            yield Refusal("", BY_TIME, whole=True)
            return
        if trigger is None:
            return
        if not trigger.implied and not has(TRIGGERS[trigger.kind], Trait.IN_PROGRAM):
            words = f"crash before offset commit takes a batch or a failpoint, not {trigger.kind}"
            yield Refusal(trigger.kind, words, whole=True)
        elif trigger.implied and not planned.checkpoint:
            yield Refusal("", NEEDS + UNSEEN, whole=True)
        elif trigger.implied and planned.late_log:
            yield Refusal("", NEEDS + LATE_LOG, whole=True)

    def inject(self, run: RunContext, step: Step, reached: Reached) -> Injection:
        """Kill it, and see it gone; a batch in the commit log was not crashed before that."""
        done = killing.kill_driver(run, step.do, reached, proof=Proof.IN_PROGRESS)
        return done if reached.before.get("offsets") else replace(done, note=NO_CHECKPOINT)


KIND = CrashBeforeOffsetCommit()
