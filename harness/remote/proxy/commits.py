"""The requests by which Spark commits a batch to a checkpoint in an object store, and how the last one is held.

A checkpoint file manager that renames has the store copy `commits/.N.<uuid>.tmp` to `commits/N`, and delete the first
one; one without a rename puts `commits/N` itself. The trigger `op` holds a rename whole: between its two requests only
the proxy reaches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from harness.remote.proxy.exchange import Exchange, Held, State
from harness.remote.proxy.server import Proxy

TEMPORARY = re.compile(r"\.(\d+)\.[^.]+\.tmp")
COMMITS = "commits"


class Operation(NamedTuple):
    """What a request asks of one object: to make it of the one with the key `source`; to delete it without one."""

    key: str
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """A store's own words for what is asked of one object: the `silent` parameters change nothing of it, the header
    `copy_source` has the address that is copied, or its path."""

    silent: frozenset[str]
    copy_source: str

    def operation(self, exchange: Exchange) -> Operation | None:
        """None for a part of a larger upload, and for all that copies or deletes no whole object by itself."""
        path, _, query = exchange.target.partition("?")
        if {each.partition("=")[0] for each in query.split("&") if each} - self.silent:
            return None
        if exchange.method == "DELETE":
            return Operation(_key(path))
        source = exchange.headers.get(self.copy_source) if exchange.method == "PUT" else None
        return None if source is None else Operation(_key(path), _key(urlsplit(source).path))


def _key(path: str) -> str:
    return unquote(path).lstrip("/")


Wanted = Callable[[str, int], bool]
"""Whether it is the one: of the checkpoint at a place below the root, of a batch."""


class Name(NamedTuple):
    """A file of such a folder: in the checkpoint at a place below the root, of a batch. `temporary`: it is its
    temporary file."""

    place: str
    batch: int
    temporary: bool


class Rename(NamedTuple):
    """That of the temporary file `key` to `copied_to`, of a checkpoint and its batch; `copy` is its first request."""

    place: str
    batch: int
    key: str
    copied_to: str
    copy: Exchange


@dataclass(eq=False)
class Watch:
    """Wants the deletion that ends the first rename which is `wanted`. `prefix` is what the keys of the root begin
    with."""

    dialect: Dialect
    prefix: str
    wanted: Wanted
    found: Rename | None = None
    _copied: dict[str, Rename] = field(default_factory=dict)
    """By key, the temporary files that were asked to be copied."""

    def wants(self, exchange: Exchange) -> bool:
        """Return whether it is the request to hold."""
        operation = self.dialect.operation(exchange)
        if operation is None:
            return False
        if operation.source:
            self._note(operation, exchange)
            return False
        rename = self._copied.get(operation.key)
        if rename is None or not rename.copy.done or not self.wanted(rename.place, rename.batch):
            return False
        self.found = rename
        return True

    def _note(self, operation: Operation, exchange: Exchange) -> None:
        final, temporary = named(operation.key, self.prefix), named(operation.source, self.prefix)
        if final is not None and not final.temporary and temporary == final._replace(temporary=True):
            rename = Rename(final.place, final.batch, operation.source, operation.key, exchange)
            self._copied[operation.source] = rename


@dataclass(frozen=True)
class HeldRequest:
    """The deletion that ends a rename, which is held on its way to the store, or was."""

    rename: Rename
    held: Held

    @property
    def early(self) -> bool:
        """Return whether it was sent on before it was let go."""
        return self.held.early

    def let_go(self, *, drop: bool) -> None:
        """Send it on, or `drop` it. Raises HarnessError."""
        self.held.let_go(drop=drop)

    @property
    def description(self) -> str:
        """What happened to it, in words, for evidence."""
        _, _, key, to, copy = self.rename
        words = [f"the delete request {self.held.exchange.method} {key} was held on its way to the store"]
        words.append(f"the copy to {to} before it had been answered with status {copy.status}")
        if self.held.state is State.SENT:
            words.append(f"it was sent on afterwards: {self.held.why}")
        else:
            words.append(f"nothing of it had been sent on, and it was {self.held.state}: {self.held.why or 'no end'}")
        return "; ".join(words)


@dataclass(frozen=True, kw_only=True)
class Commits:
    """The commits of the checkpoints below a root, as a proxy in front of the store sees them."""

    proxy: Proxy
    dialect: Dialect
    prefix: str

    @contextmanager
    def armed(self, wanted: Wanted) -> Iterator[Callable[[], HeldRequest | None]]:
        """Hold the first such request; the result returns it, None before."""
        watch = Watch(self.dialect, self.prefix, wanted)
        with self.proxy.armed(watch) as hold:
            yield lambda: HeldRequest(watch.found, hold.held) if watch.found and hold.held else None


def named(key: str, prefix: str) -> Name | None:
    """Return what a key says, if it is that of a commit of a checkpoint below the prefix."""
    if not key.startswith(prefix):
        return None
    folder, _, name = key.removeprefix(prefix).rpartition("/")
    place, _, last = folder.rpartition("/")
    if last != COMMITS:
        return None
    if name.isascii() and name.isdecimal():
        return Name(place, int(name), temporary=False)
    found = TEMPORARY.fullmatch(name)
    return None if found is None else Name(place, int(found[1]), temporary=True)
