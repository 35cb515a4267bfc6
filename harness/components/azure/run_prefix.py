"""A run's own blobs: those whose names begin with the prefix of one of its parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.components.azure.blob import EMULATED, BlobService
from harness.components.azure.requests import operation
from harness.machine import jars
from harness.remote import Entry
from harness.remote.parts import ProvidesFolders
from harness.remote.proxy.commits import Commits
from harness.remote.proxy.server import Proxy
from harness.resources import Resources, labelled

CONTAINER = "onceproof"
EMULATOR = f"wasb://{CONTAINER}@{EMULATED.name}"
CONF = {"spark.hadoop.fs.azure.storage.emulator.account.name": EMULATED.name}
"""Spark's settings: the connector knows the emulator's port and key."""


@dataclass(frozen=True, kw_only=True)
class RunPrefix:
    """Those whose names begin with `prefix`, which ends with a `/`, as `harness.remote` wants a folder. `root` is the
    container's address, as Spark takes it."""

    service: BlobService
    prefix: str
    container: str = CONTAINER
    root: str = EMULATOR
    scratch: Path | None = None
    proxy: Proxy | None = field(default=None, repr=False, compare=False)
    """What the run's programs ask it through, if anything: the harness asks the service itself."""

    @property
    def url(self) -> str:
        """Its address, as Spark takes it."""
        return f"{self.root}/{self.prefix.rstrip('/')}"

    def below(self, place: str) -> RunPrefix:
        """Return a folder in it."""
        return replace(self, prefix=f"{self.prefix}{place}/")

    def commits(self) -> Commits | None:
        """Return what sees the commits of the checkpoints in it; None where the run was given no proxy."""
        if self.proxy is None:
            return None
        prefix = f"{self.service.account.name}/{self.container}/{self.prefix}"
        return Commits(proxy=self.proxy, reads=operation, prefix=prefix)

    def entries(self, place: str) -> list[Entry]:
        """Return the names in a folder; none where it is not there. An empty blob that marks a folder is that
        folder."""
        below = f"{self.prefix}{place}/" if place else self.prefix
        found = list(self.service.listed(self.container, below, deep=False))
        names = {each.name.removeprefix(below): each for each in found if each.name != below}
        folders = {name.rstrip("/") for name in names if name.endswith("/")}
        files = {name: each for name, each in names.items() if not name.endswith("/") and name not in folders}
        return [
            *(Entry(name, folder=True) for name in sorted(folders)),
            *(Entry(name, size=each.size, stamp=each.tag) for name, each in files.items()),
        ]

    def read(self, place: str) -> bytes | None:
        """Return a blob; None if there is none."""
        return self.service.read(self.container, f"{self.prefix}{place}")

    def write(self, place: str, data: bytes) -> None:
        """A blob is whole, or not there."""
        self.service.write(self.container, f"{self.prefix}{place}", data)

    def delete(self, place: str) -> None:
        """A blob, and all that is below such a folder; silent about what is not there."""
        below = f"{self.prefix}{place}/" if place else self.prefix
        # What is in a folder before the folder: where it is no mere name, it has to be empty.
        for name in sorted((each.name for each in self.service.listed(self.container, below, deep=True)), reverse=True):
            self.service.delete(self.container, name)
        if below.rstrip("/"):
            self.service.delete(self.container, below.rstrip("/"))


class Provides(ProvidesFolders):
    """What a service does for a run; `shared` says that it has other users, `scratch` is for copies."""

    service: BlobService
    scratch: Path | None = None
    proxy: Proxy | None = None
    shared = False

    def _made(self, part: str, folder: RunPrefix, there: Mapping[str, str]) -> Resources:
        """There is nothing to make."""
        found = ",".join(map(str, jars.fetched("spark-azure")))
        return Resources(
            label=labelled("azure", part),
            at=folder,
            placeholders={"path": folder.url, "jars": found, **there},
            bare=tuple(there),
            conf=self._conf(),
            secret_conf=self._secret_conf(),
            secrets=tuple(self._secret_conf().values()),
            shared=self.shared,
        )

    def _folder(self, run_id: str, part: str) -> RunPrefix:
        return RunPrefix(
            service=self.service, prefix=f"{run_id}/{part or 'plain'}/", scratch=self.scratch, proxy=self.proxy
        )

    def _conf(self) -> Mapping[str, str]:
        """Return Spark's settings for it, without its key."""
        return CONF

    def _secret_conf(self) -> Mapping[str, str]:
        """Return the settings that have its key."""
        return {}
