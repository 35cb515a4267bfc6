"""Servers of runs in the harness's own process: one for each part, each in a thread and on its own loopback port. They
are gone when the harness is, however it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from harness.errors import StackError
from harness.resources import GivesParts, Resources, labelled


class RunServer(Protocol):
    """One of them, which answers already."""

    @property
    def placeholders(self) -> Mapping[str, str]:
        """How the pipeline finds it."""

    def alive(self) -> bool:
        """Return whether it still answers."""

    def close(self) -> None:
        """End it, with every connection. Safe to call twice."""


class RunServers(GivesParts):
    """All of one component, made by `open`, which may raise OSError."""

    def __init__(self, component: str, open: Callable[[], RunServer]) -> None:
        self._component, self._open = component, open
        self._parts: dict[tuple[str, str], RunServer] = {}

    def start(self) -> None:
        """Each run has its own."""

    def check(self) -> None:
        """Raise StackError if one of them is dead."""
        for (run_id, name), server in list(self._parts.items()):
            if not server.alive():
                raise StackError(f"{labelled(self._component, name)} of the run {run_id} answers no more; run again")

    def describe(self) -> Mapping[str, Any]:
        """It is of the harness's own version."""
        return {"settings": {}}

    def _take(self, run_id: str, name: str) -> None:
        if (run_id, name) in self._parts:
            self._parts.pop((run_id, name)).close()

    def close(self) -> None:
        """End all that are left."""
        while self._parts:
            self._parts.popitem()[1].close()

    def _give(self, run_id: str, name: str, request: Mapping[str, Any]) -> Resources:
        label = labelled(self._component, name)
        try:
            server = self._open()
        except OSError as refused:
            raise StackError(f"asked for a loopback port for {label}; {refused.strerror}") from refused
        self._parts[run_id, name] = server
        return Resources(label=label, at=server, placeholders=server.placeholders)
