"""What the columns of a sink keep, modifiers and all: `numeric(12,2)`, `timestamp(0) without time zone`.

The server tells a client the type of a result's columns, and not every modifier. A table has them in the catalogue; a
query has them there once it is a view, which is made in a separate transaction that is rolled back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg2
from psycopg2 import sql

from harness.components.postgres.run_schema import connected

VIEW = "onceproof_view"
STATEMENT_MS = 20_000

_SHAPE = """
with recursive base(place, oid, modifier) as (
    select attnum, atttypid, atttypmod from pg_attribute
    where attrelid = %s and attnum > 0 and not attisdropped
    union all
    select base.place, t.typbasetype, t.typtypmod from base join pg_type t on t.oid = base.oid where t.typtype = 'd'
)
select base.oid, format_type(base.oid, nullif(base.modifier, -1))
from base join pg_type t on t.oid = base.oid where t.typtype <> 'd' order by base.place
"""

Shape = list[tuple[int, str]]
"""Of each column the type that a domain stands for, by oid and in words."""


@contextmanager
def scratch(dsn: str, *, statement_ms: int = STATEMENT_MS) -> Iterator[Any]:
    """A cursor whose transaction is rolled back, whatever was done in it. Raises psycopg2.Error."""
    with closing(connected(dsn, "onceproof sink")) as connection:
        with connection.cursor() as cursor:
            cursor.execute(f"set local statement_timeout = {statement_ms}")
            yield cursor
        connection.rollback()


def of_relation(cursor: Any, oid: int) -> Shape:
    """Return the columns of a table or view."""
    cursor.execute(_SHAPE, (oid,))
    return [(int(type_), str(words)) for type_, words in cursor.fetchall()]


def of_query(dsn: str, source: sql.Composable, *, columns: int) -> Shape:
    """Return the columns of a query in brackets; none if it cannot be made a view (no privilege, no view's query)."""
    try:
        with scratch(dsn) as cursor:
            return of_relation(cursor, as_view(cursor, source, columns=columns))
    except psycopg2.Error:
        return []


def bracketed(query: str) -> sql.Composable:
    """Return a query in brackets."""
    # The line break ends a comment that would otherwise eat the bracket.
    return sql.SQL("(") + sql.SQL(query.rstrip().rstrip(";")) + sql.SQL("\n)")


def as_view(cursor: Any, source: sql.Composable, *, columns: int, name: str = VIEW) -> int:
    """Make the query in brackets a temporary view; its oid. Raises psycopg2.Error."""
    # Columns are named by place: a query may give two columns one name.
    places = sql.SQL(", ").join(sql.Identifier(f"c{place}") for place in range(columns))
    made = sql.SQL("create temporary view {}({}) as select * from {} as sink")
    execute(cursor, made.format(sql.Identifier(name), places, source))
    return relation(cursor, sql.Identifier("pg_temp", name).as_string(cursor))


def relation(cursor: Any, name: str) -> int:
    """Return the oid of a relation by its SQL name; 0 if there is none."""
    cursor.execute("select coalesce(to_regclass(%s)::oid::bigint, 0)", (name,))
    return int(cursor.fetchone()[0])


def execute(cursor: Any, statement: sql.Composable) -> None:
    """Run a statement that holds a user's SQL where it can neither commit nor roll back. Raises psycopg2.Error."""
    body = sql.SQL("begin execute {}; end").format(sql.Literal(statement.as_string(cursor))).as_string(cursor)
    cursor.execute(sql.SQL("do {}").format(sql.Literal(body)))
