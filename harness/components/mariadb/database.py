"""A server by its address: how it is asked, and the databases of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

import pymysql
from pymysql.constants import CLIENT

from harness.errors import StackError

ANSWER_S = 5
LOCK_S = 10
OURS = "onceproof"
"""How the names of our own connections begin."""
HOLDERS = """
select distinct t.processlist_id from performance_schema.metadata_locks m
join performance_schema.threads t on t.thread_id = m.owner_thread_id
where m.object_schema = %s and t.processlist_id <> connection_id()
"""
UNKNOWN_THREAD = 1094


@dataclass(frozen=True)
class Server:
    """One server, and who asks."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)

    def connect(self, database: str | None = None, *, name: str = OURS) -> Any:
        """Return a connection that commits each statement, as UTC. Raises pymysql.Error."""
        return pymysql.connect(
            host=self.host, port=self.port, user=self.user, password=self.password, database=database,
            connect_timeout=ANSWER_S, autocommit=True, program_name=name, charset="utf8mb4",
            client_flag=CLIENT.MULTI_STATEMENTS, init_command="set time_zone = '+00:00'",
        )  # fmt: skip

    def dsn(self, database: str) -> str:
        """`mysql://user:password@host:port/database`."""
        who = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}"
        return f"mysql://{who}@{self.host}:{self.port}/{quote(database, safe='')}"

    def jdbc(self, database: str) -> str:
        """For MariaDB's driver; holds user and password."""
        options = urlencode({"user": self.user, "password": self.password}, quote_via=quote)
        return f"jdbc:mariadb://{self.host}:{self.port}/{quote(database, safe='')}?{options}"

    def environment(self, database: str) -> dict[str, str]:
        """Return variables for the plain part; MySQL's client knows only some of them."""
        return {
            "MYSQL_HOST": self.host,
            "MYSQL_TCP_PORT": str(self.port),
            "MYSQL_USER": self.user,
            "MYSQL_PWD": self.password,
            "MYSQL_DATABASE": database,
        }

    def ask(self, query: str, *values: object) -> str:
        """Return one value, as text. Raises pymysql.Error."""
        with closing(self.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(query, values or None)
            (answer,) = cursor.fetchone() or ("",)
            return str(answer)

    def version(self) -> str:
        """Return the server's, e.g. `10.11.5-MariaDB`. Raises StackError if it does not answer."""
        try:
            return self.ask("select version()")
        except pymysql.Error as error:
            place = f"{self.host}:{self.port}"
            raise StackError(f"asked for MariaDB at {place}; it refused: {words(error)}") from error

    def make(self, database: str) -> None:
        """Make a database. Raises StackError."""
        self._execute([f"create database {quoted(database)} character set utf8mb4 collate utf8mb4_bin"])

    def drop(self, database: str) -> None:
        """Drop it, also while it is in use. Raises StackError."""
        self._execute([f"drop database if exists {quoted(database)}"], unhand=database)

    def _execute(self, statements: Sequence[str], unhand: str | None = None) -> None:
        """Run each statement; first end the connections that hold a lock in the database `unhand`."""
        try:
            with closing(self.connect()) as connection, connection.cursor() as cursor:
                cursor.execute(f"set lock_wait_timeout = {LOCK_S}")
                if unhand is not None:
                    cursor.execute(HOLDERS, (unhand,))
                    for (number,) in cursor.fetchall():
                        _end(cursor, int(number))
                for statement in statements:
                    cursor.execute(statement)
        except pymysql.Error as error:
            raise StackError(f"MariaDB refused: {words(error)}") from error


def _end(cursor: Any, connection: int) -> None:
    try:
        cursor.execute(f"kill connection {connection}")
    except pymysql.Error as error:
        # It has ended by itself.
        if error.args[0] != UNKNOWN_THREAD:
            raise


def quoted(name: str) -> str:
    """Return a name as the server takes it in a statement."""
    return "`" + name.replace("`", "``") + "`"


def words(failure: BaseException) -> str:
    """Return what the server said, without its number."""
    text = failure.args[1] if len(failure.args) > 1 else failure
    return " ".join(str(text).split()) or type(failure).__name__
