"""A run folder made by hand for one case: batches of any size, several queries, sinks that could not be read.

A `RunBuilder` is an honest run until it is changed: every sink holds its expected rows, every injection finds the sinks
as a pipeline in order would have them, and the next attempt goes on with the batch that was struck.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.checkers.cells import Row
from harness.checkers.offset_ranges import Cut, OffsetRange
from harness.ledger import Ledger, Source
from harness.run_folder import ledger
from harness.scenario import Evidence, Sink, StepOutcome
from harness.sinks.table import SinkTable, load, save
from harness.snapshot import INJECTION, Batch, Progressed, Query, QueryState, Snapshot
from tests.folders import SCENARIO, STEP, Folder, Injected, crash_point, edited

CHECKPOINT = "checkpoint"
EVERYTHING = 10**9
_ROWS: dict[Any, list[Row]] = {}
"""The rows of `expected` by all that they depend on."""
Pair = tuple[int, int]


def blame(batch: int | None = 1, *, point: str = "sink-committed", attempt: int = 1, of: str = "") -> str:
    """What findings call an injection; `of` is the checkpoint, where there are several."""
    number = "" if batch is None else f" of batch {batch}" + (f" of {of}" if of else "")
    return f"kill driver at {point}{number}, attempt {attempt}"


def state(checkpoint: str, *, planned: Pair, committed: Pair) -> QueryState:
    """One query at an injection: (how many batches, the next offset) of what it had planned, and of what was
    committed."""
    return QueryState(
        checkpoint=checkpoint,
        offsets=tuple(range(planned[0])),
        commits=tuple(range(committed[0])),
        planned={0: planned[1]},
        committed={0: committed[1]} if committed[0] else {},
    )


def query(checkpoint: str, *ends: int, start: int = 0, first: Mapping[int, int]) -> Query:
    """One query in the end: where it began, and the next offset after each of its batches."""
    starts = [start, *ends]
    batches = [Batch(batch=n, ranges={0: (starts[n], end)}, committed=True) for n, end in enumerate(ends)]
    return Query(checkpoint=checkpoint, batches=tuple(batches), first=first)


@dataclass
class Moment(Injected):
    """A snapshot; `states` are its queries, if it is not one that worked in order."""

    states: tuple[QueryState, ...] | None = None
    error: str = ""
    late_log: bool | None = None


@dataclass
class RunBuilder(Folder):
    """One run. `ends` are the next offsets after each batch; `unread` has words for sinks that could not be read, by
    folder and place (`0` at the end, `1-injection/0` at an injection), `dropped` what their readers left out; `edits`
    are keys of JSON files, or of what `edited` knows, that are set in the end.

    `baseline_runs` without tables are honest."""

    steps: list[StepOutcome] = field(default_factory=list)
    ends: list[int] = field(default_factory=lambda: [10, 20, 30, 40])
    queries: list[Query] | None = None
    batches: list[Batch] | None = None
    moments: list[Moment] = field(default_factory=list)
    unread: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, list[Row]] = field(default_factory=dict)
    edits: dict[str, dict[str, Any]] = field(default_factory=dict)
    calm_gap_s: float = 0.0
    """The longest gap between two commits of every baseline run."""
    tamper: Callable[[Path], None] | None = None
    """What somebody does to the folder once it has its digests; None leaves it without."""

    def write(self) -> Path:
        """The folder, as it is judged."""
        self._written()
        if self.tamper is not None:
            importlib.import_module("harness.run_folder.digests").write(self.path)
            self.tamper(self.path)
        return self.path

    def _written(self) -> None:
        super().write()
        for index, rows in enumerate(self.tables or self._honest(Injected(holds=EVERYTHING))):
            if rows is not None and str(index) not in self.unread:
                save(self.path, index, self._table(index, rows))
        for place, words in self.unread.items():
            self._unreadable(*self._place(place), words)
        for place, rows in self.dropped.items():
            folder, number = self._place(place)
            there = load(folder, number)
            assert there is not None
            save(folder, number, replace(there, dropped=rows))
        for name, keys in self.edits.items():
            if name.endswith(".json"):
                path = self.path / name
                path.write_text(json.dumps({**json.loads(path.read_text()), **keys}), encoding="utf-8")
            else:
                edited(self.path, name, **keys)

    def _place(self, place: str) -> tuple[Path, int]:
        """The folder, and the number in it, of a sink by folder and place."""
        folder, _, number = place.rpartition("/")
        return self.path / "snapshots" / folder if folder else self.path, int(number)

    def put(self, index: int, rows: list[Row]) -> None:
        """Write other rows into the folder as it stands."""
        save(self.path, index, self._table(index, rows))

    def _unreadable(self, folder: Path, index: int, words: str) -> None:
        sink = self.scenario.sinks[index]
        save(folder, index, SinkTable(name=sink.name, kind=sink.kind, target=sink.target, unreadable=words))

    def injection(
        self,
        batch: int | None = 1,
        *,
        point: str = "sink-committed",
        attempt: int | None = None,
        checkpoint: str = CHECKPOINT,
        **changes: Any,
    ) -> None:
        """One more step that struck: a driver killed with `batch` planned and not committed, in the sinks unless
        `holds` says otherwise. The next attempt goes on with it (`again`)."""
        number = len(self.steps) + 1
        attempt = number if attempt is None else attempt
        at = 0 if batch is None else batch
        moment = Moment(step=number, attempt=attempt, planned=at + 1, committed=at, again=at, at_s=3.0 * number)
        moment = replace(moment, checkpoint=checkpoint, **changes)
        logs = {"offsets": tuple(range(moment.planned)), "commits": tuple(range(moment.committed))}
        evidence = Evidence(
            signalled={"4711": "SIGKILL", f"driver {attempt}": "SIGKILL"},
            driver_status=-9,
            checkpoint_after=logs,
            in_flight="records",
        )
        self.steps.append(
            StepOutcome(
                name="kill driver",
                point=point,
                batch=batch,
                injected=True,
                evidence=evidence,
                at_s=moment.at_s,
                attempt=attempt,
                checkpoint=checkpoint,
                crash_point=crash_point(point),
            )
        )
        self.moments.append(moment)
        self.claim(schedule=(STEP,) * number)

    def found(self, number: int = 1, **changes: Any) -> None:
        """Change what the snapshot of a step says."""
        self.moments[number - 1] = replace(self.moments[number - 1], **changes)

    def sink(self, sink: Sink, *more: Sink, types: Sequence[Sequence[tuple[str, str, str]]] | None = None) -> None:
        """Judge these sinks."""
        self.claim(sinks=(sink, *more))
        self.types = [list(each) for each in types] if types else None

    def batch_sizes(self, *sizes: int) -> None:
        """How many records each batch took, and no others."""
        self.ends = [sum(sizes[: place + 1]) for place in range(len(sizes))]
        self.records = self.records[: self.ends[-1]]

    def rows(self, *kept: Pair, again: Sequence[Pair] = (), sink: int = 0) -> list[Row]:
        """What a sink holds if these offsets took effect, and those of `again` once more."""
        cut = Cut(
            only=tuple(OffsetRange(0, *each) for each in kept), again=tuple((OffsetRange(0, *each),) for each in again)
        )
        self.path.parent.mkdir(parents=True, exist_ok=True)
        parquet = self.path.parent / f"{self.path.name}.parquet"
        ledger.write_source(parquet, [self._source(range(len(self.records)))])
        columns = tuple((c["name"], c["type"], c["expression"]) for c in self.columns or ())
        batches = self._batches()
        expected = self.scenario.sinks[sink].expected or "from ledger"
        asked = (parquet.read_bytes(), columns, repr(batches), expected, cut)
        # A case, its twin and their neighbours have the same records: DuckDB is asked once for all of them.
        if asked not in _ROWS:
            with Ledger(Source(parquet=parquet, columns=columns, batches=batches), where="by hand") as queries:
                _ROWS[asked] = queries.table(expected, cut=cut).rows
        return [*_ROWS[asked]]

    def calm(self, *tables: Sequence[list[Row] | None] | str) -> None:
        """Baseline runs with these rows in their sinks; three honest ones if nothing is said."""
        self.baseline_runs = [each if isinstance(each, str) else list(each) for each in tables or ([], [], [])]

    def _end(self, count: int) -> int:
        return self.ends[count - 1] if count else 0

    def _batches(self) -> list[Batch]:
        return self.batches if self.batches is not None else list(query("", *self.ends, first={}).batches)

    def _injections(self) -> list[Injected]:
        return list(self.moments)

    def _baseline_run(self, number: int, tables: list[list[Row] | None] | str) -> None:
        whole = None if self.positions else [query(CHECKPOINT, len(self.records), first={1: 0})]
        calm = replace(self, progress=None, queries=whole, moments=[], unread={}, dropped={}, edits={}, tamper=None)
        Folder._baseline_run(calm, number, tables)
        if not isinstance(tables, str):
            edited(self.path, f"baseline/{number}/progress", gap_s=self.calm_gap_s)

    def _snapshot(self, injected: Injected) -> None:
        assert isinstance(injected, Moment)
        folder = self.path / "snapshots" / f"{injected.step}-{injected.moment}"
        folder.mkdir(parents=True)
        planned, committed = self._end(injected.planned), self._end(injected.committed)
        one = state(injected.checkpoint, planned=(injected.planned, planned), committed=(injected.committed, committed))
        states = (one,) if injected.states is None else injected.states
        snapshot = Snapshot(
            step=injected.step,
            moment=injected.moment,
            attempt=injected.attempt,
            at_s=injected.at_s,
            queries=() if injected.position is not None else states,
            position=injected.position,
            sent={0: len(self.records)},
            writing=injected.writing,
            handed=injected.handed,
            left=injected.left,
            error=injected.error,
            late_log=injected.late_log,
        )
        self._stood(snapshot)
        tables = injected.tables
        if tables is None:
            tables = self._honest(replace(injected, holds=planned if injected.holds is None else injected.holds))
        for index, rows in enumerate(tables):
            if rows is not None and f"{injected.step}-{INJECTION}/{index}" not in self.unread:
                save(folder, index, self._table(index, rows))

    def _progressed(self, caught_up: bool) -> Progressed:
        said = super()._progressed(caught_up)
        first = {1: 0, **{each.attempt + 1: each.again for each in self.moments if each.again is not None}}
        queries = self.queries
        if queries is None:
            queries = [] if self.positions else [query(CHECKPOINT, *self.ends, first=first)]
        return replace(said, queries=tuple(queries), batches=tuple(self._batches()))


def run_builder(path: Path) -> RunBuilder:
    """An honest run of four batches, in which nothing was struck yet."""
    return RunBuilder(path, scenario=replace(SCENARIO, schedule=()))
