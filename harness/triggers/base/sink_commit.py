"""A batch whose sink's own commit is being written: the tasks of that commit are done, and no reader
of the sink's log sees them.

The file that is about to be renamed says so. Of which batch it is, the checkpoint says: the one that is planned and not
committed.
"""

from __future__ import annotations

import threading
from pathlib import Path

from harness.context import Listing, Reached, RunContext, SinkCommit, running
from harness.errors import WaitError
from harness.hosts import signals
from harness.scenario import COMMITTING, Step, Trigger, Victim
from harness.stack import Process
from harness.triggers.base import wait_until


def wait_for_commit(run: RunContext, step: Step, *, later: int, freeze: bool) -> Reached:
    """Wait for the commit. The thread that watches the sink stops the JVM first, and reads its state afterwards. Raises
    WaitError once the commit cannot come."""
    when, met, reached = step.when, threading.Event(), Reached(None)
    lowest = (when.batch or 0) + later
    jvms: list[Process] = []

    lock = threading.Lock()

    def hook(commit: SinkCommit) -> None:
        # Each sink has its own watch. The disk says which batch it is: the watch of the checkpoint may be behind.
        with lock:
            if run.supervisor.alive and not met.is_set():
                meet(commit)

    def meet(commit: SinkCommit) -> None:
        reached.frozen = signals.freeze(jvms)
        try:
            found = _at_work(run, when, lowest, commit.query)
        except BaseException:
            signals.thaw(reached.frozen)
            raise
        if found is None:
            signals.thaw(reached.frozen)
            return
        reached.folder, reached.batch, reached.commit, reached.late = *found, commit, True
        seen = run.observer.settled(reached.folder) if reached.frozen else run.observer.listing(reached.folder)
        reached.before = reached.with_sink(seen)
        met.set()

    def check() -> bool:
        # A restarted driver has another JVM.
        if freeze and not any(jvm.alive() for jvm in jvms):
            jvms[:] = run.supervisor.processes(Victim.JVM)
        return met.is_set()

    if run.commits is None:
        raise WaitError(f"{when} never came: no sink has a commit log that is watched")
    check()
    driver = run.supervisor.driver
    first = run.supervisor.last_ended_by_fault == 0 and (driver is None or driver.number == 1)
    try:
        with run.commits.armed(hook, first=first):
            wait_until(run, when, check)
    except WaitError:
        signals.thaw(reached.frozen)
        raise
    return reached


def committing(reached: Reached, listing: Listing) -> bool:
    """Return whether the batch is planned, and its sink's commit is still being written."""
    return running(reached.batch, listing) and reached.batch in listing.get(COMMITTING, ())


def _at_work(run: RunContext, when: Trigger, lowest: int, query: str | None) -> tuple[Path, int] | None:
    """Return the checkpoint and the batch whose commit it is: from `lowest` on, with records. `query` feeds the sink,
    as the file says; where it does not, each that is at work may. None where it is another one's commit, or where
    nothing tells whose it is."""
    busy = []
    for folder in run.observer.folders(query):
        listing = run.observer.listing(folder)
        batch = max(listing.get("offsets", ()), default=-1)
        if running(batch, listing):
            busy.append((folder, batch))
    if len(busy) != 1 or busy[0][1] < lowest or run.observer.took_nothing(*busy[0]):
        return None
    return busy[0] if when.query in (None, busy[0][0].name) else None
