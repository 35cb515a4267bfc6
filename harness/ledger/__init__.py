"""What the sink holds if every record took effect once: SQL over the view `ledger`, in DuckDB.

The view has the workload's columns, then `_partition`, `_offset`, `_timestamp_ms`, `_batch` (NULL if unknown),
`value` and `key`. The SQL is the user's: it runs in memory without files, network, extensions or settings to change,
in UTC, and is stopped after `SECONDS_MAX`. Results leave DuckDB as text, so no value goes through a float.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TypeVar

import duckdb

from harness.checkers.cells import Row, canonical_rows
from harness.checkers.closed_windows import Timed
from harness.checkers.offset_ranges import REVERSED, Cut, OffsetRange, OffsetRanges
from harness.checkers.schema_check import Column
from harness.errors import HarnessError, UsageError
from harness.ledger import syntax
from harness.ledger.families import FAMILY_OF, as_text, family_of
from harness.ledger.functions import known
from harness.ledger.records import HIDDEN
from harness.ledger.records import OWN_COLUMNS as OWN_COLUMNS
from harness.ledger.records import Source as Source
from harness.run_folder.database import connection
from harness.scenario.watermark import Watermark

SECONDS_MAX = 300.0
GIVE_UP_S = 0.05
WHOLE = Cut()
Answer = TypeVar("Answer")
Shape = tuple[tuple[str, ...], tuple[str, ...]]
"""Names and types of columns."""
FETCH_ROWS = 50_000
ONE_TIME = "Say one time of each record"

REFUSALS = (duckdb.Error, ValueError, RuntimeError)
"""What DuckDB raises of SQL that it does not like; the last for text that is no Unicode."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Canonical rows and the columns' names, engine types and families."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    families: tuple[str, ...]
    rows: list[Row] = field(repr=False)

    @property
    def described(self) -> list[Column]:
        """The columns one by one."""
        return [Column(*each) for each in zip(self.columns, self.types, self.families, strict=True)]


class Ledger:
    """A connection to a closed DuckDB, with one run's ledger as temporary tables. Use it in a `with`; one thread at a
    time."""

    def __init__(self, source: Source, *, where: str) -> None:
        """`where` names the scenario in errors. Raises HarnessError if the ledger cannot be read, UsageError if a
        column of the workload does not fit the records."""
        self._where = where
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="onceproof-ledger")
        self._db = connection()
        self._view = ""
        self._shapes: dict[str, Shape] = {}
        try:
            self._fill(source)
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._close()

    def _close(self) -> None:
        self._thread.shutdown()
        self._db.close()

    def table(self, sql: str, *, committed: bool = False, batch: int | None = None, cut: Cut = WHOLE) -> Table:
        """`expected` over all records, or only those committed by the pipeline, of one batch, or of a cut.

        Raises UsageError with DuckDB's words if the SQL is wrong."""
        self._narrow(committed=committed, batch=batch, cut=cut)
        names, types = self.shape(sql)
        families = tuple(self._family(name, type_) for name, type_ in zip(names, types, strict=True))
        cells = [as_text(f"c{position}", family) for position, family in enumerate(families)]
        shape = ", ".join(f"c{position}" for position in range(len(names)))

        def rows() -> list[Row]:
            result = self._db.execute(f"select {', '.join(cells)} from ({self._bare(sql)}) as expected({shape})")
            out: list[Row] = []
            while part := result.fetchmany(FETCH_ROWS):
                out += canonical_rows(part, families)
            return out

        return Table(columns=names, types=types, families=families, rows=self._run(sql, rows))

    def shape(self, sql: str) -> Shape:
        """Return names and types of the columns of `expected`. Raises UsageError if it is not one query, or wrong."""
        # DuckDB is asked once: they depend on no record, and `ledger` has the same columns throughout.
        if sql not in self._shapes:
            self._shapes[sql] = self._described(sql)
        return self._shapes[sql]

    def _described(self, sql: str) -> Shape:

        def columns() -> tuple[list[str], list[Any]]:
            if why := self._unsteady(self._tree(sql)):
                raise UsageError(f"`expected` of {self._where} {why}")
            query = self._bare(sql)
            described = self._db.execute(f"describe {query}").fetchall()
            # `describe` calls `id as "ID"` id.
            return self._db.sql(query).columns, described

        names, described = self._run(sql, columns)
        return tuple(names), tuple(str(row[1]) for row in described)

    def aggregates(self, sql: str) -> bool:
        """Return whether `expected` folds several records into one row: grouping, aggregate function, DISTINCT, or a
        window."""
        return syntax.folded(self._tree(sql), known().aggregates)

    def plain(self, sql: str) -> bool:
        """Return whether each record by itself gives its rows, whatever the others are. Then more records only add
        rows."""
        return syntax.plain(self._tree(sql), known().aggregates)

    def keyed(self, sql: str, key: Collection[str]) -> bool:
        """Return whether a key is there if any of its records is, whatever the others are. No `key` means all
        columns."""
        return syntax.keyed(self._tree(sql), self.shape(sql)[0], key, known().aggregates, self.columns())

    def distinct(self, sql: str) -> bool:
        """Return whether each row is what one record gives by itself, there once by DISTINCT alone."""
        return syntax.distinct(self._tree(sql), known().aggregates)

    def growing(self, sql: str) -> dict[int, bool]:
        """Return the places of the columns that are counts or sums; true for a count, to which no record gives less
        than nothing."""
        return syntax.growing(self._tree(sql))

    def summed(self, sql: str) -> tuple[int, ...]:
        """Return the places of the columns that are a sum or an average of numbers, and nothing else."""
        return syntax.summed(self._tree(sql))

    def unrounded(self, sql: str) -> frozenset[int]:
        """Return the places of the columns that no order of the records rounds: nothing is added up for them."""
        return syntax.unrounded(self._tree(sql), known().aggregates, self.columns())

    def extreme(self, sql: str, function: str) -> Table:
        """`expected` with the least or the greatest number (`min`, `max`) that went into each sum or average in
        its place."""
        return self.table(self._query(json.dumps(syntax.instead(self._tree(sql), function))))

    def batches(self) -> tuple[int, ...]:
        """Return the batches that took records, in order."""
        query = "select distinct _batch from records where _batch is not null order by 1"
        return tuple(int(row[0]) for row in self._db.execute(query).fetchall())

    def unplaced(self, sql: str) -> int:
        """Return how many records that are committed are in no batch that is known, if a query asks for `_batch`."""
        if "_batch" not in self.names(sql):
            return 0
        query = "select count(*) from records where _committed and _batch is null"
        ((found,),) = self._db.execute(query).fetchall()
        return int(found)

    def ranges(self) -> list[tuple[int, OffsetRanges]]:
        """Return the batches that took records, in order, and what each took."""
        query = 'select batch, partition, start, "end" from ranges order by all'
        out: dict[int, list[OffsetRange]] = {}
        for batch, *offset_range in self._db.execute(query).fetchall():
            out.setdefault(int(batch), []).append(OffsetRange(*map(int, offset_range)))
        return [(batch, tuple(ranges)) for batch, ranges in out.items()]

    def origins(self, names: Sequence[str]) -> Iterator[tuple[Row, int, int, int | None]]:
        """Yield each record's cells of the ledger's columns `names`, its partition, offset and batch."""
        self._narrow(committed=False, batch=None)
        kinds = {str(row[0]): str(row[1]) for row in self._db.execute("describe ledger").fetchall()}
        families = [self._family(name, kinds[name]) for name in names]
        named = ", ".join(_quoted(name) for name in names)
        cells = ", ".join(as_text(f"c{place}", family) for place, family in enumerate(families))
        shape = ", ".join(f"c{place}" for place in range(len(names)))
        inner = f"select {named}, _partition, _offset, _batch from ledger"
        query = f"select {cells}, p, o, b from ({inner}) as origin({shape}, p, o, b)"
        result = self._db.execute(query)
        while part := result.fetchmany(FETCH_ROWS):
            keys = canonical_rows([row[:-3] for row in part], families)
            yield from ((key, *row[-3:]) for key, row in zip(keys, part, strict=True))

    def timed(self, watermark: Watermark) -> list[Timed]:
        """Return each record with its time and the end of its window. Raises UsageError if one of the two is no
        time."""
        for name, expression in (("of", watermark.of), ("closes", watermark.closes)):
            if why := self.no_time(expression):
                raise UsageError(f"`{name}` in the watermark of {self._where} {why}")
        times = ", ".join(f"epoch_us(cast(({each}\n) as timestamp))" for each in (watermark.of, watermark.closes))
        sql = f"select _partition, _offset, _batch, {times} from ledger"
        self._narrow(committed=False, batch=None)
        found = self._run(sql, lambda: list(map(Timed._make, self._db.execute(sql).fetchall())))
        if len(found) != (size := self.size()):
            words = f"give {len(found)} rows for {size} records. {ONE_TIME}"
            raise UsageError(f"`of` and `closes` in the watermark of {self._where} {words}")
        return found

    def no_time(self, expression: str) -> str:
        """Return why an expression is no time of a record of `ledger`, in one line; empty if it is one."""
        sql = f"describe select _partition, ({expression}\n) from ledger"
        try:
            tree = self._parsed(f"select ({expression}\n) from ledger")
            kinds = [str(row[1]) for row in self._bounded(lambda: self._db.execute(sql).fetchall())]
        except REFUSALS as failure:
            return f"is no expression that DuckDB can run: {' '.join(_words(failure).split())}"
        family = FAMILY_OF.get(kinds[1]) if len(kinds) == 2 else None
        if family not in ("timestamp", "instant", "date"):
            return f"is no time, but {', '.join(kinds[1:])}"
        if call := syntax.several(tree, known().several):
            return f"asks {call}, which gives a record several rows. {ONE_TIME}"
        return self._unsteady(tree) or self._not_one(expression)

    def _unsteady(self, tree: Any) -> str:
        call = syntax.unsteady(tree, self.columns(), known().unsteady)
        why = "is not made of its arguments" if call in known().tables else "answers otherwise each time"
        return f"asks {call}, which {why}. It may depend on the records alone" if call else ""

    def _not_one(self, expression: str) -> str:
        """Return why an expression does not give one row for the first record, or one of NULLs where there is none."""
        first = "select ledger.* from (values (1)) as one left join ledger on true limit 1"
        sql = f"select count(*) from (select ({expression}\n) from ({first}) as ledger)"
        try:
            ((count,),) = self._bounded(lambda: self._db.execute(sql).fetchall())
        except REFUSALS:
            # It may ask of a record what one of NULLs is not.
            return ""
        return "" if count == 1 else f"gives {count} rows for one record. {ONE_TIME}"

    def names(self, sql: str) -> set[str]:
        """Return the columns that `expected` asks for, in small letters. Raises UsageError if it is not one query."""
        return syntax.named(self._tree(sql))

    def lacks(self, sql: str, flags: Collection[str]) -> bool:
        """Return whether `expected` is wrong over this ledger, even with `flags`. By a pattern or a join, it may ask
        for columns that it does not name."""
        given = "".join(f", false as {_quoted(each)}" for each in flags)
        query = f"describe with ledger as (select *{given} from temp.ledger) select * from ({self._bare(sql)})"
        try:
            self._bounded(lambda: self._db.execute(query).fetchall())
        except REFUSALS:
            return True
        return False

    def columns(self) -> tuple[str, ...]:
        """Return the columns of `ledger`."""
        return tuple(row[0] for row in self._db.execute("describe ledger").fetchall())

    def size(self, *, committed: bool = False, cut: Cut = WHOLE) -> int:
        """Return how many records there are."""
        self._narrow(committed=committed, batch=None, cut=cut)
        row = self._db.execute("select count(*) from ledger").fetchone()
        return int(row[0]) if row else 0

    def _tree(self, sql: str) -> Any:
        try:
            return self._parsed(sql)
        except ValueError as wrong:
            raise self._wrong(sql, str(wrong)) from None

    def _parsed(self, sql: str) -> Any:
        """Return the syntax tree of one query. Raises ValueError for what is none."""
        text = self._db.execute("select json_serialize_sql(?::varchar)", [sql]).fetchall()[0][0]
        try:
            tree = json.loads(text)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        if tree["error"]:
            raise ValueError(tree["error_message"])
        if len(tree["statements"]) != 1:
            raise ValueError(f"it holds {len(tree['statements'])} statements, not one query")
        return tree

    def _bare(self, sql: str) -> str:
        """Return the query without the semicolon that ends it, and safe against a comment that would eat what
        follows."""
        text = self._query(json.dumps(self._tree(sql))) if re.search(r";\s*(--|/\*)", sql) else sql
        return re.sub(r";\s*$", "", text.strip()) + "\n"

    def _query(self, tree: str) -> str:
        """Return the SQL of a tree."""
        return str(self._db.execute("select json_deserialize_sql(?::json)", [tree]).fetchall()[0][0])

    def _narrow(self, *, committed: bool, batch: int | None, cut: Cut = WHOLE) -> None:
        tests = [*(["_committed"] if committed else []), *([f"_batch = {int(batch)}"] if batch is not None else [])]
        tests += [_inside(cut.only)] if cut.only is not None else []
        tests += [f"not {_inside(cut.without)}"] if cut.without else []
        kept = " and ".join(tests) or "true"
        source = self._shuffled(cut.order) if cut.order else "records"
        rows = f"select * exclude ({', '.join(HIDDEN)}) from {source} where {kept}"
        more = [f"{rows} and {_inside(ranges)}" for ranges in cut.again]
        view = " union all ".join([rows, *more])
        if view != self._view:
            self._db.execute(f"create or replace temp view ledger as {view}")
            self._view = view

    def _shuffled(self, order: int) -> str:
        """Return the name of a table of the same records in another order."""
        name, by = f"shuffled_{int(order)}", f"hash(__partition, __offset, {order}), __partition, __offset"
        if order == REVERSED:
            name, by = "reversed", "rowid desc"
        self._db.execute(f"create temp table if not exists {name} as select * from records order by {by}")
        return name

    def _fill(self, source: Source) -> None:
        tables = source.tables()
        for name, table in tables.items():
            self._db.register(name, table)
        taken = {name.lower() for name, _, _ in source.columns}
        request = f"asked the records of {self._where} for the columns {', '.join(n for n, _, _ in source.columns)}"
        if hidden := sorted(taken & source.reserved):
            raise UsageError(f"{request}; {', '.join(hidden)} would hide where a record lies. Call them something else")
        own = [f"cast(({expression}) as {type_}) as {_quoted(name)}" for name, type_, expression in source.columns]
        rest = [name for name in source.own if name not in taken]
        records = source.query([*own, *rest, *HIDDEN])
        try:
            self._bounded(lambda: self._db.execute(records))
        except REFUSALS as failure:
            raise UsageError(f"{request}; DuckDB said: {_words(failure)}. Mend the workload's columns") from failure
        self._narrow(committed=False, batch=None)
        if (size := self.size()) != (records_read := tables["source"].num_rows):
            raise HarnessError(f"the view of {self._where} has {size} records, its source {records_read}")

    def _family(self, name: str, type_: str) -> str:
        family = family_of(type_)
        if family is None:
            raise UsageError(
                f"`expected` of {self._where} has a column {name} of type {type_}, which cannot be compared exactly. "
                "Cast it to a plain type, in `expected` and in the sink's query alike"
            )
        return family

    def _wrong(self, sql: str, words: str) -> UsageError:
        there = ", ".join(self.columns())
        return UsageError(
            f"`expected` of {self._where} is no query that DuckDB can run: {' '.join(words.split())}\n"
            f"  expected: {' '.join(sql.split())}\n  columns of `ledger`: {there}"
        )

    def _run(self, sql: str, work: Callable[[], Answer]) -> Answer:
        """Run a user's SQL: bounded, every refusal in words."""
        try:
            return self._bounded(work)
        except duckdb.InterruptException as failure:
            raise self._wrong(sql, f"it ran longer than {SECONDS_MAX:g} s") from failure
        except duckdb.FatalException as failure:
            raise HarnessError(f"DuckDB failed for good, not for this `expected` alone: {_words(failure)}") from failure
        except REFUSALS as failure:
            raise self._wrong(sql, _words(failure)) from failure

    def _bounded(self, work: Callable[[], Answer]) -> Answer:
        """Do it in a separate thread, since a signal waits for the thread that is in DuckDB. Interrupt it when the time
        is up."""
        future = self._thread.submit(work)
        try:
            wait([future], timeout=SECONDS_MAX)
        finally:
            self._end(future)
        return future.result()

    def _end(self, future: Future[Any]) -> None:
        """Interrupt a query that still runs: the connection is for one thread at a time."""
        while not future.done():
            self._db.interrupt()
            wait([future], timeout=GIVE_UP_S)


def _inside(ranges: OffsetRanges) -> str:
    """Return a SQL condition that is true for the records in one of the offset ranges."""
    tests = [
        f"(__partition = {int(p)} and __offset >= {int(start)} and __offset < {int(end)})" for p, start, end in ranges
    ]
    return f"({' or '.join(tests)})" if tests else "false"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _words(failure: Exception) -> str:
    # Of `+` there are forty candidates.
    return re.split(r"\n\nLINE|\s*Candidate functions:", str(failure))[0].strip()
