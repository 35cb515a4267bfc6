"""The nouns of Onceproof as frozen data: no I/O, no clock, nothing to start.

A `Scenario` says what is claimed of which pipeline, under which input and schedule of failures. What was seen while it
ran is in `Evidence` and `StepOutcome`; what a checker thinks of it, in `Finding` and `Verdict`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from harness.scenario.crash_point import COMMITTING as COMMITTING
from harness.scenario.crash_point import CrashPoint as CrashPoint
from harness.scenario.impact import Impact as Impact
from harness.scenario.known import Known as Known
from harness.scenario.order import Order as Order
from harness.scenario.watermark import Watermark as Watermark


class Harm(StrEnum):
    """What an injection exposes: that records take effect again, or that they never do."""

    REPETITION = "repetition"
    LOSS = "loss"


class Guarantee(StrEnum):
    """What is claimed of the pipeline."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"
    AT_MOST_ONCE = "at-most-once"

    @property
    def allows(self) -> Harm | None:
        """The harm that a fault may do under it."""
        allowed = {Guarantee.AT_LEAST_ONCE: Harm.REPETITION, Guarantee.AT_MOST_ONCE: Harm.LOSS}
        return allowed.get(self)


class Word(StrEnum):
    """The one word of a verdict. The judge's rule 7 says which of several is taken."""

    HELD = "held"
    INCONCLUSIVE = "inconclusive"
    UNTESTED = "untested"
    VIOLATED = "violated"
    ERROR = "error"


class Kind(StrEnum):
    """What a finding is about. `RECOVERED` is legal and never makes a verdict worse."""

    LOST = "lost"
    DUPLICATED = "duplicated"
    CORRUPTED = "corrupted"
    UNEXPECTED = "unexpected"
    RECOVERED = "recovered"
    MISORDERED = "misordered"
    WRONG_AGGREGATE = "wrong aggregate"
    STALLED = "stalled"


MISFITS = frozenset({Kind.CORRUPTED, Kind.UNEXPECTED, Kind.WRONG_AGGREGATE, Kind.MISORDERED})
"""Findings that say, where every run without faults shows them, that `expected` does not fit the pipeline."""


class Victim(StrEnum):
    """Which processes of the driver die: all of them, only the Python program, only its JVM."""

    TREE = "tree"
    PYTHON = "python"
    JVM = "jvm"


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """The program under test; its texts may hold placeholders. `checkpoint`: the part that `{checkpoint}` is in;
    `spark`: the Spark version that its drivers and executors run on (`3.5`), empty for the installed one."""

    entry: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)
    executors: int = 1
    progress: str = "checkpoint"
    """How far it says it is: `checkpoint`, `async` or `dstreams` (Spark's), `group` (what `{group}` committed), or a
    query giving (partition, next offset), put to the component `progress_in`: empty where only one may be meant."""
    progress_in: str = ""
    checkpoint: str = ""
    interval_s: float | None = None
    """The longest without a commit while records wait, such as its trigger interval; None: a baseline run shows it."""
    spark: str = ""


@dataclass(frozen=True, kw_only=True)
class Input:
    """What the pipeline is fed, and where: `records` of a workload, or all that it has if that is 0. `options` is what
    else the file says of the workload, by the names that its model has (`keys`, `skew`, `replay`), `source_options` of
    the source (`partitions`). `rate_per_s` None means: in portions, one for each batch that the pipeline plans."""

    workload: str = "transactions"
    source: str = "kafka"
    records: int = 600
    rate_per_s: float | None = None
    options: Mapping[str, str | int | float] = field(default_factory=dict)
    source_options: Mapping[str, str | int | float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Sink:
    """Where the pipeline writes. `kind` is the key of the file (`postgres`), `target` its value, a table or a query,
    say; `options` what else the file says of the place, by the names that its model has. `expected` is a SQL query over
    the table `ledger`; `key` names a row.

    `part` is the name of another part of its component than the plain one (`second` for `postgres.second`). `query` is
    the checkpoint's folder of the query that feeds it, where several read the source. `folds`: it folds equal rows on
    purpose; `complete`: own code gives every row; `watermark`: it holds windows that a watermark closes."""

    kind: str
    target: str
    options: Mapping[str, str | int | float] = field(default_factory=dict)
    expected: str | None = None
    key: tuple[str, ...] = ()
    order: Order | None = None
    part: str = ""
    query: str | None = None
    folds: bool = False
    complete: bool = False
    watermark: Watermark | None = None

    @property
    def name(self) -> str:
        """What the report calls it, e.g. `postgres payments`."""
        short = " ".join(self.target.split())
        where = f"{self.kind}.{self.part}" if self.part else self.kind
        return (f"{where} {short}" if len(short) <= 60 else f"{where} {short[:57]}...").strip()


@dataclass(frozen=True, kw_only=True)
class Trigger:
    """When to act: `kind` and `value` as the file writes them (`rows: 7`), a time in seconds. `batch` narrows any kind
    to one batch, `query` a crash point, or what has to be in flight, to the query with that checkpoint folder.

    `place` says in words where in the protocol that is, without the batch; `point` is the crash point that it waits
    for, if it waits for one; `implied`: the fault names it, and the file does not. `options`: what else the file says
    of it."""

    kind: str
    value: str | int | float | None
    place: str
    batch: int | None = None
    query: str | None = None
    point: CrashPoint | None = None
    implied: bool = False
    options: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def sink(self) -> str:
        """Return what the scenario calls the sink whose rows it counts; empty if it names none."""
        return self.options.get("sink", "")

    def __str__(self) -> str:
        batch = "" if self.batch is None else f" of batch {self.batch}"
        return f"{self.place}{batch}" + (f" of query {self.query}" if self.query else "")


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One kind of fault: `kind` as the file writes it, and what else the file says of it, by the names that its
    model has (`victim`, `which`, `for_s`); a time in seconds."""

    kind: str
    impact: Impact
    options: Mapping[str, str | int | float] = field(default_factory=dict)

    def __str__(self) -> str:
        victim = self.options.get("victim", Victim.TREE)
        return self.kind if victim == Victim.TREE else f"{self.kind} ({victim})"


@dataclass(frozen=True, kw_only=True)
class Step:
    """One line of a schedule: when the trigger is met, do the fault."""

    when: Trigger
    do: Fault

    @property
    def name(self) -> str:
        """What the report calls it."""
        return str(self.do)


@dataclass(frozen=True, kw_only=True)
class Restart:
    """What the supervisor does after a death of the driver: wait `delay_s`, at most `max_restarts` times.
    `spark`: the Spark version from the second attempt on; empty: as the first."""

    delay_s: float = 0.0
    max_restarts: int = 5
    spark: str = ""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What the verdict should be. `kinds` is the exact set of kinds of finding when `word` is violated;
    `without_faults` says that the violation shows without faults too, so that no injection has to explain it. `at` has
    by a name of a crash point what a sweep should find there, in the place of the rest."""

    word: Word = Word.HELD
    kinds: tuple[Kind, ...] = ()
    without_faults: bool = False
    at: Mapping[str, Expected] = field(default_factory=dict, hash=False)

    @property
    def violations(self) -> tuple[Kind, ...]:
        """The kinds of finding that are expected, at any crash point."""
        return tuple(dict.fromkeys(kind for each in (self, *self.at.values()) for kind in each.kinds))

    def __str__(self) -> str:
        if self.at:
            return "; ".join(f"{each} at {name}" for name, each in self.at.items())
        without_faults = ", also without faults" if self.without_faults else ""
        return f"{self.word}: {', '.join(self.kinds)}{without_faults}" if self.kinds else str(self.word)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One claim and how it is put to the test."""

    name: str
    why: str = ""
    pipeline: Pipeline
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE
    setup: Mapping[str, str] = field(default_factory=dict)
    """What to do before the pipeline starts, such as SQL, by the label of the part that does it."""
    sinks: tuple[Sink, ...] = ()
    together: bool = False
    input: Input = Input()
    schedule: tuple[Step, ...] = ()
    crash_points: tuple[str, ...] = ()
    """Those of a sweep, by their names; `all` stands for each that the pipeline has. Without any the schedule is
    played."""
    restart: Restart = Restart()
    verdict: Expected = Expected()
    timeout_s: float = 240.0
    quiet_period_s: float | None = None
    """How long the sink must stay unchanged before it is judged; None means: only if rows are missing, and then 8 s."""
    tags: tuple[str, ...] = ()
    seed: int = 0
    known: Known | None = None
    path: str = ""
    """The file it came from, as the user wrote it."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What proves that a fault happened; fields are empty where they do not apply. `signalled`: what became of each
    victim, a process by its name in snapshots; `driver_status`: exit status (negative: signal) of a driver that it
    ended; `checkpoint_before` / `_after`: offsets and commits; `rows_seen`: handed to the sink; `stop_requested`: the
    driver was asked to end and may have finished its batch; `struck`: false where it happened, and no process of the
    pipeline can have been affected; `healed`: what it took away is back; `committed_meanwhile`: the newest batch
    that each query had committed before a server or the network was back, by its checkpoint's name; `disconnected`:
    the components whose servers ended their connections with a driver that was paused."""

    signalled: Mapping[str, str] = field(default_factory=dict)
    driver_status: int | None = None
    checkpoint_before: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    checkpoint_after: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    rows_seen: int | None = None
    in_flight: str = ""
    note: str = ""
    stop_requested: bool = False
    struck: bool = True
    healed: bool = True
    committed_meanwhile: Mapping[str, int] = field(default_factory=dict)
    disconnected: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class StepOutcome:
    """What became of one step. `injected` is true only if the evidence says that it happened at its crash point.

    `point` says in words where the trigger was met, `crash_point` is the crash point it waited for. A batch is named by
    `checkpoint` (the folder, relative to the run's), the driver's `attempt` that was struck (0 if none) and `batch`."""

    name: str
    point: str
    batch: int | None
    injected: bool
    evidence: Evidence = Evidence()
    at_s: float | None = None
    """Seconds since the run began, by the monotonic clock."""
    attempt: int = 0
    checkpoint: str = ""
    crash_point: CrashPoint | None = None


@dataclass(frozen=True, kw_only=True)
class RecordRef:
    """Where a record is in the source."""

    partition: int
    offset: int


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is not as the ledger says. Rows are texts by column; `copies` counts surplus or missing rows.

    `position` is the sink's place in the scenario, from 0, and -1 for what is of no sink. `faults` names the steps that
    caused it, `fits` those that may have. `without_faults`: every baseline run shows it too. `harms`
    are those that a wrong total cannot be without; `altered`: a row is no faithful copy; `torn`: a sink that must agree
    has what this one lacks; `vague`: it may hide a harm that the guarantee forbids. `checkpoint` is the folder of the
    query that `batches` are of, where the run had several."""

    kind: Kind
    sink: str
    key: Mapping[str, str | None] = field(default_factory=dict)
    expected: tuple[Mapping[str, str | None], ...] = ()
    found: tuple[Mapping[str, str | None], ...] = ()
    copies: int = 1
    records: tuple[RecordRef, ...] = ()
    batches: tuple[int, ...] = ()
    faults: tuple[str, ...] = ()
    note: str = ""
    position: int = 0
    fits: tuple[str, ...] = ()
    without_faults: bool = False
    harms: tuple[Harm, ...] = ()
    altered: bool = False
    torn: bool = False
    vague: bool = False
    checkpoint: str = ""


@dataclass(frozen=True, kw_only=True)
class Exposure:
    """What one step exposed in one sink. `step` counts the steps from 1, `position` the sinks from 0. `point` is the
    crash point as the reading shows it, `records` how many were exposed. `came`: it came, and the reader dropped it.
    `allowed`: the guarantee lets it. `note`: what was exposed; `why`: why it does not count, empty if it does."""

    step: int
    position: int
    sink: str
    harm: Harm
    point: str
    note: str
    records: int = 0
    attempt: int = 0
    checkpoint: str = ""
    batch: int | None = None
    allowed: bool = False
    why: str = ""
    came: bool = False

    @property
    def counts(self) -> bool:
        """Return whether it makes the run a test."""
        return not (self.why or self.allowed)

    @property
    def would_show(self) -> bool:
        """Return whether a naive pipeline would have been caught by rows of the sink."""
        return not (self.why or self.came)


@dataclass(frozen=True, kw_only=True)
class Attribution:
    """What steps did, by their numbers from 1. `causes` has for findings that break the guarantee their kind, and the
    steps that caused them together or of which one did; no step where none is known. `unknown` are the steps of which
    the evidence does not tell what they exposed in some sink; `idle` says of others why they exposed nothing. `cut`:
    there are more findings than were compared. `labels` is what findings call the steps."""

    causes: tuple[tuple[Kind, tuple[int, ...]], ...] = ()
    unknown: tuple[int, ...] = ()
    idle: Mapping[int, str] = field(default_factory=dict)
    cut: bool = False
    labels: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The answer. `reasons` says why it is no better than it is; `self_tests` maps each planted fault to found or not.

    `exposures` is what the steps exposed, `attribution` what they caused. `untried` are the crash points (each as sink
    and point) at which no step had something exposed that counts. `notes` are what limits the answer and makes it no
    worse (a folding query, batches that tie)."""

    word: Word
    as_expected: bool
    expected: str
    reasons: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    steps: tuple[StepOutcome, ...] = ()
    self_tests: Mapping[str, bool] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    """Rows and records compared: `records`, `expected_rows`, `sink_rows`, `acknowledged`, `failed`, `unknown`."""
    exposures: tuple[Exposure, ...] = ()
    attribution: Attribution = Attribution()
    untried: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    def kinds(self) -> dict[str, int]:
        """Return how many findings there are of each kind, those that were only counted among them."""
        kept = Counter(f.kind.value for f in self.findings)
        return {kind: max(count, self.counts.get(kind, 0)) for kind, count in kept.items()}


def plain(noun: Any) -> dict[str, Any]:
    """Return a noun as JSON-ready dictionaries (enums are strings already)."""
    return asdict(noun)
