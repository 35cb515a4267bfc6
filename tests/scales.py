"""One sink and its steps without a run folder: for the tests of what a step exposed and what a finding hides.

Forty records in two partitions, the even ones in the first; four batches of ten. With more partitions a batch takes
five records of each. A reach, a sink's rows at the injection
and in the end are what each test says; everything else is an honest pipeline's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from harness.checkers.cells import Row
from harness.checkers.compare import Case, compare, finding, key_of
from harness.checkers.offset_ranges import Cut, OffsetRange, OffsetRanges, between
from harness.checkers.origin import attribute, explanations
from harness.judge.certain import certainly
from harness.judge.examine import Comparison, Examined
from harness.judge.exposure import Exposed, exposed
from harness.judge.injections import Injection, Seen
from harness.judge.progress_at_injection import QueryProgress
from harness.judge.readings.scale import Scale
from harness.ledger import WHOLE, Ledger, Source, Table
from harness.run_folder import ledger
from harness.scenario import Finding, Sink, StepOutcome
from harness.sinks.table import FINGERPRINTS, SinkColumn, SinkTable, fingerprint
from harness.snapshot import Batch, Snapshot
from tests.folders import COLUMNS, INJECTED, PER_RECORD, TOTALS, values

BATCHES = 4
EACH = 5
"""Records of one batch in one partition."""


def upto(batches: int, partitions: int = 2) -> dict[int, int]:
    """The next offsets after so many batches."""
    return dict.fromkeys(range(partitions), EACH * batches)


def batch(number: int, partitions: int = 2) -> OffsetRanges:
    """What a batch took."""
    return between(upto(number, partitions), upto(number + 1, partitions))


_ANSWERS: dict[str, dict[Any, Any]] = {}
"""By ledger, what was asked of it and the answer."""


class Remembered(Ledger):
    """Queries over a small ledger. The same question has the same answer, so it is put once, by whichever test; the
    ledger is made when there is a new one."""

    def __init__(self, make: Callable[[], Ledger], *, ledger: str) -> None:
        self._make, self._made, self._known = make, list[Ledger](), _ANSWERS.setdefault(ledger, {})

    def fresh(self) -> Ledger:
        """Return queries over the same ledger that remember nothing."""
        return self._make()

    def _answer(self, name: str, *arguments: Any, **options: Any) -> Any:
        question = (name, arguments, tuple(options.items()))
        if question not in self._known:
            self._made = self._made or [self._make()]
            answer = getattr(self._made[0], name)(*arguments, **options)
            self._known[question] = list(answer) if isinstance(answer, Iterator) else answer
        return self._known[question]

    def __exit__(self, *error: Any) -> None:
        for each in self._made:
            each.__exit__(*error)

    def table(self, sql: str, *, committed: bool = False, batch: int | None = None, cut: Cut = WHOLE) -> Table:
        made: Table = self._answer("table", sql, committed=committed, batch=batch, cut=cut)
        return replace(made, rows=list(made.rows))

    def aggregates(self, sql: str) -> bool:
        return bool(self._answer("aggregates", sql))

    def batches(self) -> tuple[int, ...]:
        return tuple(self._answer("batches"))

    def ranges(self) -> list[tuple[int, OffsetRanges]]:
        return list(self._answer("ranges"))

    def keyed(self, sql: str, key: Collection[str]) -> bool:
        return bool(self._answer("keyed", sql, tuple(key)))

    def growing(self, sql: str) -> dict[int, bool]:
        return dict(self._answer("growing", sql))

    def distinct(self, sql: str) -> bool:
        return bool(self._answer("distinct", sql))

    def unrounded(self, sql: str) -> frozenset[int]:
        return frozenset(self._answer("unrounded", sql))

    def summed(self, sql: str) -> tuple[int, ...]:
        return tuple(self._answer("summed", sql))

    def extreme(self, sql: str, function: str) -> Table:
        made: Table = self._answer("extreme", sql, function)
        return made

    def size(self, *, committed: bool = False, cut: Cut = WHOLE) -> int:
        return int(self._answer("size", committed=committed, cut=cut))

    def columns(self) -> tuple[str, ...]:
        return tuple(self._answer("columns"))

    def origins(self, names: Sequence[str]) -> Iterator[tuple[Row, int, int, int | None]]:
        yield from self._answer("origins", tuple(names))


class Bench:
    """A ledger, `expected` and a sink."""

    def __init__(
        self,
        path: Path,
        sink: Sink = PER_RECORD,
        *,
        records: Sequence[dict[str, Any]] | None = None,
        partitions: int = 2,
        **table: Any,
    ) -> None:
        records = list(values(40) if records is None else records)
        self.sink, self.table = sink, table
        entries = [
            Batch(batch=n, ranges={s.partition: (s.start, s.end) for s in batch(n, partitions)}, committed=True)
            for n in range(BATCHES)
        ]
        columns = tuple((c["name"], c["type"], c["expression"]) for c in COLUMNS)
        source = Source(parquet=path / "source.parquet", columns=columns, batches=entries)

        def ask() -> Ledger:
            _written(path, records, partitions)
            return Ledger(source, where="by hand")

        self.ledger = Remembered(ask, ledger=json.dumps([records, partitions]))
        made = self.ledger.table(sink.expected or "")
        self.columns, self.families, self.types = made.columns, made.families, made.types

    def rows(self, *only: OffsetRange, without: OffsetRanges = (), again: tuple[OffsetRanges, ...] = ()) -> list[Row]:
        """`expected` over some spans; over all of them if none is named."""
        return self.ledger.table(
            self.sink.expected or "", cut=Cut(only=only or None, without=without, again=again)
        ).rows

    def first(self, batches: int) -> list[Row]:
        """`expected` over the first batches."""
        return self.rows(*between({}, upto(batches))) if batches else []

    def held(self, rows: Sequence[Row]) -> SinkTable:
        """A sink that holds these rows."""
        columns = tuple(
            SinkColumn(name=n, type=t, family=f)
            for n, t, f in zip(self.columns, self.types, self.families, strict=True)
        )
        return SinkTable(name="t", kind="postgres", target="t", columns=columns, rows=list(rows), **self.table)

    def marked(self, rows: Sequence[Row]) -> SinkTable:
        """The same as keys and fingerprints, as a large sink is kept."""
        whole = self.held(rows)
        places = [self.columns.index(name) for name in self.columns if name in self.sink.key]
        columns = (
            *(whole.columns[place] for place in places),
            SinkColumn(name="fingerprint", type="text", family="text"),
        )
        marks: list[Row] = [(*key_of(row, places), fingerprint(row)) for row in rows]
        return replace(whole, columns=columns, rows=marks, form=FINGERPRINTS)

    def scale(self, found: Sequence[Row] | None = None) -> Scale:
        """What steps are weighed with, if the sink holds this in the end."""
        expected = self.rows()
        case = Case(
            sink="t",
            columns=self.columns,
            families=self.families,
            key=self.sink.key,
            expected=expected,
            found=list(expected if found is None else found),
            aggregate=self.ledger.aggregates(self.sink.expected or ""),
        )
        return Scale(
            ledger=self.ledger,
            sink=self.sink,
            position=0,
            case=case,
            table=self.held(case.found),
            queries=[self.ledger.ranges()],
        )

    def findings(self, scale: Scale) -> list[Finding]:
        """The findings with their harms."""
        marks = list(compare(scale.case))
        marked = Comparison(case=scale.case, bad={mark.key for mark in marks})
        examined = Examined(sink=self.sink, name="t", position=0, caught_up=True, table=scale.table, comparison=marked)
        examined.findings = [finding(scale.case, mark) for mark in marks]
        clues = examined.clues(self.ledger)
        options = explanations(examined.findings, clues.totals)
        return certainly(scale, attribute(examined.findings, clues, options))


Make = Callable[..., Bench]


def benches(path: Path) -> Iterator[Make]:
    """Builds benches below `path` until it is closed: the body of a fixture."""
    made: list[Bench] = []

    def build(*arguments: Any, **more: Any) -> Bench:
        made.append(Bench(path / str(len(made)), *arguments, **more))
        return made[-1]

    yield build
    for bench in made:
        bench.ledger.__exit__(None, None, None)


def _written(path: Path, records: Sequence[dict[str, Any]], partitions: int) -> None:
    rows = [
        (i % partitions, i // partitions, 1_700_000_000_000 + i, None, json.dumps(record).encode(), i)
        for i, record in enumerate(records)
    ]
    arrays = [
        pa.array(list(column), type=f.type) for column, f in zip(zip(*rows, strict=True), ledger.SOURCE, strict=True)
    ]
    path.mkdir(parents=True, exist_ok=True)
    ledger.write_source(path / "source.parquet", [pa.record_batch(arrays, schema=ledger.SOURCE)])


def progress(planned: int = 2, committed: int = 1, *, again: int | None = None, **changes: Any) -> QueryProgress:
    """A query that has planned and committed so many batches. The next attempt begins at batch `again`."""
    fields: dict[str, Any] = {
        "low": upto(committed),
        "high": upto(planned),
        "next": upto(committed if again is None else again),
        "last": batch(committed - 1) if committed else (),
        "batch": planned - 1 if planned > committed else None,
        "checkpoint": "checkpoint",
    }
    return QueryProgress(**{**fields, **changes})


def injection(
    at: SinkTable | None,
    restart: SinkTable | None = None,
    *,
    number: int = 1,
    outcome: StepOutcome = INJECTED,
    **snapshot: Any,
) -> Injection:
    """An injection that met the sink as `at`."""
    taken = Snapshot(step=number, moment="injection", attempt=number, at_s=3.0 * number, **snapshot)
    late = Seen(snapshot=replace(taken, moment="restart"), tables=(restart,)) if restart is not None else None
    outcome = replace(outcome, attempt=number)
    return Injection(number=number, outcome=outcome, at=Seen(snapshot=taken, tables=(at,)), restart=late)


def injected(
    bench: Bench,
    at: Sequence[Row],
    *query_progress: QueryProgress,
    scale: Scale | None = None,
    restart: Sequence[Row] | None = None,
    **more: Any,
) -> Exposed:
    """What one step exposed; of batch 1 planned and not committed if nothing else is said."""
    late = bench.held(restart) if restart is not None else None
    struck, found = injection(bench.held(at), late, **more), query_progress or (progress(),)
    return exposed(scale or bench.scale(), struck, found, many=len(found), until=None, executions=())


COUNTED = replace(TOTALS, expected="select account, count(*) as n from ledger group by account")
PEAKS = replace(TOTALS, expected="select account, max(amount) as peak from ledger group by account")
GRAND = replace(TOTALS, expected="select count(*) as n, sum(amount) as total from ledger", key=())
