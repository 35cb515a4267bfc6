"""Gives runs their namespaces in systems that the user's own code knows, and removes them.

A namespace is a name and a folder. In the system, `prepare` of the user's module makes it and `remove` removes it: both
are called once for each module and its options, if the module has them. The session records the calls of `remove` that
are due, so that they are made also if the harness was killed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from harness.components.python.calls import Called, Namespace, Spawn, call
from harness.errors import HarnessError, StackError
from harness.resources import Resources, labelled
from harness.session.part_folders import RunFolders
from harness.session.session import Session

NAME = "python"


@dataclass(frozen=True, kw_only=True)
class RunNamespace:
    """How the harness calls the user's code of one namespace. By function and options, `code` says which function it
    is, `able` which other functions its module has."""

    namespace: Namespace
    scratch: Path
    spawn: Spawn
    code: Mapping[str, Called]
    able: Mapping[str, Collection[str]]


class Namespaces(RunFolders):
    """The namespaces of all runs of a session, each in the folder of its run below `runs`."""

    mode = 0o777  # where executors of another user see the checkpoints

    def __init__(self, session: Session, runs: Path) -> None:
        super().__init__(runs, component=NAME, plain="namespace")
        self._session = session
        self._scratch = session.folder / "calls"
        self._owed: dict[tuple[str, str], list[tuple[Called, Namespace]]] = {}
        self._spawn = partial(_spawned, session)
        self._lock = threading.Lock()

    def start(self) -> None:
        """Make the folders. Raises StackError."""
        super().start()
        self._scratch.mkdir(mode=0o700, exist_ok=True)

    def _place(self, run_id: str, part: str) -> Path:
        # A part may be called as something else is in a run's folder.
        return self.root / run_id / "namespaces" / (part or self._plain)

    def describe(self) -> Mapping[str, Any]:
        """Return what the rows come by."""
        return {"pyarrow": pa.__version__}

    def provide(self, run_id: str, parts: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Resources]:
        """Return a namespace for each part, made by the user's code. Raises StackError, UsageError; then none is
        left."""
        folders = super().provide(run_id, parts)
        try:
            return {part: self._prepared(run_id, part, folders[part], request) for part, request in parts.items()}
        except BaseException:
            # What cannot be removed is tried again, and reported, at the session's end.
            with suppress(HarnessError):
                self.drop(run_id, parts)
            raise

    def drop(self, run_id: str, names: Collection[str]) -> None:
        """Have the user's code remove the namespaces, and remove the folders. Raises StackError, once all was tried;
        the session's end tries again what failed."""
        failures: list[str] = []
        for part in names:
            left = [each for each in self._owed.get((run_id, part), []) if not self._removed(each, failures)]
            with self._lock:
                self._owed[run_id, part] = left
                self._remember()
            if not left:
                super().drop(run_id, [part])
        if failures:
            raise StackError("; ".join(failures))

    def close(self) -> None:
        """Nothing is held: what was not removed, the session's end tries again."""

    def _prepared(self, run_id: str, part: str, given: Resources, request: Mapping[str, Any]) -> Resources:
        name = "_".join(filter(None, ("onceproof", run_id, part)))
        namespace = Namespace(name=name, path=given.at.folder, run=run_id)
        code = {key: Called(**each) for key, each in request.items()}
        able: dict[str, Collection[str]] = {}
        done: set[tuple[str, str]] = set()
        for key, each in code.items():
            able[key] = self._checked(each, namespace)
            alike = each.module, json.dumps(dict(each.options), sort_keys=True)
            if alike not in done:
                done.add(alike)
                self._prepare(run_id, part, (each, namespace), able[key])
        at = RunNamespace(namespace=namespace, scratch=self._scratch, spawn=self._spawn, code=code, able=able)
        placeholders = {"namespace": namespace.name, "path": str(namespace.path)}
        return Resources(label=labelled(NAME, part), at=at, placeholders=placeholders)

    def _checked(self, code: Called, namespace: Namespace) -> Collection[str]:
        """Return which other functions its module has. Raises StackError, UsageError for code that cannot be called."""
        with call(self._spawn, code, namespace, "check", scratch=self._scratch) as (gave, _):
            has: list[str] = gave["has"]
            return has

    def _prepare(self, run_id: str, part: str, made: tuple[Called, Namespace], has: Collection[str]) -> None:
        """Have the namespace made; but first record how to remove it, for the reaper."""
        if "remove" in has:
            with self._lock:
                self._owed.setdefault((run_id, part), []).append(made)
                self._remember()
        if "prepare" in has:
            with call(self._spawn, *made, "prepare", scratch=self._scratch):
                pass

    def _removed(self, made: tuple[Called, Namespace], failures: list[str]) -> bool:
        try:
            with call(self._spawn, *made, "remove", scratch=self._scratch):
                return True
        except HarnessError as failure:
            failures.append(str(failure))
            return False

    def _remember(self) -> None:
        left = [each for made in self._owed.values() for each in made]
        if not left:
            self._session.nothing_left(of=NAME)
            return
        stored = [{"code": asdict(code), "namespace": asdict(namespace)} for code, namespace in left]
        path = self._session.keep(f"{NAME}.json", json.dumps(stored, default=str))
        argv = [sys.executable, "-m", "harness.components.python.leavings", str(path)]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [_home(), os.environ.get("PYTHONPATH", "")]))}
        self._session.at_the_end(json.dumps({"argv": argv, "env": env}), of=NAME)


def _spawned(session: Session, argv: list[str], log: Path, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return session.spawn(argv, name="a reader", log=log, env=env)


def _home() -> str:
    return str(Path(__file__).parents[3])
