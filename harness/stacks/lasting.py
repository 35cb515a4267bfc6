"""Stacks with servers that outlive them: what a run made there is dropped after it, by the session's reaper if the
harness is gone by then (`python -m harness.stacks.lasting FILE`)."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from harness.component import Addressed, AtAddress, Server, Shareable, able
from harness.errors import StackError
from harness.fields.own_kinds import conftest_of, load_conftest
from harness.resources import Parts, RunResources, component_of, components
from harness.stacks.base import SessionStack
from harness.stacks.provision import Made, drop

WAYS = {"at": AtAddress, "borrowed": Shareable}
"""How a component is found again: its method, and the ability that has it."""
Again = tuple[str, str]
"""One of `WAYS`, and what its method is given."""


class LastingStack(SessionStack):
    """What its runs have on servers that outlive it is dropped with each run, whatever becomes of the harness."""

    def __init__(self, logs: Path, *, needs: Collection[str] = ()) -> None:
        super().__init__(logs, needs=needs)
        self._lock = threading.Lock()
        self._leaving = False

    def _ready(self) -> None:
        super()._ready()
        self._leaving = False

    @abstractmethod
    def _again(self) -> Mapping[str, Again]:
        """Return how those servers are found again, by component."""

    @abstractmethod
    def _end(self) -> None:
        """End all else."""

    def provide(self, run_id: str, parts: Parts, *, root: Path | None = None) -> RunResources:
        """Make the parts of one run and its folder. Raises StackError; then nothing of it is left."""
        self.ensure(components(parts))
        self._made[run_id] = self._provision().named(run_id, parts, root=root)
        # Before anything is made: the reaper then drops it.
        self._remember()
        provision, made = self._provision(), self._made[run_id]
        try:
            own = super().provide(run_id, parts, root=root)
        except BaseException:
            self._drop(run_id)
            raise
        if self._leaving:  # another thread ended the stack meanwhile, and found nothing of this run to drop
            provision.drop(made)
            raise StackError("the stack went down while a run was given its resources")
        return own

    def release(self, own: RunResources, *, keep: bool = False) -> None:
        """Drop what `provide` made; `keep` leaves it for good: it is on servers that go on."""
        if self._session is None:
            return
        super().release(own, keep=keep)
        self._made.pop(own.run_id, None)
        self._remember()

    def down(self) -> None:
        """End our drivers and drop what is left of our runs. Safe to call twice."""
        if self._session is None:
            return
        self._leaving = True
        # Whatever of it fails, the rest is done; what could not be dropped is tried again by the session's end.
        with contextlib.ExitStack() as steps:
            steps.callback(self._end)
            steps.callback(self._nothing_left)
            for run_id in list(self._made):
                steps.callback(self._drop, run_id)

    def _nothing_left(self) -> None:
        if not self._made:
            self._up().nothing_left()

    def _drop(self, run_id: str) -> None:
        """Raises StackError; then the session's end tries again."""
        made = self._made.get(run_id)
        if made is not None:
            self._provision().drop(made)
            self._made.pop(run_id, None)
            self._remember()

    def _remember(self) -> None:
        """Record for the session's reaper what it would have to drop."""
        session = self._up()
        env = {"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": str(Path(__file__).parents[2])}
        with self._lock:
            stored = remembered(self._again(), list(self._made.values()))
            path = session.keep("made.json", json.dumps(stored, default=str))
            argv = [sys.executable, "-m", *self._last_words(path)]
            session.at_the_end(json.dumps({"argv": argv, "env": env}))

    def _last_words(self, path: Path) -> Sequence[str]:
        """Return the module that drops what is remembered in a file, and its arguments."""
        return ("harness.stacks.lasting", str(path))


def at(name: str, address: str) -> Addressed:
    """Return the component that is there. Raises UsageError for an address that is none."""
    found: Addressed = able(name, AtAddress, "cannot be used where it is").at(address)
    return found


def remembered(again: Mapping[str, Again], made: Collection[Made]) -> dict[str, Any]:
    """Return the arguments of `main`. It runs in no repository, so they name also where the kinds of these runs are."""
    conftests = {conftest_of(each.root or Path.cwd()) for each in made} - {None}
    lasting = [replace(each, labels=_of(each.labels, again)) for each in made]
    return {"again": again, "conftests": [*conftests], "path": sys.path, "made": [asdict(each) for each in lasting]}


def main(path: Path) -> int:
    """Drop what a dead session had made, each by itself; return how much of it could not be dropped."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    made = [Made(run_id=e["run_id"], labels=tuple(e["labels"]), folder=Path(e["folder"])) for e in stored["made"]]
    failures: list[Exception] = []
    servers: dict[str, Server] = {}
    sys.path += [entry for entry in stored.get("path", ()) if entry not in sys.path]
    for conftest in stored.get("conftests", ()):
        with _noted([]):
            load_conftest(Path(conftest))
    for name in components(label for each in made for label in each.labels):
        with _noted(failures):
            way, text = stored["again"][name]
            servers[name] = getattr(able(name, WAYS[way], "cannot be found again"), way)(text)
    for each in made:
        with _noted(failures):
            drop(replace(each, labels=_of(each.labels, servers)), servers, lasting=True)
    return len(failures)


def _of(labels: Collection[str], names: Collection[str]) -> tuple[str, ...]:
    return tuple(label for label in labels if component_of(label) in names)


@contextlib.contextmanager
def _noted(failures: list[Exception]) -> Iterator[None]:
    """A component of another package may raise anything; what else there is has to be dropped all the same."""
    try:
        yield
    except Exception as failure:
        print(f"{type(failure).__name__}: {failure}", file=sys.stderr)
        failures.append(failure)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
