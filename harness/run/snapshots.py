"""Keeps where everything stood when a fault was injected, and what the dead attempt still did after that.

A snapshot never ends a run and never decides anything: it says what could not be read. The first one is taken while the
victim is dead or frozen and no attempt has been started again. The second one shows what a zombie of the dead attempt
wrote after that. It is taken once the next attempt is on its way and before it can have touched anything.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Protocol, TypeVar, runtime_checkable

from harness.checkpoint import Offsets
from harness.context import CheckpointEvent, CountedSink, Reached
from harness.errors import HarnessError, WaitError, one_line
from harness.history import History, SinkNotRead, SinkRead
from harness.resources import RunResources
from harness.run.progress.observer import Observer
from harness.run.supervisor import Supervisor
from harness.scenario import CrashPoint, Sink, Victim
from harness.sinks import SINKS
from harness.sinks.base import ShowsWriters, Writer, statements
from harness.sinks.reading import busy, keep, opened
from harness.sinks.table import SinkTable, gone, save
from harness.snapshot import BACK, ENDED, INJECTION, OFFSETS, RESTART, QueryState, Snapshot
from harness.wait import until

Seen = TypeVar("Seen")

SNAPSHOT_ROWS_MAX = 200_000
"""Beyond this many rows of a sink only their fingerprints are kept."""
WAIT_MS = 2_000
LAUNCH_WITHIN_S = 120.0
LATE_LOG = "async-log-write"
"""What Spark calls the one thread that writes the logs of a query with AsyncProgressTracking: it has no other."""
LATE_S = 3.0
"""How long after a restart the dead attempt's zombies are waited for; never longer than half of what a start takes."""
JOIN_S = 15.0
_NONE: tuple[QueryState, ...] = ()
_NOTHING: tuple[str, ...] = ()
_NO_WRITERS: tuple[list[Writer], list[Writer]] = ([], [])


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a snapshot reads. `sent`: next offsets as acknowledged; `position`: where a pipeline that manages its
    own offsets stands, None with a checkpoint; `moved`: has that been seen to move since an attempt was launched;
    `start_s`: how long a start takes, as far as is known; `saving`: the statements of open transactions that have
    written where such a pipeline saves its offsets; `counted`: the sinks whose rows are counted."""

    folder: Path
    sinks: tuple[Sink, ...]
    own: RunResources
    supervisor: Supervisor
    observer: Observer
    history: History
    sent: Callable[[], Mapping[int, int]]
    position: Callable[[], Offsets | None]
    moved: Callable[[int], bool]
    start_s: Callable[[], float]
    saving: Callable[[], tuple[str, ...]] = lambda: ()
    counted: Sequence[CountedSink] = ()


@runtime_checkable
class NamesThreads(Protocol):
    """A process whose threads can be seen."""

    def threads(self) -> frozenset[str]:
        """Return what they are called, the first 15 bytes of each."""


class Snapshots:
    """Takes the snapshots of one run."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._stop = threading.Event()
        self._ending = threading.Event()
        self._threads: list[threading.Thread] = []
        self._rows: dict[tuple[int, Path, int], int] = {}
        self._writers_noted: dict[str, tuple[str, ...]] = {}
        self._late_log: bool | None = None
        self._open = False
        """A transaction was open when the last fault was injected."""
        self._handed: dict[int, int] = {}
        if parts.counted:
            parts.observer.listen(self._count)

    def note_writers(self, reached: Reached, *, folder: Path | None) -> None:
        """Remember for the next snapshot who writes now: the victims are frozen, and not dead yet."""
        handed = self._counted(_Reading(), reached, folder)
        self._writers_noted = self._writing(_Reading(), reached, handed)
        self._late_log = self._logs_late()

    def injection(self, reached: Reached, attempt: int, *, folder: Path | None) -> None:
        """The step struck an attempt that worked on the batch of the checkpoint at `folder`."""
        self._take(reached.step, INJECTION, attempt, reached=reached, at=folder)

    def resuming(self, step: int, attempt: int) -> None:
        """A driver that was paused is about to go on: a transaction that was open, and is not any more, was ended by
        its server."""
        if self._open:
            self._take(step, RESTART, attempt)

    def ended(self, step: int, attempt: int) -> None:
        """The attempt has ended, and no step did it. `step` is the last one that is over."""
        self._take(step, ENDED.format(attempt), attempt)

    def launched(self) -> None:
        """Another attempt begins: what it hands to the sink is counted from here."""
        for each in self._parts.counted:
            with suppress(HarnessError):
                self._handed[each.place] = each.rows.rows()

    def back(self, step: int, component: str) -> list[str]:
        """The component's server is back, and no client could write there since step `step` struck it: keep its sinks,
        and return for each whose rows are not as they were how many are gone or changed, in words."""
        reading, began, out, count = _Reading(), monotonic(), list[str](), 0
        before, after = (self._folder(step, moment) for moment in (INJECTION, BACK))
        for index, sink in enumerate(self._parts.sinks):
            if SINKS[sink.kind].component != component:
                continue
            count += self._sink(reading, after, index)
            lost, held = reading.at(partial(gone, before, after, index), (0, 0))
            if lost:
                out.append(f"{lost} of the {held} rows that {sink.name} held were gone or changed once it was back")
        seconds, failures = round(monotonic() - began, 3), "; ".join(reading.failures)
        self._parts.history.write(SinkRead(step=step, moment=BACK, seconds=seconds, rows=count, error=failures))
        return out

    def restart(self, step: int, attempt: int) -> None:
        """Take the second snapshot in a separate thread: the attempt is dead, and the next one may be launched any
        time."""
        thread = threading.Thread(target=self._late, args=(step, attempt), name=f"snapshot {step}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def finish(self) -> None:
        """Wait until those that were begun are there, and for no attempt that has not been launched by now."""
        self._ending.set()
        for thread in tuple(self._threads):
            thread.join(JOIN_S)

    def close(self) -> None:
        """Give up what has not been taken."""
        self._stop.set()
        self.finish()

    def _count(self, seen: CheckpointEvent) -> None:
        # No row of the next batch can be in yet.
        for each in self._parts.counted if seen.point is CrashPoint.BATCH_COMMITTED else ():
            with suppress(HarnessError):
                self._rows[each.place, seen.folder, seen.batch] = each.rows.rows()

    def before(self, place: int, folder: Path | None, batch: int | None) -> int | None:
        """Return how many rows the sink at `place` had been handed when the batch began."""
        if batch is None:
            return None
        return 0 if batch == 0 else self._rows.get((place, folder, batch - 1)) if folder else None

    def _late(self, step: int, attempt: int) -> None:
        """What stays of the dead attempt's work once its zombies are done, unless the next one was quicker."""
        parts, folder = self._parts, self._folder(step, RESTART)
        try:
            until("the next attempt", lambda: self._ending.is_set() or self._next(attempt), within_s=LAUNCH_WITHIN_S)
            if not self._next(attempt):
                return
            within_s = min(LATE_S, parts.start_s() / 2)
            with suppress(WaitError):
                until(
                    "the dead attempt's zombies to end", self._at_rest, within_s=within_s, every_s=0.1, stop=self._stop
                )
            if not self._stop.is_set() and self._untouched(attempt):
                self._take(step, RESTART, attempt)
            # Asked again: what was read meanwhile might be the next attempt's.
            if not self._untouched(attempt):
                shutil.rmtree(folder, ignore_errors=True)
                parts.history.write(SinkNotRead(step=step, why="the next attempt was at work already"))
        except (HarnessError, OSError) as failure:
            shutil.rmtree(folder, ignore_errors=True)
            parts.history.write(SinkNotRead(step=step, why=str(failure)))

    def _next(self, attempt: int) -> bool:
        driver = self._parts.supervisor.driver
        return driver is not None and driver.number > attempt

    def _at_rest(self) -> bool:
        parts, own = self._parts, self._parts.own
        if parts.supervisor.leftovers():
            return False
        return not any(busy(sink, own.parts) for sink in parts.sinks)

    def _untouched(self, attempt: int) -> bool:
        """Return whether the next attempt is there, and has done nothing yet. What it does first may show only in the
        sink; no task runs without an executor."""
        parts, present = self._parts, self._parts.supervisor.driver
        if present is None or present.number != attempt + 1 or parts.supervisor.equipped():
            return False
        return not parts.observer.touched(present.number) and not parts.moved(present.number)

    def _folder(self, step: int, moment: str) -> Path:
        return self._parts.folder / "snapshots" / f"{step}-{moment}"

    def _take(
        self, step: int, moment: str, attempt: int, *, reached: Reached | None = None, at: Path | None = None
    ) -> None:
        """Where the pipeline stands first, then who writes, then the sinks: what is committed meanwhile shows once at
        least."""
        parts, reading, began = self._parts, _Reading(), monotonic()
        at_s = round(parts.history.elapsed_s(), 3)
        queries = reading.at(parts.observer.states, _NONE)
        position, sent = reading.at(lambda: _sorted(parts.position()), None), _sorted(parts.sent())
        handed = self._counted(reading, reached, at)
        writers = self._writing(reading, reached, handed)
        late_log: bool | None = None
        if moment == INJECTION:
            writers = _both(self._writers_noted, writers)
            # A dead JVM has no threads: they were read while it stood still.
            late_log = reading.at(self._logs_late, None) if self._late_log is None else self._late_log
            self._writers_noted, self._late_log, self._open = {}, None, bool(writers)
        folder = self._folder(step, moment)
        kept = [self._sink(reading, folder, index) for index in range(len(parts.sinks))]
        late = _Reading()
        left = self._writing(late, reached, handed)
        taken = Snapshot(
            step=step,
            moment=moment,
            attempt=attempt,
            at_s=at_s,
            queries=queries,
            position=position,
            sent=sent or {},
            writing=writers,
            handed=handed,
            alive=reading.at(self._alive, None),
            error="; ".join(reading.failures),
            left=None if late.failures else left,
            late_log=late_log,
        )
        seconds, failures = round(monotonic() - began, 3), "; ".join(reading.failures)
        parts.history.write(
            SinkRead(step=step, moment=moment, seconds=seconds, rows=sum(kept), error=failures, snapshot=taken)
        )

    def _counted(
        self, reading: _Reading, reached: Reached | None, at: Path | None
    ) -> dict[str, tuple[int, int | None]]:
        """By the place of a sink, how many rows it was handed, and how many when the batch began (None: not known).
        Rows that an earlier attempt at the batch was counted with are not in the second number."""
        out = dict[str, tuple[int, int | None]]()
        for each in self._parts.counted:
            rows = reading.at(each.rows.rows, None)
            if rows is None:
                continue
            # The row that is held has drawn its number, and is not in.
            held = reached is not None and reached.blocked is not None and reached.sink == each.place
            struck = reached is not None and self._of_the_struck(each, reached, at)
            began = self.before(each.place, at, reached.batch) if reached is not None and struck else None
            before = None if began is None else max(began, self._handed.get(each.place, 0))
            out[str(each.place)] = (rows - held, before)
        return out

    def _of_the_struck(self, counted: CountedSink, reached: Reached, at: Path | None) -> bool:
        """Return whether the batch that was struck is one of the query that feeds a sink."""
        alone = counted.feeds is None and len(self._parts.observer.current()) < 2
        return alone or reached.sink == counted.place or (at is not None and counted.feeds == at.name)

    def _alive(self) -> tuple[str, ...]:
        """Asked of the process table, not of who signalled."""
        return tuple(dict.fromkeys(process.name for process in self._parts.supervisor.living()))

    def _logs_late(self) -> bool | None:
        """Return whether a JVM of the driver has the thread that logs offsets late; None where no thread can be
        seen."""
        jvms = self._parts.supervisor.processes(Victim.JVM)
        seen = [found for jvm in jvms if isinstance(jvm, NamesThreads) and (found := jvm.threads())]
        return any(LATE_LOG in found for found in seen) if seen else None

    def _writing(
        self, reading: _Reading, reached: Reached | None, handed: Mapping[str, tuple[int, int | None]]
    ) -> dict[str, tuple[str, ...]]:
        """Return who writes, by the sink's position. A writer that is held before the first row of a sink has written
        nothing there, whatever it has written elsewhere."""
        parts, out, held = self._parts, dict[str, tuple[str, ...]](), _before_its_first(reached, handed)
        beside: dict[tuple[str, Writer], None] = {}
        found: set[tuple[str, Writer]] = set()
        for index, sink in enumerate(parts.sinks):
            there = reading.at(partial(opened, sink, parts.own.parts), None)
            if not isinstance(there, ShowsWriters):
                continue
            theirs, ours = reading.at(partial(there.writing, wait_ms=WAIT_MS), _NO_WRITERS)
            found |= {(there.server, writer) for writer in theirs}
            beside |= {(there.server, writer): None for writer in ours}
            # A prepared transaction, or one of Kafka, has no server's process.
            empty = held if reached is not None and reached.sink == index else None
            if words := statements(each for each in theirs if each.backend is None or each.backend != empty):
                out[str(index)] = words
        rest = statements(writer for server, writer in beside if (server, writer) not in found)
        more = {OFFSETS: reading.at(parts.saving, _NOTHING), "": rest}
        return {**out, **{place: words for place, words in more.items() if words}}

    def _sink(self, reading: _Reading, folder: Path, index: int) -> int:
        sink, own = self._parts.sinks[index], self._parts.own.parts
        kept = reading.at(lambda: keep(folder, index, sink, own, rows_max=SNAPSHOT_ROWS_MAX, wait_ms=WAIT_MS), -1)
        if kept < 0:
            about = SinkTable(name=sink.name, kind=sink.kind, target=sink.target)
            reading.at(lambda: save(folder, index, replace(about, unreadable=reading.failures[-1])), None)
        return max(kept, 0)


def _before_its_first(reached: Reached | None, handed: Mapping[str, tuple[int, int | None]]) -> int | None:
    """Return the server's process that is held before the first row of the batch; None if none is."""
    if reached is None or reached.blocked is None:
        return None
    rows, before = handed.get(str(reached.sink), (None, None))
    return reached.blocked.backend if rows == (before or 0) else None


def _both(one: Mapping[str, tuple[str, ...]], other: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return the writers of two readings."""
    places = sorted({*one, *other})
    return {place: tuple(dict.fromkeys((*one.get(place, ()), *other.get(place, ())))) for place in places}


def _sorted(offsets: Mapping[int, int] | None) -> Offsets | None:
    return None if offsets is None else dict(sorted(offsets.items()))


class _Reading:
    """Reads one thing after the other, and records in words which could not be read."""

    def __init__(self) -> None:
        self.failures: list[str] = []

    def at(self, what: Callable[[], Seen], otherwise: Seen) -> Seen:
        try:
            return what()
        except (HarnessError, OSError) as failure:
            self.failures.append(one_line(failure))
            return otherwise
