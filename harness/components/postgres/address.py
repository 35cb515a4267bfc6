"""Postgres that is there already, at an address."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import psycopg2
from psycopg2.extensions import parse_dsn

from harness.components.postgres.database import Databases
from harness.components.postgres.run_schema import Provides
from harness.errors import UsageError
from harness.hosts.ports import HOST

POSTGRES, PORTS = 5432, 1 << 16


class PostgresThere(Provides):
    """A server that is there. `alone`: of the user, where all parts of a run are schemas in its one database; else
    of another process of ours, and every statement there is a pipeline's."""

    def __init__(self, address: str, *, alone: bool = True) -> None:
        self.shared = alone
        self.databases = self.inside = replace(databases(address), alone=alone)
        self.plain = self.databases.plain()

    @property
    def address(self) -> str:
        """With the password, wherever it came from."""
        return self.databases.whole()

    def describe(self) -> Mapping[str, Any]:
        """Return where it is, and its version."""
        return {"at": f"{self.databases.host}:{self.databases.port}", "version": self.databases.version()}

    def close(self) -> None:
        """Nothing is held."""


def databases(dsn: str) -> Databases:
    """Return the server of a libpq address. All parts of a run are schemas in its one database: we make none there.
    Raises UsageError."""
    try:
        parts = parse_dsn(dsn)
    except psycopg2.ProgrammingError:
        # libpq's own words quote what it was given, with the password.
        raise UsageError(
            "--at postgres=… must be a libpq address, as postgresql://user:password@host/database; "
            "what was given is none"
        ) from None
    unknown = sorted(set(parts) - {"host", "port", "user", "password", "dbname"})
    if unknown:
        raise UsageError(
            f"--at postgres=… must be host, port, user, password and database alone; it has {', '.join(unknown)}"
        )
    host, port = parts.get("host", "127.0.0.1"), parts.get("port", str(POSTGRES))
    if not port.isdigit() or not 0 < int(port) < PORTS or not HOST.fullmatch(host):
        # Not echoed: where a password holds a slash, what looks like a host is a part of it.
        raise UsageError(
            "--at postgres=… must be one TCP address, postgresql://user:password@host:port/database; "
            "what was given has no such host and port. Write / @ : and % of a password as %2F %40 %3A %25, "
            "or give it in PGPASSWORD"
        )
    name = parts.get("dbname") or parts.get("user") or "postgres"
    return Databases(
        host,
        int(port),
        parts.get("user", "postgres"),
        parts.get("password", os.environ.get("PGPASSWORD", "")),
        database=name,
        alone=True,
    )
