"""The history of a run: `history.jsonl`, one typed event a line, in the order in which the events arrived.

    {"n": 41, "at_s": 12.803, "by": "harness", "what": "batch-planned", "query": "checkpoint", "batch": 3, "attempt": 1}

`n` counts from 0. `at_s` are seconds since the run began, by one monotonic clock, the harness's. `by` says who saw the
event: the harness, the agent in Spark, or a reading of a sink. The set of events is closed: `EVENTS`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar

from harness.errors import UsageError
from harness.operation import Op, Side
from harness.scenario import CrashPoint, StepOutcome, Word
from harness.snapshot import RESTART, Progressed, Snapshot


class By(StrEnum):
    """Who saw an event."""

    HARNESS = "harness"
    SPARK = "spark"
    SINK = "sink"


@dataclass(frozen=True, kw_only=True)
class Event:
    """One thing that happened. A whole number of seconds or rows has its unit in its name."""

    what: ClassVar[str]
    by: ClassVar[By] = By.HARNESS


@dataclass(frozen=True, kw_only=True)
class Phase(Event):
    """The run enters a phase: set up, warm-up, feeding, catching up, reading, judging."""

    what = "phase"
    name: str


@dataclass(frozen=True, kw_only=True)
class Sent(Event):
    """So many records of `total` have been sent. The ledger has each with its answer."""

    what = "sent"
    records: int
    total: int


@dataclass(frozen=True, kw_only=True)
class AttemptStarted(Event):
    """The driver was started. Of a restart: `after_s` since the last death, and which `zombies` of it still live.
    `names` are the cluster manager's (`application`, `container`), `waited` the seconds of each wait of the launch."""

    what = "attempt-started"
    attempt: int
    log: str = ""
    took_s: float | None = None
    after_s: float | None = None
    zombies: tuple[str, ...] = ()
    spark: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    waited: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AttemptEnded(Event):
    """The driver has ended with `status`, negative for a signal. `scheduled`: a fault ended it. `names` are the cluster
    manager's (`application`, `container`), `error` is what the program ended with, as its log says it."""

    what = "attempt-ended"
    attempt: int
    status: int
    scheduled: bool = False
    names: Mapping[str, str] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class AttemptDiagnosed(Event):
    """What a cluster manager says of the end of an attempt."""

    what = "attempt-diagnosed"
    attempt: int
    words: str
    scheduled: bool = False


@dataclass(frozen=True, kw_only=True)
class RestartsEnded(Event):
    """The driver is not started again. `well`: its program ended well."""

    what = "restarts-ended"
    why: str
    well: bool = False


@dataclass(frozen=True, kw_only=True)
class OfBatch(Event):
    """A batch of a query reached a crash point. `query` is its checkpoint, relative to the run's folder."""

    point: ClassVar[CrashPoint | None] = None
    query: str
    batch: int
    attempt: int

    @property
    def checkpoint(self) -> str:
        """The name of the checkpoint's folder."""
        return self.query.rpartition("/")[2]


@dataclass(frozen=True, kw_only=True)
class SourceBegun(OfBatch):
    """The query has fixed where its source begins."""

    what = "source-begun"


@dataclass(frozen=True, kw_only=True)
class BlockReceived(OfBatch):
    """A receiver has stored a block; the batch is the next one (DStreams)."""

    what = CrashPoint.BLOCK_RECEIVED
    point = CrashPoint.BLOCK_RECEIVED


@dataclass(frozen=True, kw_only=True)
class BatchPlanned(OfBatch):
    """`offsets/N` is there. `ranges` are the offsets that it reads of the run's source, by partition."""

    what = CrashPoint.BATCH_PLANNED
    point = CrashPoint.BATCH_PLANNED
    ranges: Mapping[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class BatchCheckpointed(OfBatch):
    """The batch is pending in a checkpoint (DStreams)."""

    what = CrashPoint.BATCH_CHECKPOINTED
    point = CrashPoint.BATCH_CHECKPOINTED


@dataclass(frozen=True, kw_only=True)
class SinkCommitted(OfBatch):
    """`commits/N` is being written: the sink has the batch."""

    what = CrashPoint.SINK_COMMITTED
    point = CrashPoint.SINK_COMMITTED


@dataclass(frozen=True, kw_only=True)
class BatchCommitted(OfBatch):
    """`commits/N` is there."""

    what = CrashPoint.BATCH_COMMITTED
    point = CrashPoint.BATCH_COMMITTED


@dataclass(frozen=True, kw_only=True)
class OffsetsSaved(Event):
    """A program that manages its own offsets, or a consumer group, has saved them: the next offset by partition."""

    what = "offsets-saved"
    attempt: int
    next: Mapping[int, int]


@dataclass(frozen=True, kw_only=True)
class OfSpark(Event):
    """The agent in Spark reported it. `attempt` is the driver's, `process` Spark's name of the JVM. A `query` is called
    by its checkpoint, relative to the run's folder, or by Spark's id where no checkpoint is known to have that."""

    by = By.SPARK
    attempt: int
    process: str = "driver"


@dataclass(frozen=True, kw_only=True)
class CheckpointOp(OfSpark):
    """One side of an operation on the file `path` of a checkpoint."""

    what = "checkpoint-op"
    query: str
    path: str
    op: Op
    when: Side


@dataclass(frozen=True, kw_only=True)
class QueryStarted(OfSpark):
    """A streaming query began. `query_run` is Spark's id of this start."""

    what = "query-started"
    query: str
    query_run: str
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class QueryEnded(OfSpark):
    """A streaming query ended."""

    what = "query-ended"
    query: str
    query_run: str
    failed: bool = False


@dataclass(frozen=True, kw_only=True)
class TaskStarted(OfSpark):
    """A task of a batch was started on an executor. `attempt_number` counts the attempts of the task."""

    what = "task-started"
    query: str
    batch: int
    stage: int
    stage_attempt: int
    partition: int
    attempt_number: int
    executor: str


@dataclass(frozen=True, kw_only=True)
class TaskEnded(TaskStarted):
    """A task ended: `success`, or the class of Spark's reason."""

    what = "task-ended"
    outcome: str


@dataclass(frozen=True, kw_only=True)
class ExecutorAdded(OfSpark):
    """An executor registered with the driver."""

    what = "executor-added"
    executor: str


@dataclass(frozen=True, kw_only=True)
class ExecutorRemoved(OfSpark):
    """The driver gave up an executor."""

    what = "executor-removed"
    executor: str


@dataclass(frozen=True, kw_only=True)
class FaultInjected(Event):
    """A step that was injected is over: what became of it. Its readings and the tasks that it ended come before."""

    what = "fault-injected"
    outcome: StepOutcome


@dataclass(frozen=True, kw_only=True)
class FaultMissed(Event):
    """The crash point of a step was over before anything was struck: a later batch is tried."""

    what = "fault-missed"
    outcome: StepOutcome


@dataclass(frozen=True, kw_only=True)
class SinkRead(Event):
    """The sinks were read at a fault, or after an attempt that no step had ended: `rows` in all of them, in the folder
    `snapshots/<step>-<moment>`. `snapshot` is what was read beside them; None of a reading of some sinks alone."""

    what = "sink-read"
    by = By.SINK
    step: int
    moment: str
    seconds: float
    rows: int
    error: str = ""
    snapshot: Snapshot | None = None


@dataclass(frozen=True, kw_only=True)
class SinkNotRead(Event):
    """The reading of the sinks before the attempt after a fault was dropped. It may be in the history already."""

    what = "sink-not-read"
    by = By.SINK
    step: int
    why: str


@dataclass(frozen=True, kw_only=True)
class SinkMissing(Event):
    """A sink is not there after the first committed batch."""

    what = "sink-missing"
    sink: str
    why: str


@dataclass(frozen=True, kw_only=True)
class PackagesNamed(Event):
    """Spark fetches `packages` at each start of the driver (`spark.jars.packages`). `seconds` is what it took, once the
    first start is over."""

    what = "packages-named"
    packages: str
    seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class SystemChanged(Event):
    """The harness changed something of the system under test."""

    what = "system-changed"
    table: str
    changes: str


@dataclass(frozen=True, kw_only=True)
class ShuffleCrowded(Event):
    """A stateful query has more shuffle partitions than cores can run at once."""

    what = "shuffle-crowded"
    query: str
    partitions: int
    cores: str


@dataclass(frozen=True, kw_only=True)
class BaselineRun(Event):
    """A run without faults begins, has ended, or is taken from the cache."""

    what = "baseline-run"
    number: int
    state: str
    digest: str = ""
    seconds: float | None = None
    caught_up: bool = False
    failed: bool = False


@dataclass(frozen=True, kw_only=True)
class ProgressRead(Event):
    """The sinks were read at the end, and how far the pipeline was by then. The last one counts."""

    what = "progress-read"
    progressed: Progressed


@dataclass(frozen=True, kw_only=True)
class Waited(Event):
    """What the run waited for, in seconds."""

    what = "waited"
    seconds: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class NotEnded(Event):
    """Something of the run could not be ended."""

    what = "not-ended"
    why: str


@dataclass(frozen=True, kw_only=True)
class Judged(Event):
    """The verdict: how many findings of each kind."""

    what = "judged"
    word: Word
    as_expected: bool
    findings: Mapping[str, int] = field(default_factory=dict)


EVENTS: Mapping[str, type[Event]] = {
    str(kind.what): kind
    for kind in (
        Phase, Sent, AttemptStarted, AttemptEnded, AttemptDiagnosed, RestartsEnded, SourceBegun, BlockReceived,
        BatchPlanned, BatchCheckpointed, SinkCommitted, BatchCommitted, OffsetsSaved, CheckpointOp, QueryStarted,
        QueryEnded, TaskStarted, TaskEnded, ExecutorAdded, ExecutorRemoved, FaultInjected, FaultMissed, SinkRead,
        SinkNotRead, SinkMissing, PackagesNamed, SystemChanged, ShuffleCrowded, BaselineRun, ProgressRead, Waited,
        NotEnded, Judged,
    )
}  # fmt: skip
"""Every event, by its name in the file."""
POINTS: Mapping[CrashPoint, type[OfBatch]] = {
    kind.point: kind for kind in EVENTS.values() if issubclass(kind, OfBatch) and kind.point is not None
}
"""By crash point, the event of a batch that reached it."""


@dataclass(frozen=True)
class Line:
    """One line of the history."""

    n: int
    at_s: float
    event: Event


Listener = Callable[[Line], None]


class History:
    """Writes events as they happen; thread-safe. Without a path they reach the listeners alone."""

    def __init__(self, path: Path | None) -> None:
        self._file = path.open("a", encoding="utf-8") if path else None
        self._lock = threading.Lock()
        self._began = monotonic()
        self._n = 0
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        """Call `listener` with every later line."""
        self._listeners.append(listener)

    def elapsed_s(self) -> float:
        """Return the seconds since the run began."""
        return monotonic() - self._began

    def write(self, event: Event) -> Line:
        """Append one event, flush it, and return its line. Raises OSError when the disk refuses."""
        with self._lock:
            line = Line(self._n, round(self.elapsed_s(), 4), event)
            self._n += 1
            if self._file is not None:
                self._file.write(text(line) + "\n")
                self._file.flush()
        for listener in self._listeners:
            listener(line)
        return line

    def close(self) -> None:
        """Close the file; later events reach the listeners alone."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None


def text(line: Line) -> str:
    """Return a line as it is written, without its end. A field with its default is left out."""
    event = line.event
    head = {"n": line.n, "at_s": line.at_s, "by": event.by, "what": event.what}
    return json.dumps(head | {name: _plain(value) for name, value in changed(event).items()}, default=str)


def changed(event: Event) -> dict[str, Any]:
    """Return the fields of an event that differ from their defaults."""
    out = {}
    for each in fields(event):
        default = each.default_factory() if callable(each.default_factory) else each.default
        if (value := getattr(event, each.name)) != default:
            out[each.name] = value
    return out


def flat(event: Event) -> dict[str, Any]:
    """Return the same as JSON-ready values, those of a nested noun beside the others."""
    out: dict[str, Any] = {}
    for name, value in changed(event).items():
        plain = _plain(value)
        out |= plain if isinstance(plain, dict) and is_dataclass(value) else {name: plain}
    return out


def read(path: Path) -> Iterator[Line]:
    """Yield the lines of a history. A line torn by a crash ends it; a line of no known event is left out."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        for written in lines:
            try:
                given = json.loads(written)
            except (ValueError, RecursionError):
                return
            line = _line(given)
            if line is not None:
                yield line


def whole(path: Path) -> list[Line]:
    """Return every line of a history. A last line without its end, which a crash has torn, or which is being written,
    is left out. Raises UsageError where there is none, and for a line that is damaged."""
    try:
        written = path.read_text(encoding="utf-8").split("\n")[:-1]
    except FileNotFoundError:
        raise UsageError(f"{path.parent} has no {path.name}. Was the run ended early?") from None
    except (OSError, ValueError) as failure:
        raise UsageError(f"{path} cannot be read: {failure}. Run the scenario again") from failure
    return [_checked(each, f"line {number} of {path}") for number, each in enumerate(written, 1)]


def _checked(written: str, where: str) -> Line:
    from pydantic import ValidationError

    cure = "Run the scenario again"
    try:
        given = json.loads(written)
        kind, n, at_s = given["what"], given["n"], float(given["at_s"])
        return Line(n, at_s, _reader(kind).validate_python(given))
    except ValidationError as failure:
        first = failure.errors()[0]
        words = f"{'.'.join(str(step) for step in first['loc'])}: {first['msg']}"
    except (ValueError, RecursionError, KeyError, TypeError) as failure:
        words = repr(failure)
    raise UsageError(f"{where} is damaged, or of another version: {words}. {cure}")


def progressed(lines: Sequence[Line]) -> Progressed | None:
    """Return how far the pipeline was at the end; None of a run that was ended before its sinks were read."""
    found = (line.event.progressed for line in reversed(lines) if isinstance(line.event, ProgressRead))
    return next(found, None)


def steps(lines: Iterable[Line]) -> tuple[StepOutcome, ...]:
    """Return what became of each step that is over, in order."""
    return tuple(line.event.outcome for line in lines if isinstance(line.event, FaultInjected))


def readings(lines: Iterable[Line]) -> dict[tuple[int, str], Snapshot]:
    """Return where everything stood at each reading of the sinks, by step and moment."""
    out: dict[tuple[int, str], Snapshot] = {}
    for event in (line.event for line in lines):
        if isinstance(event, SinkRead) and event.snapshot is not None:
            out[event.step, event.moment] = event.snapshot
        elif isinstance(event, SinkNotRead):
            out.pop((event.step, RESTART), None)
    return out


def _line(given: Any) -> Line | None:
    if not isinstance(given, dict):
        return None
    n, at_s, event = given.get("n"), given.get("at_s"), event_of(given)
    if event is None or not isinstance(n, int) or not isinstance(at_s, (int, float)) or not 0 <= at_s < 1e9:
        return None
    return Line(n, float(at_s), event)


def event_of(given: Mapping[str, Any]) -> Event | None:
    """Return the event that the fields of a line are; None for one of no known form."""
    from pydantic import ValidationError

    what = str(given.get("what"))
    try:
        return _reader(what).validate_python({**given}) if what in EVENTS else None
    except ValidationError:
        return None


@cache
def _reader(what: str) -> Any:
    # Late, because pydantic costs more to import than the rest of this module.
    from pydantic import TypeAdapter

    return TypeAdapter(EVENTS[what])


def _plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


HEAD = """\
# The history of a run
`history.jsonl` in a run folder has one event a line, in the order in which they arrived at the harness:

    {"n": 24, "at_s": 14.762, "by": "harness", "what": "batch-planned", "query": "checkpoint", "batch": 0, "attempt": 1}

`n` counts from 0, `at_s` are seconds since the run began by one monotonic clock, `by` says who saw it. The set of
events is closed. A field with its default value is left out. A query is called by its checkpoint, relative to the run's
folder. Printed by `python -m harness.history`; edit the module, not this page.
"""


def markdown() -> Iterator[str]:
    """Yield the lines of `docs/history.md`."""
    yield HEAD
    yield from ("| event | seen by | fields | what happened |", "| --- | --- | --- | --- |")
    for name, kind in EVENTS.items():
        words = " ".join((kind.__doc__ or "").split())
        yield f"| `{name}` | {kind.by} | {', '.join(f'`{each.name}`' for each in fields(kind))} | {words} |"


if __name__ == "__main__":
    print("\n".join(markdown()))
