"""What a trigger is made of, and how each of them waits: for as long as it can still come true."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from math import inf
from random import Random
from typing import Any, Protocol, runtime_checkable

from harness.context import Listing, Reached, RunContext
from harness.errors import WaitError
from harness.kinds import About, Refusal, Refusals
from harness.operation import Op, Side
from harness.scenario import CrashPoint, Step, Trigger
from harness.stack import Means
from harness.wait import Waiting, until

TICK_S = 0.004
LONGEST_S = 3600.0
POINT = "point"
"""The trigger at a crash point, which a fault may imply: the same one whatever else is installed."""
BY_TIME = (
    "DStreams log no offsets; use block-received, batch-planned, batch-checkpointed, batch-committed, rows or a "
    "failpoint"
)
WATCHED = "the checkpoint's folder was watched: no agent in Spark reported its operations"
LATE_LOG = "progress is async, so Spark logs offsets late, and not for every batch"
HOP_S = 8.0
"""How long a query that is waited for by name may show nothing once the first ones have done all their input: another
one's output may be its input."""


@dataclass(frozen=True, kw_only=True)
class Planned:
    """What the file says of the run that a step belongs to."""

    records: float = inf
    """How many are sent; infinity where the file says it wrongly."""
    timeout_s: float = inf
    """How long the run may take; infinity where the file says it wrongly."""
    countable: Sequence[str] | None = None
    """The sinks whose rows can be counted; None: not known."""
    checkpoint: bool = True
    """The pipeline's progress is read from checkpoints, so batches are seen."""
    late_log: bool = False
    """Spark logs the offsets of batches late, and not of each."""
    by_time: bool = False
    """The batches are those of DStreams."""
    receiver: bool = False
    """A receiver reads the source."""
    sink_logs: Collection[str | None] | None = None
    """The queries of the sinks that commit by renaming a file, None for a sink that names none; None: not known."""
    sinks_in: Collection[str] = ()
    """The components that keep the rows of the sinks."""
    proxied: bool | None = None
    """Whether requests to the component that keeps the checkpoint can be held; None: not known."""


def most_batches(records: float) -> float:
    """Return how many so many records can make: each batch has a record, and one without any may follow it."""
    return 2 * records


class Trait(Enum):
    """What else may be so of a kind of trigger, for code that must not know the kind."""

    COUNTS_ROWS = auto()
    """It holds the sink's writer at a row: the run needs a row breakpoint."""
    IN_PROGRAM = auto()
    """It is in the pipeline's own code, which alone knows where that is."""
    HOLDS_REQUESTS = auto()
    """It holds a request to the server that keeps the checkpoint: the run needs a proxy in front of it."""
    TIMED = auto()
    """Its value is when it comes, in seconds after the schedule has begun."""


class TriggerKind(Protocol):
    """A kind of trigger: one key under `when`. `about.options` is the type of its value, as `harness.fields.values`
    has them."""

    @property
    def about(self) -> About:
        """Who it is."""

    def trigger(self, value: Any, *, batch: int | None = None, query: str | None = None) -> Trigger:
        """Return the noun for a value of the file."""

    def refusals(self, trigger: Trigger, planned: Planned) -> Refusals:
        """Return why it can never be met in such a run; nothing if it can."""

    def wait(self, run: RunContext, step: Step, *, later: int, freeze: bool) -> Reached:
        """Return when it is met: at the batch that `step` names, or `later` ones. With `freeze` the driver's JVM stands
        still then, as far as this trigger can stop it in time. Raises WaitError with the reason once it can no longer
        be met."""

    def agrees(self, trigger: Trigger, reached: Reached, listing: Listing) -> bool:
        """Return whether the checkpoint agrees that the batch is where the trigger says."""


@runtime_checkable
class Draws(Protocol):
    """A trigger that can be drawn: `onceproof nightly` asks it for triggers. Of any other one it takes those that a
    scenario of the same pipeline names."""

    def draws(self, random: Random, planned: Planned, batch: int) -> Iterator[Trigger]:
        """Moments at which it may be met in such a run, in or about that batch; the same ones for the same `random`."""


@runtime_checkable
class AtOperations(Protocol):
    """A trigger that can be met at any operation on a checkpoint: `onceproof sweep` asks it for those that it saw."""

    def at(self, op: Op, side: Side, log: str, *, query: str | None = None) -> Trigger:
        """Return the trigger before or after that operation on a file of the log (`commits`), in no batch yet."""


@runtime_checkable
class HasTraits(Protocol):
    """A trigger of which more is so."""

    @property
    def traits(self) -> frozenset[Trait]:
        """What."""


@runtime_checkable
class NeedsMeans(Protocol):
    """A trigger that needs something of the stack."""

    @property
    def needs(self) -> frozenset[Means]:
        """What."""


@runtime_checkable
class Releases(Protocol):
    """A trigger that leaves something to be undone."""

    def release(self, run: RunContext, trigger: Trigger) -> None:
        """Undo it, once the fault was injected."""


def wait_until(run: RunContext, trigger: Trigger, condition: Callable[[], bool]) -> None:
    """Return when `condition` is true. Raises WaitError once the trigger can no longer be met."""

    def checked() -> bool | Waiting:
        # First why, then the condition: what came true in between still counts.
        why = "the run is over" if run.stop.is_set() else run.hopeless()
        if condition():
            return True
        if why and not _lags(run, trigger):
            raise WaitError(f"{trigger} never came: {_unknown(run, trigger)}{why}")
        return Waiting(f"batch {run.observer.newest_batch()}")

    until(str(trigger), checked, within_s=LONGEST_S, every_s=TICK_S)


def _unknown(run: RunContext, trigger: Trigger) -> str:
    """That no query has the name that was asked for; empty if one has."""
    seen = run.observer.names()
    if trigger.query is None or trigger.query in seen:
        return ""
    return f"no query's checkpoint is a folder {trigger.query!r}, there are {', '.join(seen) or 'none'}; "


def _lags(run: RunContext, trigger: Trigger) -> bool:
    """Return whether a query that is waited for by name may still come to its batch."""
    return trigger.query is not None and not run.stop.is_set() and run.observer.unchanged_s() < HOP_S


def has(kind: TriggerKind, trait: Trait) -> bool:
    """Return whether it has that trait."""
    return isinstance(kind, HasTraits) and trait in kind.traits


def at_point(point: CrashPoint, *, batch: int | None, query: str | None = None, implied: bool = False) -> Trigger:
    """Return the trigger at a crash point, which a file may name, or a fault imply."""
    place = str(point)
    return Trigger(kind=POINT, value=place, place=place, batch=batch, query=query, point=point, implied=implied)


def alone(run: RunContext, trigger: Trigger) -> None:
    """Wait until no process is left of an attempt that the schedule has ended: its executors write on for a moment, and
    would meet what is meant for the next one."""
    supervisor = run.supervisor
    if supervisor.last_ended_by_fault:
        wait_until(run, trigger, lambda: supervisor.alive and not supervisor.leftovers())


def unseen(trigger: Trigger, planned: Planned) -> Refusals:
    """Batches are seen in a checkpoint only."""
    if trigger.batch is not None and not planned.checkpoint:
        words = "cannot be seen: progress is not checkpoint, so batches are not watched; leave it out"
        yield Refusal("batch", words)


def no_query(trigger: Trigger) -> Refusals:
    """A trigger that says itself whose batch it is takes no query."""
    if trigger.query is not None:
        words = f"means nothing for {trigger.kind}: the pipeline's own code, or the table, says whose it is"
        yield Refusal("query", words)
