"""Keeps the pipeline running as a cluster manager would: starts it, sees it die, starts it again by policy."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from harness.errors import HarnessError, WaitError
from harness.history import AttemptDiagnosed, AttemptEnded, AttemptStarted, History, RestartsEnded
from harness.hosts import signals
from harness.resources import RunResources
from harness.run.last_words import cut, diagnostics, last_error
from harness.run_folder.redact import Redactor
from harness.scenario import Pipeline, Restart, Victim
from harness.stack import (
    Driver,
    HasNames,
    NoMore,
    Process,
    RestartsDrivers,
    Stack,
)
from harness.stacks import other_versions
from harness.wait import Deadline, tallied, until

POLL_S, ASK_EVERY_S = 0.02, 0.1
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
    """Watches the driver between `start()` and `stop()`, in a separate thread."""

    def __init__(self, stack: Stack, own: RunResources, pipeline: Pipeline, *, history: History, logs: Path) -> None:
        self._stack = stack
        self._own = own
        self._pipeline = pipeline
        self._history = history
        self._logs = logs
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.driver: Driver | None = None
        self.deaths: list[Death] = []
        self._died_s = 0.0
        self.gave_up = ""
        self.last_error = ""
        """The error of the last attempt that died by itself, as its log has it."""
        self.ended_well = False
        """The driver is started no more, for its program ended well."""
        self._ended_by_fault: set[int] = set()
        self._left: list[Process] = []
        self._free = threading.Event()
        self._free.set()
        self._restart = Restart()
        self._ended: Callable[[int], None] = lambda number: None
        self.failure: BaseException | None = None

    def start(
        self, restart: Restart, launched: Callable[[int], None], *, ended: Callable[[int], None] = lambda number: None
    ) -> None:
        """Start the first attempt; `launched` is called with the number of each attempt before it begins. `ended` is
        called with that of one that no step ended, before the next one is started. A cluster manager that restarts
        drivers does not wait for it."""
        self._restart, self._ended = restart, ended
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
            self.driver = self._stack.launch(self._own, self._program(number), number=number, log=log)
        took_s = round(monotonic() - began_s, 3)
        seconds = {what: round(wait_s, 2) for what, wait_s in waited.items()}
        spark = self._program(number).spark or ""
        gap = self._gap()
        self._history.write(
            AttemptStarted(attempt=number, log=log.name, took_s=took_s, spark=spark, waited=seconds, **gap)
        )

    def _program(self, number: int) -> Pipeline:
        """Return the program of attempt `number`, on the Spark version that it has then."""
        return other_versions.program(self._pipeline, self._restart.spark, number)

    def _gap(self) -> dict[str, Any]:
        """Between the last death and this attempt's beginning: seconds, and who of the dead attempts still lives."""
        if not self.deaths:
            return {}
        # Reading the processes takes its time, and the history's own time is that after it.
        zombies = tuple(process.name for process in self.leftovers())
        return {"after_s": round(monotonic() - self._died_s, 3), "zombies": zombies}

    def _guarded(self, restart: Restart, launched: Callable[[int], None]) -> None:
        try:
            self._watch(restart, launched)
        except BaseException as failure:
            self.failure = failure

    def _watch(self, restart: Restart, launched: Callable[[int], None]) -> None:
        while not self._stopping.wait(POLL_S):
            driver = self.driver
            status = driver.poll() if driver else None
            if driver is None or status is None:
                continue
            self.deaths.append(Death(driver.number, status, driver))
            self._died_s = monotonic()
            scheduled = driver.number in self._ended_by_fault
            error = self._error(driver) if status > 0 and not scheduled else ""
            self.last_error = error or self.last_error
            self._history.write(
                AttemptEnded(
                    attempt=driver.number, status=status, scheduled=scheduled, names=manager_names(driver), error=error
                )
            )
            if isinstance(self._stack, RestartsDrivers):
                if not self._follow(self._stack, driver, launched):
                    return
                continue
            # A clean end is not a death: a program that does what is there and ends is started again, as by a
            # scheduler.
            failed = sum(death.status != 0 and death.number not in self._ended_by_fault for death in self.deaths)
            if failed > restart.max_restarts:
                most = f"is restarted at most {restart.max_restarts} times"
                self.gave_up = f"the driver died {failed} times and {most}{error and f'; its last error: {error}'}"
                self._history.write(RestartsEnded(why=self.gave_up))
                return
            if self._stopping.wait(restart.delay_s):
                return
            if not scheduled:
                self._ended(driver.number)
            if not self._let():
                return
            self._launch(driver.number + 1, launched)

    def _error(self, dead: Driver) -> str:
        """Return the error that a program ended with, as its log says it."""
        return Redactor(self._own.secrets).text(last_error(dead.log))

    def _follow(self, stack: RestartsDrivers, dead: Driver, launched: Callable[[int], None]) -> bool:
        """Wait for the attempt that the stack's cluster manager starts after `dead`. Return False if there is none, or
        if the run ended first."""
        log = self._logs / f"driver-{dead.number + 1}.log"
        while not self._stopping.wait(ASK_EVERY_S):
            found = stack.next_attempt(self._own, after=dead, log=log)
            if isinstance(found, NoMore):
                diagnosed = self._diagnosed(dead)
                why = found.why + (f"; diagnostics of attempt {dead.number}: {cut(diagnosed)}" if diagnosed else "")
                self.ended_well, self.gave_up = found.well, why
                self._history.write(RestartsEnded(why=why, well=found.well))
                return False
            if found is not None:
                launched(found.number)
                self.driver = found
                gap, names = self._gap(), manager_names(found)
                self._history.write(AttemptStarted(attempt=found.number, log=log.name, names=names, **gap))
                self._diagnosed(dead)
                return True
        return False

    def _diagnosed(self, dead: Driver) -> str:
        """Return the cluster manager's diagnostics of how that attempt ended, and write them into the history. They
        exist only once the cluster manager has dealt with that end."""
        words, scheduled = diagnostics(dead), dead.number in self._ended_by_fault
        if words:
            self._history.write(AttemptDiagnosed(attempt=dead.number, words=words, scheduled=scheduled))
        return words

    def _let(self) -> bool:
        """Wait until nothing holds restarts; False if the end came first."""
        while not self._free.wait(POLL_S):
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
        """Return whether the present attempt has an executor. Without one no task of it runs."""
        return bool(self._stack.executors(self._own, attempt=self._present))

    @property
    def _present(self) -> int:
        return self.driver.number if self.driver else 0

    def expect_death(self, number: int, left: list[Process]) -> None:
        """Attempt `number` is about to be ended by the schedule: that does not count against the restarts. `left` are
        those of its processes that are to live on."""
        self._ended_by_fault.add(number)
        self._left += left

    @property
    def last_ended_by_fault(self) -> int:
        """The number of the last attempt that the schedule ended; 0 before the first."""
        return max(self._ended_by_fault, default=0)

    @property
    def alive(self) -> bool:
        """Return whether there is a driver. False between a death and the restart."""
        return self.driver is not None and self.driver.poll() is None

    def healthy(self) -> None:
        """Raise HarnessError if the supervisor itself failed."""
        if self.failure is not None:
            raise HarnessError(f"the supervisor of the driver failed: {self.failure!r}")

    def ended(self, number: int) -> bool:
        """Return whether that attempt is known to be dead."""
        return any(death.number == number for death in self.deaths)

    def ending(self, number: int, *, within_s: float) -> int | None:
        """Return the exit status of attempt `number`, negative for a signal; None if it has not ended within that
        time."""
        with suppress(WaitError):
            what = f"attempt {number} of the driver to end"
            until(what, lambda: self.ended(number), within_s=within_s, every_s=POLL_S)
        return next((death.status for death in self.deaths if death.number == number), None)

    def processes(self, victim: Victim = Victim.TREE) -> list[Process]:
        """Return what dies of the current attempt when `victim` does; empty without one."""
        return list(self.driver.processes(victim)) if self.driver else []

    def leftovers(self) -> list[Process]:
        """Return living processes of the run that are of an attempt before the present one."""
        present = [*self.processes(), *signals.family(self._stack.processes(self._own, attempt=self._present))]
        return [process for process in self.living() if process not in present]

    def stop(self) -> None:
        """End the application for good: no restart, driver and executors killed and seen to be gone."""
        self._stopping.set()
        try:
            if self._thread is not None:
                # An attempt that is being launched would come to light after the last check.
                self._thread.join(LAUNCH_WITHIN_S)
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
        """Return every living process of the run."""
        found = [*self.processes(), *signals.family(self._stack.processes(self._own)), *self._left]
        return [process for process in found if process.alive()]


def manager_names(driver: Driver) -> dict[str, str]:
    """Return how a cluster manager calls that attempt, where there is one."""
    return dict(driver.names()) if isinstance(driver, HasNames) else {}
