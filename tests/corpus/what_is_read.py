"""What is read back is not what was written: precision, queries that fold, totals of one row, folders put right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from harness.checkers.cells import Row
from harness.components.python.sink.open_reader import UNTRIED
from harness.scenario import Kind, Word
from tests.corpus.case import Right, adversary, error, held, inconclusive, untested, violated
from tests.corpus.run_builder import RunBuilder, blame
from tests.folders import PER_RECORD, TOTALS, TYPES

HALVES = replace(PER_RECORD, expected="select id, account, (amount / 3)::{} as amount from ledger")
DISTINCT = "select distinct id, account, amount from payments"
GRAND = replace(TOTALS, expected="select count(*) as n, sum(amount) as total from ledger", key=())
GRAND_TYPES = [("n", "bigint", "number"), ("total", "numeric", "number")]
MAXIMUM = replace(TOTALS, expected="select account, max(id) as n from ledger group by account")


def amounts(kind: str, family: str) -> list[tuple[str, str, str]]:
    return [*TYPES["payments"][:2], ("amount", kind, family)]


@adversary(13, untested("column amount"), twin=held("1 repetition"))
def double_against_real(run: RunBuilder) -> Iterator[str]:
    """`expected` has DOUBLE, the table `real`: one family, and the digits that the table cannot keep look corrupted."""
    run.sink(replace(HALVES, expected=(HALVES.expected or "").format("double")))
    run.types = [amounts("real", "float")]
    run.injection(1)
    honest = run.rows((0, 40))
    cut: list[Row] = [(*row[:2], repr(float(f"{float(row[2] or 0):.7g}"))) for row in honest]
    run.tables = [cut]
    run.found(tables=[cut[:20]])
    yield "the table has `double precision`"
    run.types = [amounts("double precision", "float")]
    run.tables = [honest]
    run.found(tables=[honest[:20]])


@adversary(13, untested("column amount"), twin=held("1 repetition"))
def fractions_of_a_second(run: RunBuilder) -> Iterator[str]:
    """`expected` has TIMESTAMP, the table `timestamp(0)`: every moment is cut to its second."""
    moments = "select id, account, timestamp '2026-01-01' + to_milliseconds(id * 100) as amount from ledger"
    run.sink(replace(PER_RECORD, expected=moments))
    run.types = [amounts("timestamp(0) without time zone", "timestamp")]
    run.injection(1)
    honest = run.rows((0, 40))
    cut: list[Row] = [(*row[:2], f"{(row[2] or '')[:19]}.000000") for row in honest]
    run.tables = [cut]
    run.found(tables=[cut[:20]])
    yield "the table has `timestamp(6)`"
    run.types = [amounts("timestamp(6) without time zone", "timestamp")]
    run.tables = [honest]
    run.found(tables=[honest[:20]])


@adversary(13, untested("column amount"), twin=held("1 repetition"))
def decimals_of_another_scale(run: RunBuilder) -> Iterator[str]:
    """`expected` has DECIMAL(12,2), the table `numeric(12,1)`: the second decimal is rounded off."""
    run.types = [amounts("numeric(12,1)", "number")]
    run.injection(1)
    honest = run.rows((0, 40))
    cut: list[Row] = [(*row[:2], f"{float(row[2] or 0):.1f}".removesuffix(".0")) for row in honest]
    run.tables = [cut]
    run.found(tables=[cut[:20]])
    yield "the table has `numeric(12,2)`"
    run.types = [amounts("numeric(12,2)", "number")]
    run.tables = [honest]
    run.found(tables=[honest[:20]])


@adversary(14, untested("fold", shown=None), twin=held("1 loss"))
def distinct_hides_duplicates(run: RunBuilder) -> Iterator[str]:
    """The sink is a query with `distinct`: a batch written twice reads as written once."""
    run.sink(replace(PER_RECORD, target=DISTINCT), types=[TYPES["payments"]])
    run.edits["sink/0.json"] = {"folds": True, "folding": "a row of payments that is there twice does not show in it"}
    run.injection(1, point="batch-planned", holds=10)
    yield "the scenario says that it folds (`view: deduplicated`)"
    run.sink(replace(PER_RECORD, target=DISTINCT, folds=True), types=[TYPES["payments"]])


@adversary(14, untested("folds equal rows", shown=None), twin=held("1 repetition"))
def nothing_but_repetition_exposed_and_folded(run: RunBuilder) -> Iterator[str]:
    """The scenario admits that its query folds equal rows, and the only fault exposed repetition: nothing else
    could have gone wrong, and that could not be seen."""
    run.sink(replace(PER_RECORD, target=DISTINCT, folds=True), types=[TYPES["payments"]])
    run.edits["sink/0.json"] = {"folds": True}
    run.injection(1)
    yield "the query shows a doubled row twice"
    run.edits["sink/0.json"] = {"folds": False}


@adversary(14, untested("could not be tried", shown=None), twin=held("1 repetition"))
def code_that_nobody_can_try(run: RunBuilder) -> Iterator[str]:
    """The sink is read by code of the user's own, which may leave out what comes twice."""
    run.sink(replace(PER_RECORD, target="readback:rows"), types=[TYPES["payments"]])
    run.edits["sink/0.json"] = {"folds": None, "folding": UNTRIED}
    run.injection(1)
    yield "the scenario says that it gives every row (`view: complete`)"
    run.sink(replace(PER_RECORD, target="readback:rows", complete=True), types=[TYPES["payments"]])
    run.edits["sink/0.json"] = {"folds": None, "folding": ""}


@adversary(14, held("1 repetition"))
def upsert_of_a_maximum(run: RunBuilder) -> None:
    """The table keeps the highest id of each account, under a primary key: written twice or once, it is the same."""
    run.sink(MAXIMUM, types=[[("account", "text", "text"), ("n", "bigint", "number")]])
    run.edits["sink/0.json"] = {"unique": True}
    run.injection(1)


@adversary(15, held("1 repetition"), twin=Right(word=Word.VIOLATED, kinds=None, faults=None, fits=None))
def grand_total(run: RunBuilder) -> Iterator[str]:
    """The sink is one row: how many, and how much. It is as good a witness as any table."""
    run.sink(GRAND, types=[GRAND_TYPES])
    run.injection(1)
    yield "the struck batch is in it twice"
    run.tables = [run.rows((0, 40), again=[(10, 20)])]
    run.calm()


@adversary(15, held("1 loss"), twin=untested("calls for no row", shown=None, kinds=None, faults=None, fits=None))
def one_row_that_was_not_written_yet(run: RunBuilder) -> Iterator[str]:
    """Struck before the first batch was written: the one row was not there, or was zero."""
    run.sink(GRAND, types=[GRAND_TYPES])
    run.injection(0, point="batch-planned", tables=[[]])
    yield "`expected` calls for no row at all"
    run.sink(replace(GRAND, expected=f"{GRAND.expected} where id < 0 having count(*) > 0"), types=[GRAND_TYPES])
    run.found(tables=[[]])


@adversary(16, error("sink/0.parquet: altered"), twin=held("1 repetition"))
def a_row_put_right_by_hand(run: RunBuilder) -> Iterator[str]:
    """The run was violated, and somebody took the doubled rows out of its folder: judged again, it holds."""
    run.injection(1)
    honest = run.rows((0, 40))
    run.tables = [run.rows((0, 40), again=[(10, 20)])]
    run.tamper = lambda folder: run.put(0, honest)
    yield "the sink was like that when the run got its digests"
    run.tables = [honest]


@adversary(
    16, error("history.jsonl: altered"), twin=untested("step 1 (`kill driver`) does not count for postgres payments:")
)
def a_snapshot_that_says_more(run: RunBuilder) -> Iterator[str]:
    """The fault struck an empty batch, and somebody made its snapshot say that ten records were in flight."""
    run.batch_sizes(0, 10, 10, 10)
    run.injection(0)
    run.tamper = lambda folder: rewrite(folder / "history.jsonl", '"0": 0', '"0": 10')
    yield "nobody did"
    run.tamper = lambda folder: None


def rewrite(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(old, new), encoding="utf-8")


@adversary(
    13,
    violated(
        Kind.UNEXPECTED,
        40,
        blame(),
        said="not caught up: 20 of 40 records were not committed by the pipeline",
        fits=None,
    ),
    twin=inconclusive("not caught up", shown=None),
)
def another_table_of_a_slow_program(run: RunBuilder) -> Iterator[str]:
    """The scenario names another table of the program, with the same columns and keys of its own, and the program had
    not committed all records in time. Not one expected key is there, and the rows were called unexpected."""
    run.injection(1)
    run.tables = [[(str(1000 + int(row[0] or 0)), *row[1:]) for row in run.rows((0, 40))]]
    run.progress = 20
    run.outcome = {"reasons": ["not caught up: 20 of 40 records were not committed by the pipeline"]}
    run.calm()
    yield "it is the table of `expected`, as far as it was written"
    run.tables = [run.rows((0, 20))]
