"""Does the fault of a step at its moment, and brings back the evidence."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from pathlib import Path

from harness.errors import WaitError
from harness.faults import process as signals
from harness.run.aim import DRIVER_DIES, KILLED, disarm
from harness.run.scene import Listing, Moment, Scene, in_window, running
from harness.scenario import LASTING, Do, Evidence, Fault, Step, StepOutcome, Victim, Window
from harness.stack.base import Host, Process
from harness.wait import Deadline, until

DEATH_WITHIN_S = 20.0
PAUSE_S, TICK_S = 1.0, 0.02
TOLD_WITHIN_S = 10.0
LOST_TASK = re.compile(rb"Lost task .*ExecutorLostFailure")
IDLE = "the driver's log names no task that was lost: the executor may have had none. Kill it at `rows` instead"


def strike(scene: Scene, step: Step, moment: Moment) -> StepOutcome:
    """Do the fault. If the checkpoint no longer stands in the window, nobody is hurt and `hit` is false."""
    in_flight = scene.in_flight() or beyond(scene, moment)
    open_still = in_window(step.when, moment, moment.before)
    signalled: dict[str, str] = {}
    after = moment.before
    driver = scene.supervisor.driver
    log, attempt = (driver.log, driver.number) if driver else (None, 0)
    size = log.stat().st_size if log else 0
    # Whoever is started again must not touch what the dead one left before it is looked at.
    with scene.supervisor.held():
        try:
            if open_still:
                signalled = hurt(scene, step, moment)
            # Before anyone is let go: this is how the fault left it.
            after = scene.observer.listing(moment.folder)
            if signalled and step.do.kind not in LASTING:
                look(scene, moment)
        finally:
            release(scene, step, moment)
    if scene.snapshots is not None and signalled and scene.supervisor.ended(attempt):
        scene.snapshots.restart(moment.step, attempt)
    why = missed(in_flight, open_still, signalled)
    if not why and step.do.kind is Do.KILL_EXECUTOR and moment.held is None and not lost_task(scene, log, size):
        why = IDLE
    beside = len(scene.observer.current())
    of = f"in the checkpoint {moment.folder.name}, one of {beside}" if moment.folder and beside > 1 else ""
    if not why and not proved(step, moment, signalled, after):
        why = "the evidence does not bear out that it died in the window"
    struck = struck_in(scene, moment)
    return StepOutcome(
        name=step.name,
        window=step.when.place,
        batch=moment.batch,
        hit=not why,
        evidence=Evidence(
            signalled=signalled,
            checkpoint_before=moment.before,
            checkpoint_after=after,
            rows_seen=moment.held.rows if moment.held else None,
            in_flight=in_flight,
            asked=step.do.kind is Do.STOP_DRIVER,
            note="; ".join([*filter(None, (why, of)), *notes(step, moment, signalled, after)]),
        ),
        at_s=round(scene.journal.elapsed_s(), 3),
        attempt=attempt if signalled else 0,
        checkpoint=scene.observer.name(struck) if struck else "",
    )


def struck_in(scene: Scene, moment: Moment) -> Path | None:
    """The checkpoint whose batch it was; None where several queries may have worked on it."""
    current = scene.observer.current()
    return moment.folder or (current[0].folder if len(current) == 1 else None)


def look(scene: Scene, moment: Moment) -> None:
    """Keep where everything stands, now that somebody was hurt and before anything goes on."""
    if scene.snapshots is not None:
        folder, driver = struck_in(scene, moment), scene.supervisor.driver
        attempt = driver.number if driver else 0
        scene.snapshots.strike(moment.step, attempt, folder=folder, batch=moment.batch, held=moment.held)


def glance(scene: Scene, moment: Moment) -> None:
    """Who writes, as long as they are there: the server rolls back what a dead client had open."""
    if scene.snapshots is not None:
        scene.snapshots.glance(struck_in(scene, moment), moment.batch, held=moment.held)


def beyond(scene: Scene, moment: Moment) -> str:
    """What a query that reads something else than the run's topic has in hand; empty for others, which are counted in
    records."""
    folder, ours = moment.folder, [progress.folder for progress in scene.observer.all()]
    if folder is None or folder in ours or scene.observer.took_nothing(folder, moment.batch or 0):
        return ""
    return f"batch {moment.batch} of {folder.name}, which reads something else"


def missed(in_flight: str, open_still: bool, signalled: dict[str, str]) -> str:
    """Why nobody can have been hurt; empty if somebody was."""
    if not open_still:
        return "the window had closed before anyone could be hurt"
    if not signalled:
        return "there was no process to hurt"
    return "" if in_flight else "nothing was in flight: every record sent was behind the committed frontier"


def proved(step: Step, moment: Moment, signalled: dict[str, str], after: Listing) -> bool:
    """Does the evidence say that the fault happened, to the right process, in its window, with a batch in hand?"""
    fault = step.do
    if not signals.all_died(signalled):
        return False
    status = next((words for name, words in signalled.items() if name.startswith("driver")), "")
    # A driver that had ended by itself takes the signal too, as a zombie: the wait status tells them apart.
    if fault.kind in KILLED and fault.victim is not Victim.JVM and status != "SIGKILL":
        return False
    # An executor between batches has nothing in hand, and a batch in the commit log was not crashed before that.
    in_hand = fault.kind is Do.KILL_EXECUTOR or step.name.startswith(Do.CRASH_BEFORE_OFFSET_COMMIT)
    if in_hand and after:
        return running(moment.batch, after)
    # A driver that lives goes on as soon as it may, and one that was asked to end may finish its batch on the way: only
    # of one that was killed does the checkpoint still say where it stood.
    return in_window(step.when, moment, after if fault.kind in KILLED else moment.before)


def hurt(scene: Scene, step: Step, moment: Moment) -> dict[str, str]:
    """Signal the victims; returns what became of each."""
    fault = step.do
    if fault.kind is Do.PAUSE_DRIVER:
        return pause(scene, moment, fault.for_s or PAUSE_S)
    if fault.kind is Do.DISCONNECT_DRIVER:
        return disconnect(scene, step, moment)
    targets = chosen(scene, fault, moment)
    driver = scene.supervisor.driver
    if fault.kind in DRIVER_DIES and driver is not None:
        # What is left of the tree is no longer found through its parent; and this death is ours, not the program's.
        scene.supervisor.hurt(driver.number, [each for each in scene.supervisor.processes() if each not in targets])
    if fault.kind is not Do.STOP_DRIVER:
        # A JVM that lives on must not commit what the dead one had in hand before that was looked at.
        jvms = [each for each in scene.supervisor.processes(Victim.JVM) if each not in targets]
        moment.frozen += signals.freeze(jvms if targets else [])
        # All stand still before the first dies, so that none can act on the death of another.
        signals.freeze(targets)
    glance(scene, moment)
    if fault.kind is Do.STOP_DRIVER:
        signalled = {p.name: "asked to end by SIGTERM" for p in signals.send(targets[:1], signal.SIGTERM)}
    else:
        signalled = signals.kill(targets)
    if fault.kind in DRIVER_DIES and driver is not None and signals.all_died(signalled):
        signalled[f"driver {driver.number}"] = ending(scene, driver.number)
    return signalled


def ending(scene: Scene, number: int) -> str:
    """How life `number` of the driver ended: its signal or exit status; `alive` if it did not, deaf to SIGTERM."""
    try:
        status = scene.supervisor.death_of(number, within_s=DEATH_WITHIN_S).status
    except WaitError:
        return "alive"
    return signal.Signals(-status).name if status < 0 else f"exit status {status}"


def chosen(scene: Scene, fault: Fault, moment: Moment) -> list[Process]:
    """The victims, JVMs of the driver first."""
    targets: list[Process] = []
    if fault.kind in DRIVER_DIES:
        victim = Victim.PYTHON if fault.kind is Do.STOP_DRIVER else fault.victim
        targets = scene.supervisor.processes(victim)
    if fault.kind in (Do.KILL_EXECUTOR, Do.CRASH_APPLICATION):
        targets += signals.family(executors(scene, fault, moment))
    return targets


def executors(scene: Scene, fault: Fault, moment: Moment) -> Sequence[Process]:
    """One executor or all. Where a writer is held at a row it is the writer's; none if it is the driver that writes:
    then an executor has nothing in hand."""
    found = scene.stack.executors(scene.lease)
    if fault.kind is Do.CRASH_APPLICATION:
        return found
    client = moment.held.client if moment.held else None
    owner = signals.owner(found, *client) if client else None
    if client and owner is None:
        return []
    return found if fault.which == "all" else [owner or each for each in found[:1]]


def pause(scene: Scene, moment: Moment, for_s: float) -> dict[str, str]:
    """SIGSTOP the driver's tree, look that it stands, let it go on after `for_s` seconds."""
    limit = Deadline(for_s)
    tree = signals.freeze(scene.supervisor.processes())
    try:
        # One that ended meanwhile, a worker between two tasks, stands still too.
        until("the driver to stand still", lambda: not any(map(signals.moves, tree)), within_s=DEATH_WITHIN_S)
        look(scene, moment)
        scene.stop.wait(limit.left_s())
        return {p.name: f"stood still for {for_s:g} s" for p in tree if p.stands()}
    finally:
        signals.thaw(tree)


def disconnect(scene: Scene, step: Step, moment: Moment) -> dict[str, str]:
    """Take the driver off the network, look that it is off, and let it work on there; put it back after `for_s` seconds
    unless it ends before. What was not off from the look at the beginning to the one at the end is left out."""
    hosts = [process for process in scene.supervisor.processes() if isinstance(process, Host) and process.cut()]
    try:
        off = [host for host in hosts if host.apart()]
        if off:
            look(scene, moment)
        # It was held for the look alone: what stands still is not hurt by a network that is away.
        release(scene, step, moment)
        limit, began = Deadline(step.do.for_s or PAUSE_S), scene.journal.elapsed_s()
        while any(host.lives() for host in hosts) and not limit.over() and not scene.stop.wait(TICK_S):
            pass
        off = [host for host in off if host.apart() or not host.lives()]
    finally:
        back = [host for host in hosts if host.join() and not host.apart()]
    ended = f"cut off, and ended within {scene.journal.elapsed_s() - began:.1f} s of it"
    words = {host.name: f"cut off for {limit.seconds:g} s" if host in back else ended for host in off}
    return {host.name: words[host.name] for host in off if host in back or not host.lives()}


def release(scene: Scene, step: Step, moment: Moment) -> None:
    """Undo what the trigger held: frozen processes, the tripwire, armed failpoints."""
    signals.thaw(moment.frozen)
    if scene.tripwire is not None and moment.held is not None:
        scene.tripwire.let_go()
    if step.when.failpoint:
        disarm(scene.lease.folder / "failpoints", step.when)


def lost_task(scene: Scene, log: Path | None, since: int) -> bool:
    """Does the driver's log say, after its first `since` bytes, that a task died with its executor?"""
    if log is None:
        return False
    try:
        until(
            "the driver's log to name a lost task",
            lambda: bool(LOST_TASK.search(log.read_bytes()[since:])),
            within_s=TOLD_WITHIN_S,
            stop=scene.stop,
        )
    except WaitError:
        return False
    return True


def notes(step: Step, moment: Moment, signalled: dict[str, str], after: Listing) -> list[str]:
    """What else a reader should know."""
    words = []
    if step.when.batch is not None and moment.batch not in (None, step.when.batch):
        words.append(f"batch {step.when.batch} was missed, batch {moment.batch} was tried instead")
    if step.when.window is Window.SINK_COMMITTED and moment.batch in after.get("begun", ()):
        words.append(f"commits/.{moment.batch}.*.tmp was begun and never renamed")
    if step.name.startswith(Do.CRASH_BEFORE_OFFSET_COMMIT) and not moment.before.get("offsets"):
        words.append("no checkpoint to look at: that the offsets were not saved yet is the failpoint's word alone")
    if "alive" in signalled.values():
        words.append(f"it was signalled and lived on for {DEATH_WITHIN_S:g} s")
    if moment.held is not None:
        words.append(f"the server's process {moment.held.backend} stood before row {moment.held.rows + 1}")
    return words
