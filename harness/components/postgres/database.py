"""A server by its address: a database for each part that a run may have, schemas in it, the addresses of both.

Works on any Postgres that lets its user make a schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, urlencode

import psycopg2
from psycopg2 import sql

from harness.errors import StackError

OURS = "onceproof"
"""What the database of a server of our own is called."""
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
    """One server. The plain part of a run is a schema in `database`; another part (`second`) is in another database,
    which has its name. If the server has one database `alone`, all parts are schemas in that, with different names."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    database: str = OURS
    alone: bool = False

    def at(self, host: str, port: int) -> Databases:
        """Return the same server as others reach it."""
        return replace(self, host=host, port=port)

    def plain(self) -> str:
        """Return its address without the password."""
        return self._address(quote(self.user, safe=""), "")

    def whole(self) -> str:
        """Return its address with the password."""
        return self._address(self._who(), "")

    def dsn(self, part: str, schema: str) -> str:
        """Return a libpq address of a part whose search path is the run's schema there; holds the password."""
        options = quote(f"-c search_path={self.schema(part, schema)}", safe="")
        return f"{self._address(self._who(), part)}?options={options}"

    def jdbc(self, part: str, schema: str) -> str:
        """Return the same for JDBC; holds user and password."""
        options = urlencode(
            {"user": self.user, "password": self.password, "currentSchema": self.schema(part, schema)},
            quote_via=quote,
        )
        return f"jdbc:postgresql://{self.host}:{self.port}/{quote(self.called(part), safe='')}?{options}"

    def environment(self, schema: str) -> dict[str, str]:
        """libpq's own variables for the plain part."""
        return {
            "PGHOST": self.host,
            "PGPORT": str(self.port),
            "PGUSER": self.user,
            "PGPASSWORD": self.password,
            "PGDATABASE": self.database,
            "PGOPTIONS": f"-c search_path={schema}",
        }

    def called(self, part: str) -> str:
        """Return the database of a part."""
        return self.database if self.alone or not part else f"{self.database}_{part}"

    def schema(self, part: str, schema: str) -> str:
        """Return what a run's schema is called there."""
        return f"{schema}_{part}" if self.alone and part else schema

    def make(self, part: str) -> None:
        """Make the database of a part, if it is not there. Raises StackError."""
        if self._there(part):
            return
        try:
            self._execute("postgres", [sql.SQL("create database {}").format(sql.Identifier(self.called(part)))])
        except StackError:
            # Another command on the same server was faster.
            if not self._there(part):
                raise

    def _there(self, part: str) -> bool:
        try:
            return (
                self.ask("select count(*) from pg_database where datname = %s", self.called(part), of="postgres") != "0"
            )
        except psycopg2.Error as error:
            raise StackError(f"asked Postgres for its databases; it refused: {str(error).strip()}") from error

    def create_schema(self, part: str, schema: str) -> None:
        """Make a run's schema for a part. Raises StackError."""
        if not self.alone:
            self.make(part)
        own = sql.Identifier(self.schema(part, schema))
        self._execute(self.called(part), [sql.SQL("create schema {}").format(own)])

    def drop_schema(self, part: str, schema: str) -> None:
        """Drop it, whatever connection or prepared transaction still holds it. Raises StackError."""
        if not self.alone and not self._there(part):
            return
        own = self.schema(part, schema)
        drop = sql.SQL("drop schema if exists {} cascade").format(sql.Identifier(own))
        self._execute(self.called(part), [drop], unhand=own)

    def version(self) -> str:
        """Return the server's, e.g. `18.6`. Raises StackError if it does not answer."""
        try:
            return self.ask("show server_version")
        except psycopg2.Error as error:
            place = f"{self.host}:{self.port}"
            raise StackError(f"asked for Postgres at {place}; it refused: {str(error).strip()}") from error

    def ask(self, query: str, *values: object, of: str = "") -> str:
        """Return one value, as text; `of` names a database, by default that of the plain part. Raises
        psycopg2.Error."""
        with closing(self._connect(of or self.database)) as connection, connection.cursor() as cursor:
            cursor.execute(query, values or None)
            (answer,) = cursor.fetchone() or ("",)
            return str(answer)

    def _who(self) -> str:
        return f"{quote(self.user, safe='')}:{quote(self.password, safe='')}"

    def _address(self, who: str, part: str) -> str:
        return f"postgresql://{who}@{self.host}:{self.port}/{quote(self.called(part), safe='')}"

    def _execute(self, name: str, statements: Sequence[sql.Composed], unhand: str | None = None) -> None:
        """Run each statement by itself; first free the schema `unhand` from all that hold locks in it."""
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
