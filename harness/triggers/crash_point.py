"""The trigger `point`: a batch stands at a crash point of Spark's micro-batch protocol, as the checkpoint shows it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from random import Random

from harness.context import CheckpointEvent, Listing, Reached, RunContext, running
from harness.errors import WaitError
from harness.fields import values as v
from harness.hosts import signals
from harness.kinds import About, Refusal, Refusals
from harness.scenario import CrashPoint, Step, Trigger, Victim
from harness.stack import Process
from harness.triggers.base import BY_TIME, LATE_LOG, POINT, Planned, at_point, wait_until
from harness.triggers.base.sink_commit import committing, wait_for_commit

NO_SINK_LOG = (
    "no sink here commits by renaming a file into a commit log in a folder of this machine; "
    "use rows, or a failpoint before the program's own commit"
)
OTHERWISE = "only DStreams have it; say `progress: dstreams` if it is such a program"
NO_RECEIVER = "the source is read without a receiver; use batch-planned"


class CrashPointTrigger:
    """Watches the files of the checkpoint; a batch without a record is passed over for the next one."""

    about = About(
        name=POINT,
        summary="a crash point of one batch: block-received, batch-planned, sink-committing, sink-committed, "
        "batch-checkpointed, batch-committed",
        example="{point: sink-committed, batch: 3}",
        options=v.Place,
    )

    def trigger(self, value: CrashPoint | str, *, batch: int | None = None, query: str | None = None) -> Trigger:
        """At the crash point `value`."""
        return at_point(CrashPoint(value), batch=batch, query=query)

    def draws(self, random: Random, planned: Planned, batch: int) -> Iterator[Trigger]:
        """Return each crash point of the batch that its files show, but the sink's own commit: whether the program
        writes to such a log, no file says, and a point that never comes would waste a run."""
        seen = [point for point in CrashPoint if point not in (CrashPoint.SINK_COMMITTING, CrashPoint.BATCH_PLANNING)]
        return (self.trigger(point, batch=batch) for point in seen if not _foreign(point, planned))

    def refusals(self, trigger: Trigger, planned: Planned) -> Refusals:
        """It needs a batch, and a checkpoint."""
        if trigger.batch is None:
            yield Refusal("batch", "is missing: the crash point of which batch?")
        if not planned.checkpoint:
            words = "never comes: progress is not checkpoint, so none is watched; use a failpoint or rows"
            yield Refusal(self.about.name, words)
        if trigger.point is not None and _foreign(trigger.point, planned):
            yield Refusal(self.about.name, f"never comes: {BY_TIME if planned.by_time else OTHERWISE}")
        elif trigger.point is CrashPoint.BLOCK_RECEIVED and not planned.receiver:
            yield Refusal(self.about.name, f"never comes: {NO_RECEIVER}")
        elif trigger.point is CrashPoint.SINK_COMMITTING and not _seen(trigger.query, planned.sink_logs):
            yield Refusal(self.about.name, f"cannot be seen: {NO_SINK_LOG}")
        if planned.late_log:
            words = f"cannot be seen: {LATE_LOG}; use records, elapsed, rows or a failpoint"
            yield Refusal(self.about.name, words)

    def wait(self, run: RunContext, step: Step, *, later: int, freeze: bool) -> Reached:
        """Wait for the crash point. The thread that watches stops the JVM first, and reads its state afterwards."""
        when = step.when
        if when.point is CrashPoint.SINK_COMMITTING:
            return wait_for_commit(run, step, later=later, freeze=freeze)
        met = threading.Event()
        reached = Reached(None)
        lowest = (when.batch or 0) + later
        jvms: list[Process] = []

        def hook(seen: CheckpointEvent) -> Callable[[], None] | None:
            if met.is_set() or seen.point is not when.point or seen.batch < lowest:
                return None
            # The JVM writes the commit log: stop it first, read the log afterwards.
            reached.frozen = signals.freeze(jvms)
            if seen.point is not CrashPoint.BLOCK_RECEIVED and run.observer.took_nothing(seen.folder, seen.batch):
                signals.thaw(reached.frozen)
                return None
            reached.batch, reached.folder = seen.batch, seen.folder
            reached.late = not run.observer.reported(seen.folder)
            reached.before = run.observer.settled(seen.folder) if reached.frozen else run.observer.listing(seen.folder)
            return met.set

        def check() -> bool:
            # A restarted driver has another JVM.
            if freeze and not any(jvm.alive() for jvm in jvms):
                jvms[:] = run.supervisor.processes(Victim.JVM)
            return met.is_set()

        check()
        try:
            with run.observer.armed(hook, query=when.query):
                wait_until(run, when, check)
        except WaitError:
            signals.thaw(reached.frozen)
            raise
        return reached

    def agrees(self, trigger: Trigger, reached: Reached, listing: Listing) -> bool:
        """By the offsets and commits that are there."""
        if trigger.point is CrashPoint.BATCH_COMMITTED:
            batch = -1 if reached.batch is None else reached.batch
            if "settled" in listing:
                # Of DStreams: done, and to be done again.
                return batch in listing["commits"] and batch not in listing["settled"]
            return batch in listing.get("commits", ()) and batch + 1 not in listing.get("offsets", ())
        if trigger.point is CrashPoint.SINK_COMMITTING:
            return committing(reached, listing)
        if trigger.point is CrashPoint.BLOCK_RECEIVED:
            return reached.batch not in listing.get("offsets", ())
        if trigger.point is CrashPoint.BATCH_PLANNED and reached.batch in listing.get("begun", ()):
            return False
        return running(reached.batch, listing)


def _seen(query: str | None, logs: Collection[str | None] | None) -> bool:
    """Return whether a sink that this query may feed has a commit log."""
    return logs is None or any(None in (query, log) or query == log for log in logs)


def _foreign(point: CrashPoint, planned: Planned) -> bool:
    """Return whether it is a point of the other protocol."""
    own = (CrashPoint.SINK_COMMITTING, CrashPoint.SINK_COMMITTED)
    theirs = (CrashPoint.BLOCK_RECEIVED, CrashPoint.BATCH_CHECKPOINTED)
    return point in own if planned.by_time else point in theirs


KIND = CrashPointTrigger()
