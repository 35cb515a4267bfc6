"""The databases of a stack, by their address: a schema for each run, and the addresses that a pipeline is given.

Works on any Postgres that lets its user make a schema, whoever started it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, urlencode

import psycopg2
from psycopg2 import sql

from harness.errors import StackError

NAMES = {"main": "onceproof", "second": "onceproof_second"}
"""What the databases of a server of our own are called."""
ANSWER_S = 5
LOCK_S = 10
UNHAND = """
select pg_terminate_backend(l.pid) from pg_locks l join pg_class c on c.oid = l.relation
join pg_namespace n on n.oid = c.relnamespace where n.nspname = %s and l.pid <> pg_backend_pid()
"""
PREPARED = """
select distinct p.gid from pg_prepared_xacts p
join pg_locks own on own.locktype = 'transactionid' and own.transactionid = p.transaction and own.pid is null
join pg_locks l on l.virtualtransaction = own.virtualtransaction and l.pid is null
join pg_class c on c.oid = l.relation join pg_namespace n on n.oid = c.relnamespace
where p.database = current_database() and n.nspname = %s
"""


@dataclass(frozen=True)
class Databases:
    """One server. `names` go from `main` and `second` to what the databases are called there, `suffixes` to what a
    run's schema is called with there: where both are one database, its schemas still differ."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    names: Mapping[str, str] = field(default_factory=lambda: dict(NAMES))
    suffixes: Mapping[str, str] = field(default_factory=dict)

    def at(self, host: str, port: int) -> Databases:
        """The same server as others reach it."""
        return replace(self, host=host, port=port)

    def plain(self) -> str:
        """The address of `main` without its password."""
        return f"postgresql://{quote(self.user, safe='')}@{self.host}:{self.port}/{quote(self.names['main'], safe='')}"

    def dsn(self, database: str, schema: str) -> str:
        """A libpq address of `main` or `second` whose search path is `schema`; holds the password."""
        options = quote(f"-c search_path={self._schema(database, schema)}", safe="")
        who = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}"
        return f"postgresql://{who}@{self.host}:{self.port}/{quote(self.names[database], safe='')}?options={options}"

    def jdbc(self, database: str, schema: str) -> str:
        """The same for JDBC; holds user and password."""
        asked = urlencode(
            {"user": self.user, "password": self.password, "currentSchema": self._schema(database, schema)},
            quote_via=quote,
        )
        return f"jdbc:postgresql://{self.host}:{self.port}/{quote(self.names[database], safe='')}?{asked}"

    def environment(self, schema: str) -> dict[str, str]:
        """libpq's own variables for the database `main`."""
        return {
            "PGHOST": self.host,
            "PGPORT": str(self.port),
            "PGUSER": self.user,
            "PGPASSWORD": self.password,
            "PGDATABASE": self.names["main"],
            "PGOPTIONS": f"-c search_path={schema}",
        }

    def make(self) -> None:
        """Make the databases themselves, on a server that has none of them. Raises StackError."""
        for name in self.names.values():
            self._execute("postgres", [sql.SQL("create database {}").format(sql.Identifier(name))])

    def create_schema(self, schema: str) -> None:
        """Make a schema in every database. Raises StackError."""
        for database, name in self.names.items():
            own = sql.Identifier(self._schema(database, schema))
            self._execute(name, [sql.SQL("create schema {}").format(own)])

    def drop_schema(self, schema: str) -> None:
        """Drop it from every database, whatever connection or prepared transaction still holds it."""
        for database, name in self.names.items():
            own = self._schema(database, schema)
            drop = sql.SQL("drop schema if exists {} cascade").format(sql.Identifier(own))
            self._execute(name, [drop], unhand=own)

    def _schema(self, database: str, schema: str) -> str:
        return schema + self.suffixes.get(database, "")

    def ask(self, query: str, *, of: str = "postgres") -> str:
        """One value, as text. Raises psycopg2.Error."""
        with closing(self._connect(of)) as connection, connection.cursor() as cursor:
            cursor.execute(query)
            (answer,) = cursor.fetchone() or ("",)
            return str(answer)

    def _execute(self, name: str, statements: Sequence[sql.Composed], unhand: str | None = None) -> None:
        """Run each statement by itself; first free the schema `unhand` from whoever holds locks in it."""
        try:
            with closing(self._connect(name)) as connection, connection.cursor() as cursor:
                cursor.execute(f"set lock_timeout = '{LOCK_S}s'")
                if unhand is not None:
                    cursor.execute(UNHAND, (unhand,))
                    cursor.execute(PREPARED, (unhand,))
                    for (gid,) in cursor.fetchall():
                        cursor.execute("rollback prepared %s", (gid,))
                for statement in statements:
                    cursor.execute(statement)
        except psycopg2.Error as error:
            raise StackError(f"Postgres refused in database {name}: {str(error).strip()}") from error

    def _connect(self, name: str) -> Any:
        connection = psycopg2.connect(
            host=self.host, port=self.port, user=self.user, password=self.password, dbname=name,
            connect_timeout=ANSWER_S, application_name="onceproof",
        )  # fmt: skip
        connection.autocommit = True
        return connection
