"""Waits for a step's trigger, for as long as it can still come true."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from harness.errors import HarnessError, WaitError
from harness.faults import process as signals
from harness.run.scene import Listing, Moment, Scene, running
from harness.scenario import LASTING, Do, Step, Trigger, Victim, When, Window
from harness.stack.base import Process
from harness.triggers.tripwire import Tripwire
from harness.triggers.watch import Sight
from harness.wait import Waiting, until

TICK_S = 0.004
LONGEST_S = 3600.0
HOP_S = 8.0
"""How long a query that is waited for by name may show nothing once the first ones have done all their input: another
one's output may be its input."""
KILLED = (Do.KILL_DRIVER, Do.CRASH_APPLICATION)
DRIVER_DIES = (*KILLED, Do.STOP_DRIVER)
STOOD = (*KILLED, *LASTING)
"""Faults before which the JVM can be stopped, so that nothing moves between the look and the fault."""


class Aim:
    """Waits on the triggers of one run, one at a time."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._began = monotonic()

    def begin(self) -> None:
        """From now on time counts."""
        self._began = monotonic()

    def wait(self, step: Step, *, slip: int) -> Moment:
        """Return when the trigger of `step` is met; `slip` asks for a later batch than the step names. Raises
        WaitError with the reason once it can no longer be met."""
        waits = {
            When.WINDOW: self._window,
            When.FAILPOINT: self._failpoint,
            When.ROWS: self._rows,
            When.RECORDS: self._plainly,
            When.ELAPSED: self._plainly,
        }
        moment = waits[step.when.kind](step, slip)
        current = self._scene.observer.current()
        # Of several queries at once nobody can say whose batch it was.
        if moment.batch is None and len(current) == 1 and current[0].ends:
            moment.batch = max(current[0].ends)
        return moment

    def _until(self, trigger: Trigger, look: Callable[[], bool]) -> None:
        def looking() -> bool | Waiting:
            # First why, then the look: what came true in between still counts.
            why = "the run is over" if self._scene.stop.is_set() else self._scene.hopeless()
            if look():
                return True
            if why and not self._lags(trigger):
                raise WaitError(f"{trigger} never came: {self._unknown(trigger)}{why}")
            return Waiting(f"batch {self._scene.observer.newest_batch()}")

        until(str(trigger), looking, within_s=LONGEST_S, every_s=TICK_S)

    def _unknown(self, trigger: Trigger) -> str:
        """That no query has the name that was asked for; empty if one has."""
        seen = self._scene.observer.names()
        if trigger.query is None or trigger.query in seen:
            return ""
        return f"no query's checkpoint is a folder {trigger.query!r}, there are {', '.join(seen) or 'none'}; "

    def _lags(self, trigger: Trigger) -> bool:
        """May a query that is waited for by name still come to its batch?"""
        scene = self._scene
        return trigger.query is not None and not scene.stop.is_set() and scene.observer.still_s() < HOP_S

    def _window(self, step: Step, slip: int) -> Moment:
        scene, when = self._scene, step.when
        met = threading.Event()
        moment = Moment(None)
        lowest = (when.batch or 0) + slip
        freezing = step.do.kind in STOOD and step.do.victim is not Victim.PYTHON
        jvms: list[Process] = []

        def hook(seen: Sight) -> Callable[[], None] | None:
            if met.is_set() or seen.window is not when.window or seen.batch < lowest:
                return None
            # The JVM writes the commit log: stop it first, look afterwards.
            moment.frozen = signals.freeze(jvms)
            if scene.observer.took_nothing(seen.folder, seen.batch):
                signals.thaw(moment.frozen)
                return None
            moment.batch, moment.folder = seen.batch, seen.folder
            moment.before = scene.observer.listing(seen.folder)
            return met.set

        def look() -> bool:
            # A restarted driver has another JVM.
            if freezing and not any(jvm.lives() for jvm in jvms):
                jvms[:] = scene.supervisor.processes(Victim.JVM)
            return met.is_set()

        look()
        try:
            with scene.observer.armed(hook, query=when.query):
                self._until(when, look)
        except WaitError:
            signals.thaw(moment.frozen)
            raise
        return moment

    def _alone(self, when: Trigger) -> None:
        """Wait until nobody is left of a life that the schedule has ended: its executors write on for a moment, and
        would meet what is meant for the next one."""
        supervisor = self._scene.supervisor
        if supervisor.last_hurt:
            self._until(when, lambda: supervisor.alive and not supervisor.leftovers())

    def _failpoint(self, step: Step, slip: int) -> Moment:
        when = step.when
        self._alone(when)
        folder = self._scene.lease.folder / "failpoints"
        folder.mkdir(exist_ok=True)
        (folder / (f"{when.failpoint}" if when.batch is None else f"{when.failpoint}@{when.batch}")).touch()
        pattern = f"reached.{when.failpoint}.*"
        try:
            self._until(when, lambda: any(folder.glob(pattern)))
        except WaitError:
            disarm(folder, when)
            raise
        word = next(folder.glob(pattern)).read_text(encoding="utf-8")
        return Moment(int(word) if word else when.batch, before=self._scene.observer.listing())

    def _rows(self, step: Step, slip: int) -> Moment:
        tripwire, when = self._scene.tripwire, step.when
        if tripwire is None:
            raise HarnessError(f"asked to stop {when}; the scenario has no table that rows can be counted in")
        self._alone(when)
        try:
            self._hold(tripwire, when)
            self._until(when, lambda: tripwire.held() is not None)
        except WaitError as failure:
            tripwire.let_go()
            raise WaitError(f"{failure}. Only rows that are inserted count, not those that are updated") from failure
        folder = self._fed()
        listing = self._scene.observer.listing(folder)
        return Moment(self._filled(when.batch, folder), folder=folder, before=listing, held=tripwire.held())

    def _fed(self) -> Path | None:
        """The checkpoint of the query that feeds the counted table; None where it cannot be told from others."""
        current, name = self._scene.observer.current(), self._scene.feeds
        found = [p.folder for p in current if name is None or p.folder.name == name]
        return found[0] if len(found) == 1 else None

    def _filled(self, batch: int | None, folder: Path | None) -> int | None:
        """The first batch from `batch` on that took records: an empty one has no row to stand at."""
        if batch is None or folder is None:
            return batch
        newest = max(self._scene.observer.listing(folder).get("offsets", ()), default=batch)
        while batch < newest and self._scene.observer.took_nothing(folder, batch):
            batch += 1
        return batch

    def _hold(self, tripwire: Tripwire, when: Trigger) -> None:
        """Count rows from where batch N begins: when `commits/N-1` appears, no row of batch N can be in yet."""
        rows, batch = when.count or 0, when.batch or 0
        if batch == 0:
            self._until(when, lambda: armed(tripwire, rows))
            return
        met, lock = threading.Event(), threading.Lock()

        def hold(after: int) -> None:
            with lock:
                if not met.is_set():
                    tripwire.hold_after(after)
                    met.set()

        def hook(seen: Sight) -> None:
            named = self._scene.feeds in (None, seen.folder.name)
            if named and seen.window is Window.OFFSETS_COMMITTED and seen.batch == batch - 1:
                hold(tripwire.rows() + rows)

        def look() -> bool:
            # An attempt that ended with `commits/N-1` written goes on with batch N: no file says that it begins.
            folder = self._fed()
            if not met.is_set() and begun(self._scene.observer.listing(folder), batch):
                now, snapshots = tripwire.rows(), self._scene.snapshots
                before = snapshots.before(folder, batch) if snapshots is not None else None
                hold(max(now, (now if before is None else before) + rows))
            return met.is_set()

        with self._scene.observer.armed(hook):
            self._until(when, look)

    def _plainly(self, step: Step, slip: int) -> Moment:
        scene, when = self._scene, step.when
        if when.kind is When.RECORDS:
            self._until(when, lambda: scene.sent() >= (when.count or 0))
        else:
            self._until(when, lambda: monotonic() - self._began >= (when.elapsed_s or 0.0))
        if when.batch is not None:
            self._until(when, lambda: self._newest(when) >= (when.batch or 0))
        # A driver that has just been born, or waits for its restart, has nothing in hand: to kill it would hurt nobody.
        self._until(when, lambda: scene.supervisor.alive and scene.awake())
        moment = Moment(when.batch, before=scene.observer.listing())
        if scene.observer.folder() is not None:
            # Nor has one between two batches.
            self._until(when, lambda: self._caught(step, moment))
        return moment

    def _newest(self, when: Trigger) -> int:
        """The highest batch that is planned; of the query that is named."""
        observer = self._scene.observer
        listings = [observer.listing(folder) for folder in observer.folders(when.query)]
        return max((batch for listing in listings for batch in listing.get("offsets", ())), default=-1)

    def _caught(self, step: Step, moment: Moment) -> bool:
        """Has one of our queries, or the one that the step names, a batch with records in hand? Then the JVM stands
        still where the fault allows it, and `moment` says which batch of which query."""
        for folder in self._scene.observer.folders(step.when.query):
            if self._busy(folder) is None:
                continue
            freezing = step.do.kind in STOOD and step.do.victim is not Victim.PYTHON
            frozen = signals.freeze(self._scene.supervisor.processes(Victim.JVM) if freezing else [])
            batch = self._busy(folder)
            if batch is not None and not self._scene.observer.took_nothing(folder, batch):
                moment.batch, moment.folder, moment.frozen = batch, folder, frozen
                moment.before = self._scene.observer.listing(folder)
                return True
            signals.thaw(frozen)
        return False

    def _busy(self, folder: Path) -> int | None:
        """The newest batch of a checkpoint, if it is planned and not committed."""
        listing = self._scene.observer.listing(folder)
        batch = max(listing.get("offsets", ()), default=None)
        return batch if running(batch, listing) else None


def armed(tripwire: Tripwire, rows: int) -> bool:
    """Hold the row after `rows`; where more have gone in already, the next one is the first that can be held. False if
    a row slipped by while that was asked for."""
    hold = max(rows, tripwire.rows())
    tripwire.hold_after(hold)
    return tripwire.rows() <= hold or tripwire.held() is not None


def begun(listing: Listing, batch: int) -> bool:
    """Is the batch before committed, and this one not?"""
    commits = listing.get("commits", ())
    return batch - 1 in commits and batch not in commits


def disarm(folder: Path, when: Trigger) -> None:
    """Take away the files that armed a failpoint and those that said it was reached."""
    for path in [*folder.glob(f"{when.failpoint}*"), *folder.glob(f"reached.{when.failpoint}.*")]:
        path.unlink(missing_ok=True)
