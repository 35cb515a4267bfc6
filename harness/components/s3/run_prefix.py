"""A run's own objects: those whose keys begin with the prefix of one of its parts."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.components.s3.requests import operation
from harness.components.s3.server import Entry, Refused, Server
from harness.errors import StackError
from harness.machine import jars
from harness.remote import Entry as Folder
from harness.remote.parts import ProvidesFolders
from harness.remote.proxy.commits import Commits
from harness.remote.proxy.proxies import PROXY, Proxies
from harness.remote.proxy.server import Proxy
from harness.resources import Resources, labelled

PROVIDER = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"


@dataclass(frozen=True, kw_only=True)
class RunPrefix:
    """Those whose keys begin with `prefix`, which ends with a `/`, as `harness.remote` wants a folder."""

    server: Server
    bucket: str
    prefix: str
    scratch: Path | None = None
    proxy: Proxy | None = field(default=None, repr=False, compare=False)
    """What the run's programs ask it through, if anything: the harness asks the server itself."""

    @property
    def url(self) -> str:
        """Its address, as Spark takes it."""
        return f"s3a://{self.bucket}/{self.prefix.rstrip('/')}"

    def below(self, place: str) -> RunPrefix:
        """Return a folder in it."""
        return replace(self, prefix=f"{self.prefix}{place}/")

    def commits(self) -> Commits | None:
        """Return what sees the commits of the checkpoints in it; None where the run was given no proxy."""
        if self.proxy is None:
            return None
        return Commits(proxy=self.proxy, reads=operation, prefix=f"{self.bucket}/{self.prefix}")

    def entries(self, place: str) -> list[Folder]:
        """Return the names in a folder; none where it is not there. A mark of the folder itself is none."""
        below = f"{place}/" if place else ""
        found = [each._replace(key=each.key.removeprefix(below)) for each in self._below(below, deep=False)]
        return [_entry(each) for each in found if each.key]

    def read(self, place: str) -> bytes | None:
        """Return an object; None if there is none."""
        with refusals():
            return self.server.read(self.bucket, f"{self.prefix}{place}")

    def write(self, place: str, data: bytes) -> None:
        """An object is whole, or not there."""
        with refusals():
            self.server.write(self.bucket, f"{self.prefix}{place}", data)

    def delete(self, place: str) -> None:
        """An object, or all that is below such a folder; silent about what is not there."""
        with refusals():
            for each in list(self._below(f"{place}/" if place else "", deep=True)):
                self.server.delete(self.bucket, f"{self.prefix}{each.key}")
            if place:
                self.server.delete(self.bucket, f"{self.prefix}{place}")

    def _below(self, below: str, *, deep: bool) -> list[Entry]:
        with refusals():
            found = list(self.server.listed(self.bucket, f"{self.prefix}{below}", deep=deep))
        return [each._replace(key=each.key.removeprefix(self.prefix)) for each in found]


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """What the server refuses of the harness is no mistake of the user's. Raises StackError."""
    try:
        yield
    except Refused as refused:
        raise StackError(str(refused)) from refused


def _entry(found: Entry) -> Folder:
    name = found.key.rstrip("/")
    return Folder(name, found.key.endswith("/"), found.size, f"{found.tag} {found.changed}")


class Provides(ProvidesFolders):
    """What every server does for a run; `shared` says that it has other users, `scratch` is for copies."""

    server: Server
    bucket: str
    scratch: Path | None = None
    shared = False
    _proxies: Proxies

    def provide(self, run_id: str, parts: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Resources]:
        """Return a folder for each part. The part that keeps the checkpoint gives `{checkpoint}` too. If one part needs
        a proxy, all of them are reached through it. Raises StackError."""
        if any(request.get(PROXY) for request in parts.values()):
            self._proxies.start(run_id, self.server.host, self.server.port)
        return super().provide(run_id, parts)

    def drop(self, run_id: str, names: Collection[str]) -> None:
        """Delete the folders. Raises StackError, once everything was tried."""
        self._proxies.end(run_id)
        super().drop(run_id, names)

    def connector(self) -> tuple[Path, ...]:
        """Return the jars by which Spark speaks to it, fetched once. Raises StackError."""
        return jars.fetched("spark-s3")

    def _made(self, part: str, folder: RunPrefix, there: Mapping[str, str]) -> Resources:
        """There is nothing to make."""
        keys = self.server.keys
        return Resources(
            label=labelled("s3", part),
            at=folder,
            placeholders={"path": folder.url, "jars": ",".join(map(str, self.connector())), **there},
            bare=tuple(there),
            environment={"AWS_ACCESS_KEY_ID": keys.access, "AWS_SECRET_ACCESS_KEY": keys.secret},
            conf=settings(self.server, folder.proxy.url if folder.proxy else self.server.url),
            secrets=(keys.secret,),
            shared=self.shared,
        )

    def _folder(self, run_id: str, part: str) -> RunPrefix:
        return RunPrefix(
            server=self.server,
            bucket=self.bucket,
            prefix=prefix(run_id, part),
            scratch=self.scratch,
            proxy=self._proxies.of(run_id),
        )


def settings(server: Server, url: str) -> dict[str, str]:
    """Return Spark's settings for the server at `url`. The keys are in the driver's environment, where Spark reads
    them."""
    options = {
        "endpoint": url,
        "endpoint.region": server.keys.region,
        "path.style.access": "true",
        # No other login of the user's shell may win.
        "aws.credentials.provider": PROVIDER,
    }
    return {f"spark.hadoop.fs.s3a.{name}": value for name, value in options.items()}


def prefix(run_id: str, part: str) -> str:
    """Return what the keys of a part begin with. No prefix begins with another one: no part's name holds a `/`."""
    return f"onceproof/{run_id}/{part or 'plain'}/"
