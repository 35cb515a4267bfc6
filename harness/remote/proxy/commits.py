"""The requests by which Spark commits a batch to a checkpoint in an object store, and how one of them is held.

A checkpoint file manager that renames has the store copy `commits/.N.<uuid>.tmp` to `commits/N`, and delete the first
one; one without a rename puts `commits/N` itself. The trigger `op` holds a rename whole: between its two requests only
the proxy reaches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from harness.remote.proxy.exchange import Exchange, Held, State
from harness.remote.proxy.server import Proxy

TEMPORARY = re.compile(r"\.(\d+)\.[^.]+\.tmp")
COMMITS = "commits"


class Part(StrEnum):
    """A request of the commit of a batch. `PUT` writes `commits/N` at once; `COPY` makes it of its temporary file, and
    `DELETE` removes that once the copy is done."""

    PUT = "put"
    COPY = "copy"
    DELETE = "delete"


class Operation(NamedTuple):
    """What a request asks of one object; `source` is the key that it is copied or renamed from."""

    part: Part
    key: str
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """A store's own words for what is asked of one object: the `silent` parameters change nothing of it, the header
    `copy_source` has the address that is copied, or its path."""

    silent: frozenset[str]
    copy_source: str

    def operation(self, exchange: Exchange) -> Operation | None:
        """None for a part of a larger upload, and for all that puts, copies or deletes no whole object by itself."""
        path, _, query = exchange.target.partition("?")
        if {each.partition("=")[0] for each in query.split("&") if each} - self.silent:
            return None
        key = _key(path)
        if exchange.method == "DELETE":
            return Operation(Part.DELETE, key)
        if exchange.method != "PUT":
            return None
        source = exchange.headers.get(self.copy_source)
        if source is None:
            return Operation(Part.PUT, key)
        return Operation(Part.COPY, key, _key(urlsplit(source).path))


def _key(path: str) -> str:
    return unquote(path).lstrip("/")


Reads = Callable[[Exchange], Operation | None]
"""What a request asks for, in a store's own protocol; None for anything else than an `Operation`."""
Wanted = Callable[[str, int], bool]
"""Whether it is the one: of the checkpoint at a place below the root, of a batch."""


class Name(NamedTuple):
    """A file of such a folder: in the checkpoint at a place below the root, of a batch. `temporary`: it is its
    temporary file."""

    place: str
    batch: int
    temporary: bool


@dataclass(eq=False)
class Watch:
    """Wants the first `part` that is `wanted`. `prefix` is what the keys of the root begin with."""

    reads: Reads
    prefix: str
    part: Part
    wanted: Wanted
    found: Name | None = None
    operation: Operation | None = None
    copy: Exchange | None = None
    """Of a deletion: the copy before it."""
    _copies: dict[str, tuple[Name, Exchange]] = field(default_factory=dict)
    """By key, the temporary files that were asked to be copied."""

    def wants(self, exchange: Exchange) -> bool:
        """Return whether it is the request to hold."""
        operation = self.reads(exchange)
        if operation is None:
            return False
        found, copy = self._commit(operation, exchange)
        if found is None or operation.part is not self.part or not self.wanted(found.place, found.batch):
            return False
        self.found, self.operation, self.copy = found, operation, copy
        return True

    def _commit(self, operation: Operation, exchange: Exchange) -> tuple[Name | None, Exchange | None]:
        """Return the file of a commit that it is about, and of a deletion the copy before it."""
        part = operation.part
        if part is Part.DELETE:
            name, copy = self._copies.get(operation.key, (None, None))
            return (name, copy) if copy is not None and copy.done else (None, None)
        name = named(operation.key, self.prefix)
        if name is None or name.temporary:
            return None, None
        if part is Part.COPY:
            source = named(operation.source, self.prefix)
            if source is None or not source.temporary or source[:2] != name[:2]:
                return None, None
            self._copies[operation.source] = name, exchange
        return name, None


@dataclass(frozen=True, kw_only=True)
class HeldRequest:
    """A request that is held on its way to the store, or was."""

    part: Part
    place: str
    batch: int
    key: str
    held: Held
    copied_to: str = ""
    copy: Exchange | None = None

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
        exchange = self.held.exchange
        words = [f"the {self.part} request {exchange.method} {self.key} was held on its way to the store"]
        if self.copy is not None:
            words.append(f"the copy to {self.copied_to} before it had been answered with status {self.copy.status}")
        if self.held.state is State.SENT:
            words.append(f"it was sent on afterwards: {self.held.why}")
        else:
            words.append(f"nothing of it had been sent on, and it was {self.held.state}: {self.held.why or 'no end'}")
        return "; ".join(words)


@dataclass(frozen=True, kw_only=True)
class Commits:
    """The commits of the checkpoints below a root, as a proxy in front of the store sees them."""

    proxy: Proxy
    reads: Reads
    prefix: str

    @contextmanager
    def armed(self, part: Part, wanted: Wanted) -> Iterator[Callable[[], HeldRequest | None]]:
        """Hold the first such request; the result returns it, None before."""
        watch = Watch(self.reads, self.prefix, part, wanted)
        with self.proxy.armed(watch) as hold:
            yield lambda: None if hold.held is None else _held_request(watch, hold.held)


def _held_request(watch: Watch, held: Held) -> HeldRequest:
    found, operation = watch.found, watch.operation
    assert found is not None and operation is not None
    to = f"{operation.key.rpartition('/')[0]}/{found.batch}" if watch.copy is not None else ""
    return HeldRequest(
        part=watch.part,
        place=found.place,
        batch=found.batch,
        key=operation.key,
        held=held,
        copied_to=to,
        copy=watch.copy,
    )


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
