"""The trigger `rows`: the sink's table was handed so many rows, and the writer of the next one is held."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Annotated

from pydantic import Field

from harness.context import CheckpointEvent, CountedSink, Listing, Reached, RowBreakpoint, RunContext, running
from harness.errors import HarnessError, WaitError
from harness.fields import values as v
from harness.fields.shape import Shape
from harness.kinds import About, Refusal, Refusals
from harness.scenario import CrashPoint, Step, Trigger
from harness.triggers.base import Planned, Trait, alone, no_query, unseen, wait_until
from harness.wait import until

ROWS_MAX = 10_000_000
DRAWN_ROWS, DRAWN_APART = 20, 60
SHOWS_S = 3.0
"""How long the batch of a writer that is held may take to show; it goes nowhere meanwhile."""


class Keys(Shape):
    """In which sink."""

    sink: Annotated[
        v.Text,
        Field(
            None, description="the sink whose rows count, where several can be counted: its table, or its whole name"
        ),
    ]


class Rows:
    """Counted by a row breakpoint of the sink's, from the beginning, or from where a batch begins."""

    about = About(
        name="rows",
        summary="the sink's table was handed so many rows; 0: before the first row",
        example="{rows: 40, batch: 3}",
        options=v.counted(0, ROWS_MAX),
        beside=Keys,
    )
    traits = frozenset({Trait.COUNTS_ROWS})

    def trigger(
        self, value: int, *, batch: int | None = None, query: str | None = None, sink: str | None = None
    ) -> Trigger:
        """After `value` rows."""
        where = sink or "the sink"
        place = f"after row {value} in {where}" if value else f"before the first row in {where}"
        options = {"sink": sink} if sink else {}
        return Trigger(kind=self.about.name, value=value, place=place, batch=batch, query=query, options=options)

    def draws(self, random: Random, planned: Planned, batch: int) -> Iterator[Trigger]:
        """A row of the batch, of each sink that can be counted, and the gap before the first row of a later one. Where
        batches are not seen, a row of all that there are, so that a later one comes later."""
        sinks = planned.countable if planned.countable and len(planned.countable) > 1 else [None]
        for place, sink in enumerate(sinks):
            row = random.randint(1, DRAWN_ROWS)
            if not planned.checkpoint:
                yield self.trigger(DRAWN_APART * batch + row, sink=sink)
                continue
            yield from [self.trigger(0, batch=batch, sink=sink)] if place else []
            yield self.trigger(row, batch=batch, sink=sink)

    def refusals(self, trigger: Trigger, planned: Planned) -> Refusals:
        """A table that can be counted is needed."""
        yield from no_query(trigger)
        yield from unseen(trigger, planned)
        if planned.countable is None:
            return
        if not planned.countable:
            cure = "name a table of the run's own in a sink that counts rows, or take a failpoint"
            yield Refusal(self.about.name, f"cannot be counted: no sink counts its rows; {cure}")
        elif trigger.sink not in ("", *planned.countable):
            yield Refusal("sink", f"names {trigger.sink!r}; rows can be counted in {', '.join(planned.countable)}")

    def wait(self, run: RunContext, step: Step, *, later: int, freeze: bool) -> Reached:
        """The server holds the writer, so nothing has to be frozen."""
        when = step.when
        counted = next((each for each in run.counted if when.sink in ("", each.name)), None)
        if counted is None:
            raise HarnessError(f"asked to stop {when}; the scenario has no table that rows can be counted in")
        alone(run, when)
        try:
            _hold(run, counted, when)
            wait_until(run, when, lambda: counted.rows.blocked() is not None)
        except WaitError as failure:
            counted.rows.release()
            raise WaitError(f"{failure}. Only rows that are inserted count, not those that are updated") from failure
        folder = _fed(run, counted)
        with suppress(WaitError):
            until("the batch of the writer that is held", lambda: _shown(run, when.batch, folder), within_s=SHOWS_S)
        listing = run.observer.listing(folder)
        return Reached(
            _filled(run, when.batch, folder),
            folder=folder,
            before=listing,
            blocked=counted.rows.blocked(),
            sink=counted.place,
        )

    def agrees(self, trigger: Trigger, reached: Reached, listing: Listing) -> bool:
        """A writer is held, in the batch that was asked for."""
        return reached.blocked is not None and (trigger.batch is None or running(reached.batch, listing))


def _fed(run: RunContext, counted: CountedSink) -> Path | None:
    """Return the checkpoint of the query that feeds the counted table; None if several may feed it."""
    current, name = run.observer.current(), counted.feeds
    found = [checkpoint.folder for checkpoint in current if name is None or checkpoint.folder.name == name]
    return found[0] if len(found) == 1 else None


def _shown(run: RunContext, batch: int | None, folder: Path | None) -> bool:
    """Return whether a batch from `batch` on, with records, is seen to be at work. A checkpoint of DStreams shows it a
    moment later than its first row."""
    if batch is None or folder is None:
        return True
    listing = run.observer.listing(folder)
    seen = (each for each in listing.get("offsets", ()) if each >= batch and running(each, listing))
    return any(not run.observer.took_nothing(folder, each) for each in seen)


def _filled(run: RunContext, batch: int | None, folder: Path | None) -> int | None:
    """Return the first batch from `batch` on that took records: an empty one has no row to stand at."""
    if batch is None or folder is None:
        return batch
    newest = max(run.observer.listing(folder).get("offsets", ()), default=batch)
    while batch < newest and run.observer.took_nothing(folder, batch):
        batch += 1
    return batch


def _hold(run: RunContext, counted: CountedSink, when: Trigger) -> None:
    """Count rows from where batch N begins: when `commits/N-1` appears, no row of batch N can be in yet."""
    rows, batch, breakpoint_ = int(when.value or 0), when.batch or 0, counted.rows
    if batch == 0:
        wait_until(run, when, lambda: armed(breakpoint_, rows))
        return
    met, lock = threading.Event(), threading.Lock()

    def hold(after: int) -> None:
        with lock:
            if not met.is_set():
                breakpoint_.block_after(after)
                met.set()

    def hook(seen: CheckpointEvent) -> None:
        named = counted.feeds in (None, seen.folder.name)
        if named and seen.point is CrashPoint.BATCH_COMMITTED and seen.batch == batch - 1:
            hold(breakpoint_.rows() + rows)

    def check() -> bool:
        # An attempt that ended with `commits/N-1` written goes on with batch N: no file says that it begins.
        folder = _fed(run, counted)
        if not met.is_set() and begun(run.observer.listing(folder), batch):
            now, snapshots = breakpoint_.rows(), run.snapshots
            before = snapshots.before(counted.place, folder, batch) if snapshots is not None else None
            hold(max(now, (now if before is None else before) + rows))
        return met.is_set()

    with run.observer.armed(hook):
        wait_until(run, when, check)


def armed(row_breakpoint: RowBreakpoint, rows: int) -> bool:
    """Hold the row after `rows`; where more have gone in already, the next one is the first that can be held. False if
    a row slipped by while that was asked for."""
    hold = max(rows, row_breakpoint.rows())
    row_breakpoint.block_after(hold)
    return row_breakpoint.rows() <= hold or row_breakpoint.blocked() is not None


def begun(listing: Listing, batch: int) -> bool:
    """Return whether the batch before is committed, and this one is not."""
    commits = listing.get("commits", ())
    return batch - 1 in commits and batch not in commits


KIND = Rows()
