"""Gives a run its resources on any stack: its parts of the components, and a folder."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.component import Server
from harness.errors import StackError, UsageError
from harness.resources import Parts, Resources, RunResources, by_component, component_of, name_of


@dataclass(frozen=True, kw_only=True)
class Made:
    """What a run has for itself: its parts by label, and its folder. `root` holds its pipeline's program."""

    run_id: str
    labels: tuple[str, ...]
    folder: Path
    root: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Provision:
    """`servers` go by component. `root` is the folder that holds the runs' folders; driver and executors see it under
    the same path. `lasting`: no stack's end takes that folder along, so that it has to go with the run. `agent_file`:
    the agent in Spark reports to a file in a run's folder."""

    servers: Mapping[str, Server]
    spark_master: str
    spark_home: Path
    root: Path
    lasting: bool = False
    agent_file: bool = False

    def named(self, run_id: str, parts: Parts, *, root: Path | None = None) -> Made:
        """Return what is going to be made. Raises UsageError for a component that there is none of."""
        for label in parts:
            server(self.servers, label)
        return Made(run_id=run_id, labels=tuple(parts), folder=self.root / run_id, root=root)

    def make(self, run_id: str, parts: Parts, *, root: Path | None) -> RunResources:
        """Return everything of one run. Raises StackError, UsageError."""
        folder = self.named(run_id, parts).folder
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise StackError(f"cannot make the run's folder {folder}: {error.strerror}; name another one") from error
        own: dict[str, Resources] = {}
        for name, request in by_component(parts).items():
            given = server(self.servers, name).provide(run_id, request)
            own |= {each.label: each for each in given.values()}
        return RunResources(
            run_id=run_id,
            parts={label: own[label] for label in parts},
            spark_master=self.spark_master,
            spark_home=self.spark_home,
            folder=folder,
            checkpoint=folder / "checkpoint",
            root=root,
            agent=str(folder / "agent.sock") if self.agent_file else "",
        )

    def drop(self, made: Made) -> None:
        """Take all of it away. Raises StackError, once everything was tried."""
        drop(made, self.servers, lasting=self.lasting)


def server(servers: Mapping[str, Server], label: str) -> Server:
    """Return the server of a label. Raises UsageError if there is none here."""
    found = servers.get(component_of(label))
    if found is None:
        raise UsageError(f"asked for {label}; this stack has {', '.join(servers) or 'no component'}")
    return found


def drop(made: Made, servers: Mapping[str, Server], *, lasting: bool = False) -> None:
    """Take away what a run has for itself, whatever still uses it; silent about what is not there. Raises StackError,
    once everything was tried. `lasting`: also for a folder that stays, which no stack's end takes along."""
    with contextlib.ExitStack() as steps:
        steps.callback(_remove, made.folder, lasting=lasting)
        for name in dict.fromkeys(map(component_of, reversed(made.labels))):
            names = [name_of(label) for label in made.labels if component_of(label) == name]
            steps.callback(server(servers, name).drop, made.run_id, names)


def _remove(folder: Path, *, lasting: bool) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if lasting and folder.exists():
        raise StackError(f"cannot remove all of {folder}: another program has written there; remove it")
