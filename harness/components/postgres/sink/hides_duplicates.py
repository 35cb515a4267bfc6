"""Whether a query that is a sink shows a row of its tables that is there twice. It is tried, on copies that are rolled
back.

Each table that the query reads and the run has written is shadowed by a temporary table of the same name. The temporary
table has the same rows and no constraints. Rows of a copy are doubled, all of them and single ones, and the query runs
each time. A query that returns the same rows whatever is doubled in a table that matters to it folds equal rows. One
that shows some doubled rows and not others, though it needs them, folds a part: under it a repetition could not be
seen, or not every one. Rows that make no difference to it prove nothing. Views that it reads are created again over the
copies.

A row that is written again gets a new number, time or id where the database or the clock gives one. So doubles are
tried with those too: a query that shows the newest row of each key folds them. What the program itself writes
differently shows in the rows that the run has left. Some of these differ only in columns that the query does not show.
If all but one of them make no difference to the query, they are repetitions that it hides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import psycopg2
from psycopg2 import sql

from harness.components.postgres.sink import column_types
from harness.errors import one_line
from harness.fields import values as v
from harness.sinks.table import SinkTable
from harness.wait import Deadline

ROWS_MAX = 20_000
SINGLES = 25
EXAMPLE_MAX = 80
WITHIN_S = 20.0

_READS = """
with recursive reads(oid, depth) as (
    select %s::oid, 0
    union
    select d.refobjid, reads.depth + 1 from reads
    join pg_rewrite r on r.ev_class = reads.oid
    join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_class'::regclass
    where d.refobjid <> reads.oid and reads.depth < 20
)
select c.oid::bigint, c.relname, quote_ident(n.nspname) || '.' || quote_ident(c.relname), c.relkind::text,
    pg_table_is_visible(c.oid), case when c.relkind in ('v', 'm') then pg_get_viewdef(c.oid) else '' end
from (select oid, max(depth) as depth from reads where depth > 0 group by oid) as found
join pg_class c on c.oid = found.oid join pg_namespace n on n.oid = c.relnamespace
where n.nspname not in ('pg_catalog', 'information_schema') order by found.depth desc, c.oid
"""
_COLUMNS = """
select a.attname, format_type(a.atttypid, null),
    a.attidentity <> '' or coalesce(pg_get_expr(d.adbin, d.adrelid), '') like '%%nextval(%%',
    case when d.adbin::text like '%%SQLVALUEFUNCTION%%' or exists (
        select 1 from regexp_matches(d.adbin::text, ':funcid (\\d+)', 'g') as called
        join pg_proc p on p.oid = called[1]::oid join pg_language l on l.oid = p.prolang
        where p.provolatile <> 'i' and l.lanname in ('internal', 'c')
    ) then pg_get_expr(d.adbin, d.adrelid) end
from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
where a.attrelid = %s and a.attnum > 0 and not a.attisdropped order by a.attnum
"""
_MARK = "select count(*), coalesce(sum(hashtextextended(sink::text, 0)::numeric), 0) from {} as sink"
_REPEATED = """where ctid in (
    select at from (
        select ctid as at, count(*) over (partition by {0}) as many,
            row_number() over (partition by {0} order by ctid) as place from {1}
    ) as counted where {2}
)"""
_KIND = "select relkind::text from pg_class where oid = %s"
_ALL = sql.SQL("*")
TABLES, VIEWS = ("r", "p"), ("v", "m")


@dataclass(frozen=True, kw_only=True)
class Read:
    """A relation that the query reads. `name` is what it is called where its schema goes without saying, `full` with
    its schema, `definition` a view's query."""

    oid: int
    name: str
    full: str
    kind: str
    visible: bool
    definition: str


@dataclass(frozen=True, kw_only=True)
class Rewritten:
    """A row that is written again. `columns` are all of its table, `filled` those that the table fills in by itself,
    `new` all that change; `later` and `earlier` are the columns with values beyond all others, and before them."""

    columns: Sequence[str]
    filled: Sequence[str]
    new: Sequence[str]
    later: sql.Composable
    earlier: sql.Composable


class NotTried(Exception):
    """It cannot be tried: why."""


def now(dsn: str) -> int | None:
    """Return a transaction that is younger than all there were: what the run writes comes after it. None if the
    database does not answer."""
    try:
        with column_types.scratch(dsn) as cursor:
            cursor.execute("select txid_current()")
            return int(cursor.fetchone()[0])
    except psycopg2.Error:
        return None


def tried(dsn: str, target: str, table: SinkTable, *, after: int | None) -> SinkTable:
    """Return the same table with `folds` and `folding` filled in, if it is what a query shows. `after` is what `now`
    said before the pipeline started. Nothing is left of the trial in the database."""
    if table.unreadable:
        return table
    try:
        with column_types.scratch(dsn) as cursor:
            folds, words = _try(cursor, target, [column.name for column in table.columns], after)
    except NotTried as why:
        folds, words = None, str(why)
    except psycopg2.errors.InsufficientPrivilege as refusal:
        folds, words = None, f"there is no privilege to try it: {one_line(refusal)}"
    except psycopg2.errors.QueryCanceled:
        folds, words = None, f"it took longer than {WITHIN_S:g} s"
    except psycopg2.Error as failure:
        folds, words = None, f"Postgres said: {one_line(failure)}"
    return replace(table, folds=folds, folding=words)


def _try(cursor: Any, target: str, names: Sequence[str], after: int | None) -> tuple[bool | None, str]:
    """Return whether it folds and why; (None, "") for a plain table, which shows its rows as they are."""
    source, columns = _query(cursor, target), len(names)
    if source is None:
        return None, ""
    trial = _Trial(cursor, Deadline(WITHIN_S))
    view = column_types.as_view(cursor, source, columns=columns)
    written = [each for each in trial.reads(view) if each.kind in TABLES and trial.written(each, after)]
    if not written:
        raise NotTried("none of the tables that it is seen to read holds a row that the run wrote")
    shadow = trial.shadow(target, source, columns=columns, written=written)
    before = trial.mark(shadow)
    if before[0] == 0:
        raise NotTried("it shows no row of the copies")
    if trial.mark(shadow) != before:
        raise NotTried("its rows differ from one reading to the next")
    shown = [each.name for each in written if trial.shows(each, shadow, before)]
    # A table whose rows are all without effect here (an outer join that finds nothing) says nothing either way.
    blind = [e.name for e in written if e.name not in shown and trial.matters(e, shadow, before)]
    if blind:
        return True, f"a row of {', '.join(blind)} that is there twice does not show in it"
    for each in written:
        if each.name in shown and (example := trial.missed(each, shadow, before)):
            words = f"of {each.name} some rows that are there twice show in it and others do not"
            return True, f"{words}, such as {example}"
    if not shown:
        raise NotTried(f"no row of {', '.join(each.name for each in written)} makes any difference to it")
    for each in written:
        if words := _newer(trial, each, shadow, names):
            return True, words
    return False, f"a row of {', '.join(shown)} that is there twice shows in it"


def _newer(trial: _Trial, table: Read, shadow: sql.Identifier, names: Sequence[str]) -> str:
    """Return how the query hides a row of this table that comes again with other values in some columns; empty if it
    shows it. The query's rows are compared without the columns that the table fills in by itself."""
    row = trial.rewritten(table, names)
    view = trial.narrowed(shadow, [place for place, name in enumerate(names) if name not in row.filled])
    before = trial.mark(view)
    # A query that reads the clock hides one of the two, and not what comes again.
    if (
        row.new
        and (example := trial.missed(table, view, before, row.later))
        and trial.missed(table, view, before, row.earlier)
    ):
        words = f"of {table.name} a row that comes again with a new {' and '.join(row.new)}"
        return f"{words} does not show beside the first one, such as {example}"
    same = [name for name in row.columns if name in names and name not in row.filled]
    if example := trial.repeated(table, view, before, same):
        return (
            f"{table.name} holds rows twice, but for columns that it does not show, and it shows one, such as {example}"
        )
    return ""


def _query(cursor: Any, target: str) -> sql.Composable | None:
    """Return the query in brackets that a target is, or that a view by its name is; None for a table."""
    if v.is_query(target):
        return column_types.bracketed(target)
    oid = column_types.relation(cursor, target)
    cursor.execute(_KIND, (oid,))
    found = cursor.fetchone()
    return sql.SQL("(select * from {})").format(sql.SQL(target)) if found and found[0] in VIEWS else None


class _Trial:
    """What is asked of the copies. Everything that it changes for a question it takes back."""

    def __init__(self, cursor: Any, limit: Deadline) -> None:
        self._cursor = cursor
        self._limit = limit

    def ask(self, query: sql.Composable | str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query, while there is time."""
        if self._limit.over():
            raise NotTried(f"it took longer than {WITHIN_S:g} s")
        self._cursor.execute(f"set local statement_timeout = {int(self._limit.left_s() * 1000) + 1}")
        self._cursor.execute(query, values or None)
        return list(self._cursor.fetchall()) if self._cursor.description else []

    def reads(self, view: int) -> list[Read]:
        """Return every relation that a view reads, itself or through other views, the deepest first."""
        names = ("oid", "name", "full", "kind", "visible", "definition")
        return [Read(**dict(zip(names, row, strict=True))) for row in self.ask(_READS, view)]

    def written(self, table: Read, after: int | None) -> bool:
        """Return whether it holds a row that was written after that transaction."""
        age = sql.SQL("where age(xmin) < age(({} % 4294967296)::text::xid)").format(sql.Literal(after or 0))
        test = sql.SQL("") if after is None else age
        return bool(self.ask(sql.SQL("select 1 from {} {} limit 1").format(sql.SQL(table.full), test)))

    def shadow(self, target: str, source: sql.Composable, *, columns: int, written: Sequence[Read]) -> sql.Identifier:
        """Return the query as a view over copies of the tables. Raises NotTried if it does not read them."""
        views = [each for each in self.reads(self._oid(column_types.VIEW)) if each.kind in VIEWS]
        for each in (*written, *views):
            if not each.visible:
                raise NotTried(f"{each.full} is named with its schema")
        for each in written:
            copy = sql.SQL("create temporary table {} as select * from {} limit {}")
            self.ask(copy.format(sql.Identifier(each.name), sql.SQL(each.full), sql.Literal(ROWS_MAX)))
        for each in views:
            made = sql.SQL("create temporary view {} as {}")
            self.ask(made.format(sql.Identifier(each.name), sql.SQL(each.definition.rstrip().rstrip(";"))))
        name = f"{column_types.VIEW}_of_copies"
        left = {each.oid for each in self.reads(column_types.as_view(self._cursor, source, columns=columns, name=name))}
        named = [each.full for each in written if each.oid in left]
        if named:
            raise NotTried(f"{', '.join(named)} is named with its schema")
        return sql.Identifier("pg_temp", name)

    def mark(self, view: sql.Identifier) -> tuple[Any, ...]:
        """Return how many rows the query shows, and the sum of their hashes."""
        return self.ask(sql.SQL(_MARK).format(view))[0]

    def shows(self, table: Read, view: sql.Identifier, before: tuple[Any, ...]) -> bool:
        """Return whether the query's rows change when all rows of a table are doubled, or else single ones."""
        copy = sql.Identifier("pg_temp", table.name)
        if self._doubled(copy, sql.SQL(""), view) != before:
            return True
        return any(self._doubled(copy, _at(place), view) != before for place in self._some(copy))

    def matters(self, table: Read, view: sql.Identifier, before: tuple[Any, ...]) -> bool:
        """Return whether the query's rows change when a table is empty."""
        empty = sql.SQL("delete from {}").format(sql.Identifier("pg_temp", table.name))
        return self._after(empty, view) != before

    def rewritten(self, table: Read, shown: Sequence[str]) -> Rewritten:
        """Return a row of the table as it is written again. New are numbers of a sequence, what a default gives each
        time, and times that the query does not show."""
        copy, filled, new = sql.Identifier("pg_temp", table.name), list[str](), list[str]()
        later, earlier = list[sql.Composable](), list[sql.Composable]()
        columns = self.ask(_COLUMNS, table.oid)
        for name, type_, numbered, default in columns:
            column, timed = sql.Identifier(name), type_.startswith("timestamp")
            if numbered:
                made = "((select {2}({0}) from {1}) {3} row_number() over ())::{4}"
            elif timed and (default or name not in shown):
                made = "{0} {3} (select max({0}) - min({0}) from {1}) {3} interval '1 second'"
            else:
                made = "({5})::{4}" if default else "{0}"
            filled += [name] if numbered or default else []
            new += [name] if made != "{0}" else []
            for out, end, sign in ((later, "max", "+"), (earlier, "min", "-")):
                parts = [sql.SQL(end), sql.SQL(sign), sql.SQL(type_), sql.SQL(default or "")]
                out.append(sql.SQL(made).format(column, copy, *parts))
        join, names = sql.SQL(", ").join, [str(column[0]) for column in columns]
        return Rewritten(columns=names, filled=filled, new=new, later=join(later), earlier=join(earlier))

    def narrowed(self, view: sql.Identifier, places: Sequence[int]) -> sql.Identifier:
        """Return the view with these of its columns alone."""
        found = sql.Identifier("pg_temp", f"{column_types.VIEW}_narrowed")
        self.ask(sql.SQL("drop view if exists {}").format(found))
        columns = sql.SQL(", ").join(sql.Identifier(f"c{place}") for place in places)
        self.ask(sql.SQL("create view {} as select {} from {}").format(found, columns, view))
        return found

    def repeated(self, table: Read, view: sql.Identifier, before: tuple[Any, ...], names: Sequence[str]) -> str:
        """Return a row that the table holds several times, as far as these columns tell rows apart. The query shows one
        of them, and another in its place if that is gone. Empty if there is no such row."""
        if not names:
            return ""
        copy = sql.Identifier("pg_temp", table.name)
        same = sql.SQL(", ").join(sql.SQL("{}::text").format(sql.Identifier(name)) for name in names)

        def those(test: str) -> sql.Composable:
            return sql.SQL(_REPEATED).format(same, copy, sql.SQL(test))

        def without(test: str) -> tuple[Any, ...]:
            return self._after(sql.SQL("delete from {} {}").format(copy, those(test)), view)

        found = self.ask(sql.SQL("select ctid::text from {} {} limit 1").format(copy, those("many > 1")))
        if not found or without("many > 1") == before:
            return ""
        hidden = without("place < many") == before == without("place > 1")
        return self._words(copy, found[0][0]) if hidden else ""

    def missed(self, table: Read, view: sql.Identifier, before: tuple[Any, ...], columns: sql.Composable = _ALL) -> str:
        """Return a row that matters to the query and does not show when it is there twice, the second time with these
        columns; empty if none is found.

        A row may matter only together with others, as under a maximum: so where neighbours do not show one by one, all
        rows from the first to the last of them are tried at once."""
        copy = sql.Identifier("pg_temp", table.name)
        runs: list[list[str]] = [[]]
        for place in self._some(copy):
            if self._doubled(copy, _at(place), view, columns) != before:
                runs.append([])
            elif self._without(copy, _at(place), view) != before:
                return self._words(copy, place)
            else:
                runs[-1].append(place)
        for run in runs:
            if len(run) < 2:
                continue
            rows = sql.SQL("where ctid >= {}::tid and ctid <= {}::tid")
            test = rows.format(sql.Literal(run[0]), sql.Literal(run[-1]))
            if self._doubled(copy, test, view, columns) == before != self._without(copy, test, view):
                return f"those from {self._words(copy, run[0])} to {self._words(copy, run[-1])}"
        return ""

    def _doubled(
        self, copy: sql.Identifier, test: sql.Composable, view: sql.Identifier, columns: sql.Composable = _ALL
    ) -> tuple[Any, ...]:
        """Return the query's mark when some rows of a copy are there twice, with these columns."""
        return self._after(sql.SQL("insert into {0} select {2} from {0} {1}").format(copy, test, columns), view)

    def _without(self, copy: sql.Identifier, test: sql.Composable, view: sql.Identifier) -> tuple[Any, ...]:
        """Return the query's mark when some rows of a copy are gone, and those that equal them."""
        gone = "delete from {0} as each where each::text in (select each::text from {0} as each {1})"
        return self._after(sql.SQL(gone).format(copy, test), view)

    def _words(self, copy: sql.Identifier, place: str) -> str:
        """Return a row as a reader sees it."""
        ((text,),) = self.ask(sql.SQL("select each::text from {} as each {}").format(copy, _at(place)))
        return str(text) if len(text) <= EXAMPLE_MAX else f"{text[: EXAMPLE_MAX - 3]}..."

    def _some(self, copy: sql.Identifier) -> list[str]:
        """Return the places of rows spread over a copy, the first and the last among them."""
        spread = """
        select at from (
            select ctid::text as at, row_number() over (order by ctid) - 1 as place, count(*) over () as many from {}
        ) as placed
        where many <= {} or place = many - 1 or place % (many / ({} - 1)) = 0 and place / (many / ({} - 1)) < {} - 1
        """
        singles = sql.Literal(SINGLES)
        query = sql.SQL(spread).format(copy, *[singles] * 4)
        return [str(row[0]) for row in self.ask(query)]

    def _after(self, change: sql.Composable, view: sql.Identifier) -> tuple[Any, ...]:
        """Return the query's mark after a change, which is taken back."""
        self.ask("savepoint onceproof")
        self.ask(change)
        found = self.mark(view)
        self.ask("rollback to savepoint onceproof")
        return found

    def _oid(self, name: str) -> int:
        return column_types.relation(self._cursor, f"pg_temp.{name}")


def _at(place: str) -> sql.Composable:
    return sql.SQL("where ctid = {}::tid").format(sql.Literal(place))
