"""Keeps the pipeline running as a cluster manager would: starts it, sees it die, starts it again by policy."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from harness.errors import HarnessError, StackError, WaitError
from harness.hosts import signals
from harness.resources import RunResources
from harness.run.last_words import cut, diagnostics, tail
from harness.run_folder.journal import Journal
from harness.scenario import Pipeline, Restart, Victim
from harness.stack import (
    Driver,
    HasNames,
    KeepsStandbys,
    NoMore,
    Process,
    RestartsDrivers,
    Stack,
    Standby,
    Start,
)
from harness.stacks import other_lines
from harness.wait import Deadline, Waiting, tallied, undisturbed, until

LOOK_EVERY_S, ASK_EVERY_S = 0.02, 0.1
UNSHOWN = "what the attempt before asked for does not show, or is nothing that can be made ready for it"
LATE = "it was not ready in time"
STOP_WITHIN_S = 15.0
LAUNCH_WITHIN_S = 180.0


@dataclass(frozen=True)
class Death:
    """How one attempt of the driver ended: exit status, negative for a signal."""

    number: int
    status: int
    driver: Driver

    @property
    def log(self) -> Path:
        """What it said."""
        return self.driver.log


class Supervisor:
    """Watches the driver in a thread of its own between `start()` and `stop()`."""

    def __init__(self, stack: Stack, own: RunResources, pipeline: Pipeline, *, journal: Journal, logs: Path) -> None:
        self._stack = stack
        self._own = own
        self._pipeline = pipeline
        self._journal = journal
        self._logs = logs
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.driver: Driver | None = None
        self.deaths: list[Death] = []
        self._died_s = 0.0
        self.gave_up = ""
        self.ended_well = False
        """Is the driver started no more because its program ended well?"""
        self._ended_by_fault: set[int] = set()
        self._left: list[Process] = []
        self._free = threading.Event()
        self._free.set()
        self._standby: Standby | None = None
        self._prepared: set[int] = set()
        self._preparing = threading.Lock()
        self._parked = False
        self._taken: Standby | None = None
        self._settle: Callable[[], None] = lambda: None
        self._restart = Restart()
        self.starts: dict[int, Start] = {}
        """How each attempt began, by its number: cold, or what its program got of a standby."""
        self.failure: BaseException | None = None

    def start(
        self, restart: Restart, launched: Callable[[int], None], *, settle: Callable[[], None] = lambda: None
    ) -> None:
        """Start the first attempt; `launched` is called with the number of each attempt before it begins, `settle`
        before the program of a standby begins: it waits until nobody looks at the dead attempt any more."""
        self._settle, self._restart = settle, restart
        self._launch(1, launched)
        self._thread = threading.Thread(target=self._guarded, args=(restart, launched), name="supervisor", daemon=True)
        self._thread.start()

    def _launch(self, number: int, launched: Callable[[int], None]) -> None:
        launched(number)
        if self._stopping.is_set():
            return  # the end came while it was asked where the dead attempt had stood
        log, began_s = self._logs / f"driver-{number}.log", monotonic()
        # The first one's waits are those of the run's own thread, which counts them.
        counting: AbstractContextManager[Mapping[str, float]] = tallied() if number > 1 else nullcontext({})
        with counting as waited:
            standby = self._standby_for(number)
            if standby is None:
                if self._stopping.is_set():
                    return
                self.driver = self._stack.launch(self._own, self._program(number), number=number, log=log)
        self._taken, self.starts[number] = standby, Start.COLD if standby is None else Start.UNASKED
        took_s = round(monotonic() - began_s, 3)
        self._journal.write(
            "launched", number=number, log=log.name, standby=standby is not None, took_s=took_s, **self._gap(),
            **self._spark(number), **_waited(waited),
        )  # fmt: skip

    def _program(self, number: int) -> Pipeline:
        """The program of attempt `number`, on the line of Spark that it has then."""
        return other_lines.program(self._pipeline, self._restart.spark, number)

    def _spark(self, number: int) -> dict[str, str]:
        line = self._program(number).spark
        return {"spark": line} if line else {}

    def _gap(self) -> dict[str, Any]:
        """Between the last death and this attempt's beginning: seconds, and who of the dead attempts still lives."""
        if not self.deaths:
            return {}
        # The look at the processes takes its time, and the journal's own time is that after it.
        orphans = [process.name for process in self.leftovers()]
        return {"after_s": round(monotonic() - self._died_s, 3), "orphans": orphans}

    def prepare(self) -> None:
        """An attempt is at work: have the next one's driver made ready, where the stack can do that. At most one for
        each attempt."""
        driver, stack = self.driver, self._stack
        if driver is None or not self.unprepared or not isinstance(stack, KeepsStandbys):
            return
        self._prepared.add(driver.number)
        log = self._logs / f"driver-{driver.number + 1}.log"
        with self._preparing:
            # It may have died by now, and the next one have begun.
            if self._stopping.is_set() or self.driver is not driver or driver.poll() is not None:
                return
            now, then = self._program(driver.number), self._program(driver.number + 1)
            try:
                if now.spark != then.spark:
                    raise StackError(f"attempt {driver.number + 1} begins on another Spark")
                self._standby = stack.standby(self._own, then, after=driver, log=log)
            except (HarnessError, OSError) as failure:
                self._journal.write("no standby", number=driver.number + 1, why=str(failure))
            else:
                if self._standby is None:
                    self._journal.write("no standby", number=driver.number + 1, why=UNSHOWN)

    @property
    def unprepared(self) -> bool:
        """Is there a driver for whose end nobody has been made ready? A program that once asked for another session
        than the one that was ready would do so again."""
        driver = self.driver
        known = driver is not None and driver.number in self._prepared
        return driver is not None and not known and Start.FRESH not in self.starts.values()

    @property
    def starting(self) -> bool:
        """Is the next attempt still to begin, though its driver is there or waited for?"""
        return self._parked

    def _standby_for(self, number: int) -> Standby | None:
        """The standby whose program has begun as attempt `number`; None if there is none that could."""
        with self._preparing:
            standby, self._standby = self._standby, None
        if standby is None:
            return None
        self._parked = True
        try:
            if standby.driver.number == number and standby.ready(stop=self._stopping.is_set):
                self.driver = standby.driver
                self._settle()
                if not self._stopping.is_set() and standby.go():
                    return standby
                self.driver = None
            why = LATE if standby.driver.poll() is None else tail(standby.driver.log, lines=3)
            self._journal.write("no standby", number=number, why=why)
            standby.drop()
        finally:
            self._parked = False
        return None

    def _ask(self) -> None:
        """What has the program got of the standby?"""
        if self._taken is not None and self.driver is not None and (got := self._taken.got()):
            self.starts[self.driver.number], self._taken = got, None
            self._journal.write("standby taken", number=self.driver.number, got=got)

    def _guarded(self, restart: Restart, launched: Callable[[int], None]) -> None:
        try:
            self._watch(restart, launched)
        except BaseException as failure:
            self.failure = failure

    def _watch(self, restart: Restart, launched: Callable[[int], None]) -> None:
        while not self._stopping.wait(LOOK_EVERY_S):
            self._ask()
            driver = self.driver
            status = driver.poll() if driver else None
            if driver is None or status is None:
                continue
            self.deaths.append(Death(driver.number, status, driver))
            self._died_s = monotonic()
            scheduled = driver.number in self._ended_by_fault
            self._journal.write("died", number=driver.number, status=status, scheduled=scheduled, **named(driver))
            if isinstance(self._stack, RestartsDrivers):
                if not self._follow(self._stack, driver, launched):
                    return
                continue
            # A clean end is not a death: a program that does what is there and ends is started again, as by a
            # scheduler.
            failed = sum(death.status != 0 and death.number not in self._ended_by_fault for death in self.deaths)
            if failed > restart.max_restarts:
                self.gave_up = f"the driver died {failed} times and is restarted at most {restart.max_restarts} times"
                self._journal.write("gave up", why=self.gave_up)
                return
            if self._stopping.wait(restart.delay_s) or not self._let():
                return
            self._launch(driver.number + 1, launched)

    def _follow(self, stack: RestartsDrivers, dead: Driver, launched: Callable[[int], None]) -> bool:
        """Wait for the attempt that the stack's cluster manager starts after `dead`; False if there is none, or the end
        came first."""
        log = self._logs / f"driver-{dead.number + 1}.log"
        while not self._stopping.wait(ASK_EVERY_S):
            found = stack.next_attempt(self._own, after=dead, log=log)
            if isinstance(found, NoMore):
                said = self._diagnosed(dead)
                why = found.why + (f"; diagnostics of attempt {dead.number}: {cut(said)}" if said else "")
                self.ended_well, self.gave_up = found.well, why
                self._journal.write("gave up", why=why, **({"well": True} if found.well else {}))
                return False
            if found is not None:
                launched(found.number)
                self.driver, self.starts[found.number] = found, Start.COLD
                self._journal.write("launched", number=found.number, log=log.name, **named(found), **self._gap())
                self._diagnosed(dead)
                return True
        return False

    def _diagnosed(self, dead: Driver) -> str:
        """What a cluster manager says of how that attempt ended; the journal has it from here on. Asked once it has
        dealt with that end: before, it has nothing to say."""
        said, scheduled = diagnostics(dead), dead.number in self._ended_by_fault
        if said:
            self._journal.write("diagnostics", number=dead.number, words=said, scheduled=scheduled)
        return said

    def _let(self) -> bool:
        """Wait until nobody holds restarts; False if the end came first."""
        while not self._free.wait(LOOK_EVERY_S):
            if self._stopping.is_set():
                return False
        return True

    @contextmanager
    def without_restarts(self) -> Iterator[None]:
        """Deaths are noted, and nothing is started again until this is left. For one thread at a time."""
        self._free.clear()
        try:
            with self._held():
                yield
        finally:
            self._free.set()

    def _held(self) -> AbstractContextManager[None]:
        stack = self._stack
        return stack.holding(self._own) if isinstance(stack, RestartsDrivers) else nullcontext()

    def equipped(self) -> bool:
        """Has the present attempt got an executor? Without one no task of it runs."""
        return not self._parked and bool(self._stack.executors(self._own, attempt=self._present))

    @property
    def _present(self) -> int:
        return self.driver.number if self.driver else 0

    def expect_death(self, number: int, left: list[Process]) -> None:
        """Attempt `number` is about to be ended by the schedule: that does not count against the restarts. `left` are
        those of its processes that are to live on. Nothing can be hit of one whose program has not begun."""
        if self._parked and number == self._present:
            return
        self._ended_by_fault.add(number)
        self._left += left

    @property
    def last_ended_by_fault(self) -> int:
        """The number of the last attempt that the schedule ended; 0 before the first."""
        return max(self._ended_by_fault, default=0)

    @property
    def alive(self) -> bool:
        """Is there a driver? False between a death and the restart: until the program begins."""
        return self.driver is not None and not self._parked and self.driver.poll() is None

    def healthy(self) -> None:
        """Raise HarnessError if the supervisor itself failed."""
        if self.failure is not None:
            raise HarnessError(f"the supervisor of the driver failed: {self.failure!r}")

    def ended(self, number: int) -> bool:
        """Is that attempt known to be dead?"""
        return any(death.number == number for death in self.deaths)

    def death_of(self, number: int, *, within_s: float) -> Death:
        """The death of attempt `number`. Raises WaitError if it does not die in time."""

        def look() -> Death | Waiting:
            return next((d for d in self.deaths if d.number == number), Waiting(f"attempt {number} alive"))

        found = until(f"attempt {number} of the driver to end", look, within_s=within_s, every_s=LOOK_EVERY_S)
        assert isinstance(found, Death)
        return found

    def ending(self, number: int, *, within_s: float) -> int | None:
        """The exit status of attempt `number`, negative for a signal; None if it has not ended within that time."""
        try:
            return self.death_of(number, within_s=within_s).status
        except WaitError:
            return None

    def processes(self, victim: Victim = Victim.TREE) -> list[Process]:
        """What dies of the current attempt when `victim` does; empty without one, and until its program begins: there
        is nothing to hit then."""
        return [] if self._parked else self._tree(victim)

    def _tree(self, victim: Victim = Victim.TREE) -> list[Process]:
        return list(self.driver.processes(victim)) if self.driver else []

    def leftovers(self) -> list[Process]:
        """Living processes of the run that are of an attempt before the present one."""
        present = [*self._tree(), *signals.family(self._stack.processes(self._own, attempt=self._present))]
        return [process for process in self.living() if process not in present]

    def stop(self) -> None:
        """End the application for good: no restart, driver, executors and standby killed and seen to be gone."""
        self._stopping.set()
        try:
            if self._thread is not None:
                # An attempt that is being launched would come to light after the last look.
                self._thread.join(LAUNCH_WITHIN_S)
            with self._preparing:
                standby, self._standby = self._standby, None
            if standby is not None:
                with undisturbed():
                    standby.drop()
        finally:
            self._end()
        if self._thread is not None and self._thread.is_alive():
            raise HarnessError(f"a driver was still being launched after {LAUNCH_WITHIN_S:g} s")

    def _end(self) -> None:
        try:
            if isinstance(self._stack, RestartsDrivers):
                self._stack.end(self._own)
        finally:
            self._kill()

    def _kill(self) -> None:
        limit = Deadline(STOP_WITHIN_S)
        # Again until none is left: a process may have started another while it was being killed.
        while left := self.living():
            if limit.over():
                names = ", ".join(process.name for process in left)
                raise HarnessError(f"could not end the pipeline within {STOP_WITHIN_S:g} s; left: {names}")
            signals.kill(left)
            if self.driver is not None:
                self.driver.poll()

    def living(self) -> list[Process]:
        """Every living process of the run."""
        found = [*self._tree(), *signals.family(self._stack.processes(self._own)), *self._left]
        return [process for process in found if process.alive()]


def _waited(seconds: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """What a launch waited for, for the journal."""
    return {"waited": {what: round(took_s, 2) for what, took_s in seconds.items()}} if seconds else {}


def named(driver: Driver) -> dict[str, str]:
    """How a cluster manager calls that attempt, where there is one."""
    return dict(driver.names()) if isinstance(driver, HasNames) else {}
