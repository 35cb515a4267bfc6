"""Run folders made by hand: what the run loop would leave, without a JVM, for the tests of the judge."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from harness import ledger, sealed
from harness.checkers.cells import Row
from harness.judge import judge
from harness.scenario import (
    Do,
    Evidence,
    Fault,
    Pipeline,
    Scenario,
    Sink,
    Step,
    StepOutcome,
    Trigger,
    When,
    Window,
    plain,
)
from harness.sinks import SinkColumn, SinkTable, save
from harness.store import RunFolder
from harness.workload import Record

COLUMNS = [
    {"name": "id", "type": "BIGINT", "expression": "value ->> '$.id'"},
    {"name": "account", "type": "VARCHAR", "expression": "value ->> '$.account'"},
    {"name": "amount", "type": "DECIMAL(12,2)", "expression": "value ->> '$.amount'"},
]
PER_RECORD = Sink(backend="postgres", target="payments", effect="select id, account, amount from ledger", key=("id",))
TOTALS = Sink(
    backend="postgres",
    target="totals",
    effect="select account, count(*) as n, sum(amount) as total from ledger group by account",
    key=("account",),
)
STEP = Step(
    when=Trigger(kind=When.WINDOW, window=Window.SINK_COMMITTED, batch=1),
    do=Fault(kind=Do.KILL_DRIVER),
    name="kill driver",
)
HIT = StepOutcome(
    name="kill driver",
    window="sink-committed",
    batch=1,
    hit=True,
    evidence=Evidence(
        signalled={"4711": "SIGKILL", "driver 1": "SIGKILL"},
        checkpoint_after={"offsets": (0, 1), "commits": (0,)},
        in_flight="batch 1",
    ),
    at_s=3.0,
)
SCENARIO = Scenario(name="by hand", pipeline=Pipeline(entry="p.py"), sinks=(PER_RECORD,), schedule=(STEP,))
TYPES = {
    "payments": [("id", "bigint", "number"), ("account", "text", "text"), ("amount", "numeric", "number")],
    "totals": [("account", "text", "text"), ("n", "bigint", "number"), ("total", "numeric", "number")],
}


def values(count: int) -> list[dict[str, Any]]:
    """Records of four accounts; every amount is another one."""
    return [{"id": i, "account": f"a{i % 4}", "amount": f"{i}.{i % 97:02d}"} for i in range(count)]


def payments(records: Sequence[Mapping[str, Any]]) -> list[Row]:
    """What an honest pipeline leaves in `payments`."""
    return [(str(r["id"]), r["account"], _plain(r["amount"])) for r in records]


def _plain(amount: str) -> str:
    return amount.rstrip("0").rstrip(".")


@dataclass
class Folder:
    """One run; change what you like, then `write` it. Offsets fill one partition after the other."""

    path: Path
    records: list[dict[str, Any]] = field(default_factory=lambda: values(40))
    scenario: Scenario = SCENARIO
    tables: list[list[Row] | None] = field(default_factory=list)
    types: list[list[tuple[str, str, str]]] | None = None
    steps: list[StepOutcome] = field(default_factory=lambda: [HIT])
    batch_size: int = 10
    frontier: int | None = None
    outcome: dict[str, Any] = field(default_factory=dict)
    columns: list[dict[str, str]] | None = field(default_factory=lambda: list(COLUMNS))
    states: Callable[[int], ledger.State] = lambda seq: ledger.State.ACKNOWLEDGED
    gone: frozenset[int] = frozenset()
    """Records that the source does not hold."""

    def write(self) -> Path:
        (self.path / "ledger").mkdir(parents=True)
        self._attempts()
        kept = [i for i in range(len(self.records)) if i not in self.gone]
        ledger.write_source(self.path / "ledger" / "source.parquet", [self._source(kept)])
        self._json("plan.json", {"scenario": plain(self.scenario), "columns": self.columns})
        drained = self.frontier is None
        outcome = {"drained": drained, "reasons": [], "stalled": None, "error": None, **self.outcome}
        outcome["steps"] = [plain(step) for step in self.steps]
        self._json("run.json", {"run_id": "by-hand", "outcome": outcome})
        self._json("checkpoint.json", self._checkpoint(drained))
        for index, rows in enumerate(self.tables):
            if rows is not None:
                save(self.path, index, self._table(index, rows))
        return self.path

    def _table(self, index: int, rows: list[Row]) -> SinkTable:
        sink = self.scenario.sinks[index]
        types = self.types[index] if self.types else TYPES[sink.target]
        columns = tuple(SinkColumn(name=n, type=t, family=f) for n, t, f in types)
        return SinkTable(name=sink.name, backend=sink.backend, target=sink.target, columns=columns, rows=rows)

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

    def _checkpoint(self, drained: bool) -> dict[str, Any]:
        count, size = len(self.records), self.batch_size
        starts = range(0, count, size)
        ranges = [{"0": [start, min(start + size, count)]} for start in starts]
        batches = [{"batch": n, "ranges": r, "committed": True} for n, r in enumerate(ranges)]
        frontier = count if self.frontier is None else self.frontier
        return {"batches": batches, "frontier": {"0": frontier}, "end": {"0": count}, "drained": drained}

    def _json(self, name: str, data: object) -> None:
        (self.path / name).write_text(json.dumps(data), encoding="utf-8")

    def sealed(self) -> RunFolder:
        """The run judged, its verdict kept and all of it sealed, as the loop leaves it."""
        folder = RunFolder.open(self.write())
        folder.journal.write_text('{"n": 0, "at_s": 0.1, "what": "phase", "name": "judging"}\n', encoding="utf-8")
        folder.save(0, scenario=f"name: {self.scenario.name}\n", run={"scenario": self.scenario.name, "seed": 0})
        folder.save(1, verdict=judge(folder.path))
        folder.save(2, run={"seconds": 1.5})
        sealed.write(folder.path)
        return folder

    def claim(self, **changes: Any) -> None:
        """Change the scenario."""
        self.scenario = replace(self.scenario, **changes)
