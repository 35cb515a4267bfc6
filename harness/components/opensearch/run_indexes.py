"""A run's own indexes: those whose names begin with the prefix of one of its parts."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.components.opensearch.server import Refused, Server
from harness.errors import StackError
from harness.resources import GivesParts, Resources, labelled

ABSENT = "index_not_found_exception"


@dataclass(frozen=True, kw_only=True)
class Indexes:
    """How the harness finds them. `searched` are the whole names of those that were seen to be."""

    server: Server
    prefix: str
    searched: set[str] = field(default_factory=set, repr=False, compare=False)

    def named(self, index: str) -> str:
        """Return the whole name of one."""
        return f"{self.prefix}{index}"


class Provides(GivesParts):
    """What every server does for a run. `inside` is the same server as the pipeline's processes reach it; `shared` says
    that it has other users."""

    server: Server
    inside: Server
    shared = False

    def _give(self, run_id: str, name: str, request: Mapping[str, Any]) -> Resources:
        """There is nothing to make."""
        begins = prefix(run_id, name)
        return Resources(
            label=labelled("opensearch", name),
            at=Indexes(server=self.server, prefix=begins),
            placeholders={"url": self.inside.whole, "prefix": begins},
            secrets=(self.server.password,) if self.server.password else (),
            shared=self.shared,
        )

    def _take(self, run_id: str, name: str) -> None:
        drop(self.server, prefix(run_id, name))


def drop(server: Server, prefix: str) -> None:
    """Delete every index whose name begins so. One by one: a server may refuse to delete by a pattern. Raises
    StackError."""
    found = {"expand_wildcards": "all", "allow_no_indices": "true"}
    try:
        for name in server.ask(f"name the indexes {prefix}*", "GET", f"/{prefix}*/_settings", **found):
            with absent():
                server.ask(f"delete the index {name}", "DELETE", f"/{name}")
    except Refused as refused:
        raise StackError(str(refused)) from refused


@contextlib.contextmanager
def absent() -> Any:
    """Silent about an index that is not there any more."""
    try:
        yield
    except Refused as refused:
        if refused.kind != ABSENT:
            raise


def prefix(run_id: str, part: str) -> str:
    """Return what the names of the indexes of a part begin with. No prefix begins with another one: no run's id holds a
    `.`, no part's name a `-`."""
    return f"{'-'.join(filter(None, ('run', run_id.lower(), part)))}."
