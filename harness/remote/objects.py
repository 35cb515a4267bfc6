"""A folder in an object store: the objects whose keys begin with one prefix; and what such a store says no to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, Protocol

from harness.errors import StackError
from harness.remote import Entry
from harness.remote.http import Answer, Refused, see, tree
from harness.remote.proxy.commits import Commits, Dialect
from harness.remote.proxy.server import Proxy

OWN_FAULT = 500
"""From this status on it is the server that failed, and not who asked."""


class Object(NamedTuple):
    """An object as a listing names it, or, with a `/` at its end, what the keys of some go on with."""

    key: str
    size: int
    stamp: str


class Store(Protocol):
    """A server of objects. Raises StackError where it does not answer, and Refused."""

    @property
    def dialect(self) -> Dialect:
        """What its requests ask for."""

    @property
    def above(self) -> str:
        """What the path of a request has before the bucket."""

    def listed(self, bucket: str, prefix: str, /, *, deep: bool) -> Iterator[Object]:
        """Yield the objects whose keys begin so; not `deep`: up to the next `/`."""

    def read(self, bucket: str, key: str, /) -> bytes | None:
        """Return an object; None if there is none."""

    def write(self, bucket: str, key: str, data: bytes, /) -> None:
        """Put an object."""

    def delete(self, bucket: str, key: str, /) -> None:
        """Silent about what is not there."""


@dataclass(frozen=True, kw_only=True)
class ObjectFolder:
    """The objects whose keys begin with `prefix`, which ends with a `/`, as `harness.remote` wants a folder. `root` is
    the bucket's address, as Spark takes it."""

    store: Store
    bucket: str
    root: str
    prefix: str
    scratch: Path | None = None
    proxy: Proxy | None = field(default=None, repr=False, compare=False)
    """What the run's programs ask it through, if anything: the harness asks the server itself."""

    @property
    def url(self) -> str:
        """Its address, as Spark takes it."""
        return f"{self.root}/{self.prefix.rstrip('/')}"

    def below(self, place: str) -> ObjectFolder:
        """Return a folder in it."""
        return replace(self, prefix=f"{self.prefix}{place}/")

    def commits(self) -> Commits | None:
        """Return what sees the commits of the checkpoints in it; None where the run was given no proxy."""
        if self.proxy is None:
            return None
        prefix = f"{self.store.above}{self.bucket}/{self.prefix}"
        return Commits(proxy=self.proxy, dialect=self.store.dialect, prefix=prefix)

    def entries(self, place: str) -> list[Entry]:
        """Return the names in a folder; none where it is not there. An empty object that marks a folder is that
        folder."""
        below = self._below(place)
        found = self.store.listed(self.bucket, below, deep=False)
        names = {each.key.removeprefix(below): each for each in found if each.key != below}
        folders = {name.rstrip("/") for name in names if name.endswith("/")}
        files = {name: each for name, each in names.items() if not name.endswith("/") and name not in folders}
        return [
            *(Entry(name, folder=True) for name in sorted(folders)),
            *(Entry(name, size=each.size, stamp=each.stamp) for name, each in files.items()),
        ]

    def read(self, place: str) -> bytes | None:
        """Return an object; None if there is none."""
        return self.store.read(self.bucket, f"{self.prefix}{place}")

    def write(self, place: str, data: bytes) -> None:
        """An object is whole, or not there."""
        self.store.write(self.bucket, f"{self.prefix}{place}", data)

    def delete(self, place: str) -> None:
        """An object, and all that is below such a folder; silent about what is not there."""
        below = self._below(place)
        # What is in a folder before the folder: where it is no mere name, it has to be empty.
        for key in sorted((each.key for each in self.store.listed(self.bucket, below, deep=True)), reverse=True):
            self.store.delete(self.bucket, key)
        # Without a key the request would be for the bucket.
        if marker := below.rstrip("/"):
            self.store.delete(self.bucket, marker)

    def _below(self, place: str) -> str:
        return f"{self.prefix}{place}/" if place else self.prefix


def refusal(request: str, answer: Answer, *, log: str) -> StackError:
    """Return the error for an answer in XML that is none of what was asked for. `log` is the server's, if it is one of
    ours."""
    kind, words = answer.headers.get("x-ms-error-code", ""), ""
    try:
        found = tree(answer.data, "", log=log)
        kind = kind or found.findtext("Code") or ""
        # What comes after the first line is the number of the request, and the time.
        words = next(iter((found.findtext("Message") or "").strip().splitlines()), "")
    except StackError:
        words = " ".join(answer.data.decode("utf-8", "replace").split())[:200]
    text = f"status {answer.status}, {' '.join(dict.fromkeys(filter(None, (kind, words))))}".rstrip(", ")
    if answer.status >= OWN_FAULT:
        return StackError(f"{request}; it could not: {text}{see(log)}")
    return Refused(f"{request}; it said: {text}", answer.status, kind)
