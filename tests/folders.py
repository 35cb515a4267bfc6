"""Run folders made by hand: what the run loop would leave, without a JVM, for the tests of the judge."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from harness.checkers.cells import Row, canonical
from harness.checkers.offset_ranges import Cut, OffsetRange
from harness.faults import fault
from harness.history import Event, FaultInjected, Line, Phase, ProgressRead, SinkRead, text
from harness.judge import Judged, judged
from harness.ledger import Ledger, Source, Table
from harness.run_folder import digests, ledger
from harness.run_folder.store import RunFolder
from harness.scenario import CrashPoint, Evidence, Pipeline, Scenario, Sink, Step, StepOutcome, Verdict, plain
from harness.sinks.table import SinkColumn, SinkTable, save
from harness.snapshot import INJECTION, Batch, Position, Progressed, Query, QueryState, Snapshot
from harness.triggers import trigger
from harness.workloads import Record

COLUMNS = [
    {"name": "id", "type": "BIGINT", "expression": "value ->> '$.id'"},
    {"name": "account", "type": "VARCHAR", "expression": "value ->> '$.account'"},
    {"name": "amount", "type": "DECIMAL(12,2)", "expression": "value ->> '$.amount'"},
]
PER_RECORD = Sink(kind="postgres", target="payments", expected="select id, account, amount from ledger", key=("id",))
TOTALS = Sink(
    kind="postgres",
    target="totals",
    expected="select account, count(*) as n, sum(amount) as total from ledger group by account",
    key=("account",),
)
STEP = Step(
    when=trigger("point", CrashPoint.SINK_COMMITTED, batch=1),
    do=fault("kill driver"),
)
INJECTED = StepOutcome(
    name="kill driver",
    point="sink-committed",
    batch=1,
    injected=True,
    evidence=Evidence(
        signalled={"4711": "SIGKILL", "driver 1": "SIGKILL"},
        driver_status=-9,
        checkpoint_after={"offsets": (0, 1), "commits": (0,)},
        in_flight="batch 1",
    ),
    at_s=3.0,
    attempt=1,
    checkpoint="checkpoint",
    crash_point=CrashPoint.SINK_COMMITTED,
)
SCENARIO = Scenario(name="by hand", pipeline=Pipeline(entry="p.py"), sinks=(PER_RECORD,), schedule=(STEP,))
TYPES = {
    "payments": [("id", "bigint", "number"), ("account", "text", "text"), ("amount", "numeric", "number")],
    "totals": [("account", "text", "text"), ("n", "bigint", "number"), ("total", "numeric", "number")],
}


def at_point(step: StepOutcome, point: str) -> StepOutcome:
    """The same, where a trigger with that place was met."""
    return replace(step, point=point, crash_point=crash_point(point))


def crash_point(place: str) -> CrashPoint | None:
    """The crash point that a trigger with that place waits for."""
    return CrashPoint(place) if place in list(CrashPoint) else None


BEFORE = at_point(INJECTED, "batch-planned")
HISTORY = "history.jsonl"


def edited(run: Path, what: str, **keys: Any) -> None:
    """Set `keys` of what the history of a run folder says: of the `progress` at the end, or of a reading of the sinks,
    `1-injection`. `baseline/1/progress` is that of a baseline run."""
    folder, _, name = what.rpartition("/")
    path = run / folder / HISTORY
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    _named(lines, name).update(keys)
    path.write_text("".join(f"{json.dumps(each)}\n" for each in lines), encoding="utf-8")


def recorded(run: Path, what: str) -> dict[str, Any]:
    """What the history of a run folder says, as `edited` names it."""
    folder, _, name = what.rpartition("/")
    return _named(
        [json.loads(line) for line in (run / folder / HISTORY).read_text(encoding="utf-8").splitlines()], name
    )


def _named(lines: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    if name == "progress":
        (found,) = [each["progressed"] for each in lines if each["what"] == "progress-read"]
    else:
        (found,) = [each["snapshot"] for each in lines if f"{each.get('step')}-{each.get('moment')}" == name]
    assert isinstance(found, dict)
    return found


def values(count: int) -> list[dict[str, Any]]:
    """Records of four accounts; every amount is another one."""
    return [{"id": i, "account": f"a{i % 4}", "amount": f"{i}.{i % 97:02d}"} for i in range(count)]


def payments(records: Sequence[Mapping[str, Any]]) -> list[Row]:
    """What an honest pipeline leaves in `payments`."""
    return [(str(r["id"]), r["account"], _plain(r["amount"])) for r in records]


def totals(records: Sequence[dict[str, Any]]) -> list[Row]:
    """What an honest pipeline leaves in `totals`."""
    sums: dict[str, tuple[int, Decimal]] = {}
    for record in records:
        n, total = sums.get(record["account"], (0, Decimal(0)))
        sums[record["account"]] = n + 1, total + Decimal(record["amount"])
    return [(account, str(n), canonical(total, "number")) for account, (n, total) in sums.items()]


def _plain(amount: str) -> str:
    return amount.rstrip("0").rstrip(".")


_HONEST: dict[Any, list[list[Row] | None]] = {}
"""The rows of each sink by all that they depend on."""


def _ordered(table: Table, names: Sequence[str]) -> list[Row]:
    """The rows of `expected` with the columns of a sink; none where one is missing."""
    if not set(names) <= set(table.columns):
        return []
    order = [table.columns.index(name) for name in names]
    return [tuple(row[place] for place in order) for row in table.rows]


@dataclass
class Injected:
    """The snapshot of one step. A pipeline in order: `planned` and `committed` batches, the sinks holding `expected` of
    the first `holds` records, or `tables` if they are given. `again` is the first batch of the next attempt."""

    step: int = 1
    attempt: int = 1
    planned: int = 2
    committed: int = 1
    holds: int | None = None
    tables: list[list[Row] | None] | None = None
    again: int | None = 1
    position: dict[int, int] | None = None
    at_s: float = 3.0
    writing: dict[str, tuple[str, ...]] = field(default_factory=dict)
    handed: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    moment: str = INJECTION
    checkpoint: str = "checkpoint"
    left: dict[str, tuple[str, ...]] | None = field(default_factory=dict)


@dataclass
class Folder:
    """One run; change what you like, then `write` it. Offsets fill one partition after the other."""

    path: Path
    records: list[dict[str, Any]] = field(default_factory=lambda: values(40))
    scenario: Scenario = SCENARIO
    tables: list[list[Row] | None] = field(default_factory=list)
    types: list[list[tuple[str, str, str]]] | None = None
    steps: list[StepOutcome] = field(default_factory=lambda: [INJECTED])
    batch_size: int = 10
    progress: int | None = None
    outcome: dict[str, Any] = field(default_factory=dict)
    columns: list[dict[str, str]] | None = field(default_factory=lambda: list(COLUMNS))
    states: Callable[[int], ledger.State] = lambda seq: ledger.State.ACKNOWLEDGED
    gone: frozenset[int] = frozenset()
    """Records that the source does not hold."""
    baseline_runs: list[list[list[Row] | None] | str] = field(default_factory=list)
    positions: list[Position] = field(default_factory=list)
    injections: list[Injected] | None = None
    """What each step's snapshot says; None means that of an honest pipeline, struck with batch 1 in its sinks."""
    lines: list[Line] = field(default_factory=list)
    """More lines of the history."""

    def write(self) -> Path:
        (self.path / "ledger").mkdir(parents=True)
        self._attempts()
        kept = [i for i in range(len(self.records)) if i not in self.gone]
        ledger.write_source(self.path / "ledger" / "source.parquet", [self._source(kept)])
        self._json("plan.json", {"scenario": plain(self.scenario), "columns": self.columns})
        caught_up = self.progress is None
        outcome = {"caught_up": caught_up, "reasons": [], "stalled": None, "error": None, **self.outcome}
        self._json("run.json", {"run_id": "by-hand", "outcome": outcome})
        for index, rows in enumerate(self.tables):
            if rows is not None:
                save(self.path, index, self._table(index, rows))
        for injected in self._injections():
            self._snapshot(injected)
        for line in self.lines:
            self._line(line)
        for step in self.steps:
            self._told(FaultInjected(outcome=step))
        self._told(ProgressRead(progressed=self._progressed(bool(outcome["caught_up"]))))
        for number, tables in enumerate(self.baseline_runs, 1):
            self._baseline_run(number, tables)
        return self.path

    def _told(self, event: Event) -> None:
        """One more line of the history."""
        self._line(Line(0, 0.1, event))

    def _line(self, line: Line) -> None:
        with (self.path / HISTORY).open("a", encoding="utf-8") as file:
            file.write(f"{text(line)}\n")

    def _stood(self, snapshot: Snapshot) -> None:
        self._told(SinkRead(step=snapshot.step, moment=snapshot.moment, seconds=0.1, rows=0, snapshot=snapshot))

    def _baseline_run(self, number: int, tables: list[list[Row] | None] | str) -> None:
        """A baseline run: the same without faults, with these rows in its sinks, or the words of its error."""
        path = self.path / "baseline" / str(number)
        if isinstance(tables, str):
            path.mkdir(parents=True)
            (path / "run.json").write_text(json.dumps({"outcome": {"error": tables}}), encoding="utf-8")
            return
        calm = replace(self.scenario, schedule=())
        replace(
            self, path=path, scenario=calm, tables=tables, steps=[], injections=[], baseline_runs=[], outcome={}
        ).write()

    def _injections(self) -> list[Injected]:
        if self.injections is not None:
            return self.injections
        return [Injected(step=number) for number, step in enumerate(self.steps, 1) if step.injected]

    def _snapshot(self, injected: Injected) -> None:
        folder = self.path / "snapshots" / f"{injected.step}-{injected.moment}"
        folder.mkdir(parents=True)
        size = self.batch_size
        state = QueryState(
            checkpoint=injected.checkpoint,
            offsets=tuple(range(injected.planned)),
            commits=tuple(range(injected.committed)),
            planned={0: min(injected.planned * size, len(self.records))},
            committed={0: min(injected.committed * size, len(self.records))} if injected.committed else {},
        )
        snapshot = Snapshot(
            step=injected.step,
            moment=injected.moment,
            attempt=injected.attempt,
            at_s=injected.at_s,
            queries=() if injected.position is not None else (state,),
            position=injected.position,
            sent={0: len(self.records)},
            writing=injected.writing,
            handed=injected.handed,
            left=injected.left,
        )
        self._stood(snapshot)
        tables = injected.tables if injected.tables is not None else self._honest(injected)
        for index, rows in enumerate(tables):
            if rows is not None:
                save(folder, index, self._table(index, rows))

    def _honest(self, injected: Injected) -> list[list[Row] | None]:
        """What an honest pipeline would have in its sinks."""
        holds = injected.planned * self.batch_size if injected.holds is None else injected.holds
        columns = tuple((c["name"], c["type"], c["expression"]) for c in self.columns or ())
        path = self.path / "ledger" / "source.parquet"
        queries = tuple(
            None if sink.kind == "console" else sink.expected or "from ledger" for sink in self.scenario.sinks
        )
        names = [() if sql is None else tuple(n for n, _, _ in self._types(at)) for at, sql in enumerate(queries)]
        asked = (path.read_bytes(), columns, queries, tuple(names), holds)
        # Many runs have the same records: DuckDB is asked once for all of them.
        if asked not in _HONEST:
            with Ledger(Source(parquet=path, columns=columns), where="by hand") as ledger:
                made = [
                    None if sql is None else ledger.table(sql, cut=Cut(only=(OffsetRange(0, 0, holds),)))
                    for sql in queries
                ]
            _HONEST[asked] = [
                None if table is None else _ordered(table, wanted) for table, wanted in zip(made, names, strict=True)
            ]
        return [rows if rows is None else [*rows] for rows in _HONEST[asked]]

    def _types(self, index: int) -> list[tuple[str, str, str]]:
        return self.types[index] if self.types else TYPES[self.scenario.sinks[index].target]

    def _table(self, index: int, rows: list[Row]) -> SinkTable:
        sink = self.scenario.sinks[index]
        columns = tuple(SinkColumn(name=n, type=t, family=f) for n, t, f in self._types(index))
        return SinkTable(name=sink.name, kind=sink.kind, target=sink.target, columns=columns, rows=rows)

    def _attempts(self) -> None:
        log = ledger.Attempts(self.path / "ledger" / "attempts.log")
        log.meant([Record(i, None, self._value(i), 0) for i in range(len(self.records))])
        answers = []
        for i in range(len(self.records)):
            state = self.states(i)
            place = (0, i) if state is ledger.State.ACKNOWLEDGED else (None, None)
            answers.append(ledger.Answer(i, state, *place))
        log.answers(answers)
        log.close()

    def _value(self, index: int) -> bytes:
        return json.dumps(self.records[index]).encode()

    def _source(self, kept: Iterable[int]) -> pa.RecordBatch:
        rows = [(0, i, 1_700_000_000_000 + i, None, self._value(i), i) for i in kept]
        columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in ledger.SOURCE]
        arrays = [pa.array(column, type=f.type) for column, f in zip(columns, ledger.SOURCE, strict=True)]
        return pa.record_batch(arrays, schema=ledger.SOURCE)

    def _progressed(self, caught_up: bool) -> Progressed:
        count, size = len(self.records), self.batch_size
        ranges = [{0: (start, min(start + size, count))} for start in range(0, count, size)]
        batches = tuple(Batch(batch=n, ranges=r, committed=True) for n, r in enumerate(ranges))
        first = {1: 0, **{s.attempt + 1: s.again for s in self._injections() if s.again is not None}}
        return Progressed(
            queries=(Query(checkpoint="checkpoint", batches=batches, first=first),),
            positions=tuple(self.positions),
            batches=batches,
            committed={0: count if self.progress is None else self.progress},
            end={0: count},
            caught_up=caught_up,
        )

    def _json(self, name: str, data: object) -> None:
        (self.path / name).write_text(json.dumps(data), encoding="utf-8")

    def complete(self) -> RunFolder:
        """The run judged, its verdict kept and all of it with digests, as the loop leaves it."""
        verdict = judge(self)
        folder = RunFolder.open(self.path)
        self._told(Phase(name="judging"))
        folder.save(0, scenario=f"name: {self.scenario.name}\n", run={"scenario": self.scenario.name, "seed": 0})
        folder.save(1, verdict=verdict)
        folder.save(2, run={"seconds": 1.5})
        digests.write(folder.path)
        return folder

    def claim(self, **changes: Any) -> None:
        """Change the scenario."""
        self.scenario = replace(self.scenario, **changes)

    def write_baseline(self) -> Path:
        """Write a baseline run that shows no finding; the run's folder."""
        replace(self, progress=None)._baseline_run(1, self._honest(Injected(holds=len(self.records))))
        return self.path


def judge(run: Folder | Path) -> Verdict:
    """Return the verdict on a run, as `asked` does."""
    return asked(run).verdict


def asked(run: Folder | Path) -> Judged:
    """Return what the judge says of a run folder. One that is not written yet is, with a clean baseline run where the
    judge needs some and it has none, as the loop makes it."""
    found = judged(run if isinstance(run, Path) else run.write())
    if found.baseline_runs_needed and isinstance(run, Folder) and not run.baseline_runs:
        found = judged(run.write_baseline())
    return found
