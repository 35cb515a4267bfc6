"""A run's own objects: those whose keys begin with the prefix of one of its parts."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.components.s3.server import Entry, Refused, Server
from harness.errors import StackError
from harness.machine import jars
from harness.resources import Resources, labelled

CHECKPOINT = "checkpoint"
PROVIDER = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"


@dataclass(frozen=True, kw_only=True)
class Room:
    """How the harness finds them: `prefix` ends with a `/`."""

    server: Server
    bucket: str
    prefix: str

    @property
    def uri(self) -> str:
        """What their addresses begin with, as Spark names them; ends with a `/`."""
        return f"s3a://{self.bucket}/{self.prefix}"

    def listed(self, below: str = "") -> Iterator[Entry]:
        """The objects whose names in it begin so. Raises StackError, Refused."""
        for entry in self.server.listed(self.bucket, f"{self.prefix}{below}"):
            yield entry._replace(key=entry.key.removeprefix(self.prefix))

    def read(self, name: str) -> bytes | None:
        """One of them; None if there is none. Raises StackError, Refused."""
        return self.server.read(self.bucket, f"{self.prefix}{name}")

    def write(self, name: str, data: bytes, *, new: bool = False) -> bool:
        """Put one; a `new` one only if there is none: False then. Raises StackError, Refused."""
        return self.server.write(self.bucket, f"{self.prefix}{name}", data, new=new)

    def checkpoint_files(self) -> Mapping[str, str]:
        """Those below `checkpoint`, each with its tag and time. Raises StackError."""
        try:
            return {entry.key: f"{entry.tag} {entry.changed}" for entry in self.listed(CHECKPOINT)}
        except Refused as refused:
            raise StackError(str(refused)) from refused

    def checkpoint_file(self, name: str) -> bytes | None:
        """One of them. Raises StackError."""
        try:
            return self.read(name)
        except Refused as refused:
            raise StackError(str(refused)) from refused

    def delete(self, name: str) -> None:
        """Silent about what is not there. Raises StackError, Refused."""
        self.server.delete(self.bucket, f"{self.prefix}{name}")


class Provides:
    """What every server does for a run; `shared` says that it has other users."""

    server: Server
    bucket: str
    shared = False

    def connector(self) -> tuple[Path, ...]:
        """The jars by which Spark speaks to it, fetched once. Raises StackError."""
        return jars.fetched("spark-s3")

    def provide(self, run_id: str, parts: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Resources]:
        """A prefix for each part; there is nothing to make."""
        return {part: self._made(part, prefix(run_id, part)) for part in parts}

    def _made(self, part: str, prefix: str) -> Resources:
        room = Room(server=self.server, bucket=self.bucket, prefix=prefix)
        keys, path = self.server.keys, room.uri.rstrip("/")
        return Resources(
            label=labelled("s3", part),
            at=room,
            placeholders={
                "path": path,
                "checkpoint": f"{path}/{CHECKPOINT}",
                "jars": ",".join(map(str, self.connector())),
            },
            environment={"AWS_ACCESS_KEY_ID": keys.access, "AWS_SECRET_ACCESS_KEY": keys.secret},
            conf=settings(self.server),
            secrets=(keys.secret,),
            shared=self.shared,
        )

    def drop(self, run_id: str, names: Collection[str]) -> None:
        """Delete the objects. Raises StackError, once everything was tried."""
        with contextlib.ExitStack() as steps:
            for part in names:
                steps.callback(_drop, Room(server=self.server, bucket=self.bucket, prefix=prefix(run_id, part)))


def settings(server: Server) -> dict[str, str]:
    """What Spark is told of it. The keys are in the driver's environment, where Spark looks for them."""
    said = {
        "endpoint": server.url,
        "endpoint.region": server.keys.region,
        "path.style.access": "true",
        # No other login of the user's shell may win.
        "aws.credentials.provider": PROVIDER,
    }
    return {f"spark.hadoop.fs.s3a.{name}": value for name, value in said.items()}


def _drop(room: Room) -> None:
    try:
        for entry in list(room.listed()):
            room.delete(entry.key)
    except Refused as refused:
        raise StackError(str(refused)) from refused


def prefix(run_id: str, part: str) -> str:
    """What the keys of a part begin with. No prefix begins with another one: no part's name holds a `/`."""
    return f"onceproof/{run_id}/{part or 'plain'}/"
