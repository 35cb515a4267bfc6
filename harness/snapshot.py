"""Where a run stood: at each injection, before each restart, and at the end. Data only, for events of
`harness.history`.

A `Snapshot` has a folder for the sinks as they stood, `snapshots/<step>-<moment>/sink/` (`harness.sinks.table`):

    injection  after the victim died or was paused, before anything was started again
    restart    what the dead attempt still did: before the next one, which may be launched, has touched anything; of a
               driver that was paused with a transaction open, before it goes on
    back       the sinks of a server once it was back, before a client wrote there again
    ended-N    attempt N had ended, and no step did it; before the next one is started

A `Progressed` is how far the pipeline was at the end: every query of the run, its batches, who worked on them.

Offsets are next offsets by partition; an attempt is one start of the driver and what it does until it ends, counted
from 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Offsets = Mapping[int, int]

INJECTION, RESTART, BACK, ENDED = "injection", "restart", "back", "ended-{}"
GAVE_UP, ENDED_WELL = "gave up", "ended well"
"""How a pipeline stalled whose driver is started no more."""
OFFSETS = "offsets"
"""In `Snapshot.writing`, the place where a pipeline that manages its own offsets saves them."""


@dataclass(frozen=True, kw_only=True)
class QueryState:
    """One query as it stood. `offsets` and `commits` are the batches that its logs list; `planned` and `committed` the
    next offsets of the newest batch in each, by the slowest of its sources, `planned_most` and `committed_most` by the
    fastest; empty if it has one. Of DStreams `stored` are the next offsets of what a receiver has stored and no batch
    has. `ours`: it reads the run's source."""

    checkpoint: str
    ours: bool = True
    offsets: tuple[int, ...] = ()
    commits: tuple[int, ...] = ()
    planned: Offsets = field(default_factory=dict)
    committed: Offsets = field(default_factory=dict)
    planned_most: Offsets = field(default_factory=dict)
    committed_most: Offsets = field(default_factory=dict)
    stored: Offsets = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """Where everything stood. `position` is what a pipeline that manages its own offsets had saved; None with a
    checkpoint. `sent` is how far sends were acknowledged. `writing` has, by sink, the statements of the open
    transactions that have written into it. There `""` stands for writes into the run's schema beside the sinks,
    `offsets` for those into what the progress query reads. `handed` is of sinks whose rows are counted, by place. It
    has how many rows the sink had been handed, and how many when the batch began, None if that is not known. `alive`
    names the run's processes that the process table still showed, None if it could not be read. `error` says what could
    not be read; empty if all could. `left` is `writing` again, of those that were still there when all had been read;
    None if there was no reading. `late_log`: a JVM of the driver had the thread by which Spark logs offsets beside the
    batches; None if that could not be read."""

    step: int
    moment: str
    attempt: int
    at_s: float
    queries: tuple[QueryState, ...] = ()
    position: Offsets | None = None
    sent: Offsets = field(default_factory=dict)
    writing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    handed: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)
    alive: tuple[str, ...] | None = ()
    error: str = ""
    left: Mapping[str, tuple[str, ...]] | None = None
    late_log: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Batch:
    """One batch of one query: the records it took and the attempts that were seen at work on it. `watermark_ms` is the
    watermark under which Spark's log says that it ran; None if that was not seen."""

    batch: int
    ranges: Mapping[int, tuple[int, int]]
    committed: bool
    attempts: tuple[int, ...] = ()
    watermark_ms: int | None = None


@dataclass(frozen=True, kw_only=True)
class Gone:
    """Offsets from `start` up to `end` that were sent to a receiver, which stored nothing of them before the attempt
    ended."""

    attempt: int
    partition: int
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class Query:
    """One query, by its checkpoint (a folder relative to the run's; one that was deleted and made again comes again).
    `first` maps each attempt that touched it to the first batch it worked on. Of DStreams (`by_time`): `gone` is what a
    receiver had not stored when it died; `made_again`: the program made it again, though another attempt's had been at
    work."""

    checkpoint: str
    ours: bool = True
    batches: tuple[Batch, ...] = ()
    first: Mapping[int, int] = field(default_factory=dict)
    by_time: bool = False
    gone: tuple[Gone, ...] = ()
    made_again: bool = False


@dataclass(frozen=True, kw_only=True)
class Position:
    """Where a pipeline that manages its own offsets stood: one entry whenever it moved, and one at each launch."""

    attempt: int
    at_s: float
    next: Offsets


@dataclass(frozen=True, kw_only=True)
class Stalled:
    """The pipeline left records uncommitted: it was `idle`, the driver's supervisor `gave up`, or its program `ended
    well` and is started no more. `idle_s`: since the last commit or fault; `longest_gap_s`: without a commit before."""

    kind: str = "idle"
    idle_s: float = 0.0
    longest_gap_s: float = 0.0
    interval_s: float | None = None
    words: str = ""


@dataclass(frozen=True, kw_only=True)
class Progressed:
    """`batches` name the batch of each record, where only one query at a time has read the source;
    `gap_s` is the longest time that a query went without a commit within one attempt, its start included."""

    queries: tuple[Query, ...] = ()
    positions: tuple[Position, ...] = ()
    batches: tuple[Batch, ...] = ()
    committed: Offsets = field(default_factory=dict)
    end: Offsets = field(default_factory=dict)
    caught_up: bool = True
    gap_s: float = 0.0
