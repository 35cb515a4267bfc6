"""What one run is given: its own part of each component, by label, and the folders and the Spark master it runs with.

A label names a part: `kafka`, `postgres`, or `postgres.second` for another part of the same component.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import UsageError

Parts = Mapping[str, Mapping[str, Any]]
"""By label, what is asked of a part: `{"kafka": {"partitions": 3}, "postgres": {}}`."""


class NotGiven(UsageError):
    """The run was given no such part."""


@dataclass(frozen=True, kw_only=True)
class Resources:
    """One part. `at` is where the harness finds it, in the component's own terms; the rest is the pipeline's, whose
    processes may be elsewhere.

    `placeholders` go by the words after the label (`dsn` for `{postgres.dsn}`), `bare` are those that also stand
    without it (`{topic}`). `environment` is added to that of the pipeline's process, `conf` to Spark's settings:
    no secret is in it. `secret_conf` are the settings that have one: they reach Spark by a file, and only drivers that
    are processes of this machine. `secrets` are the values to redact wherever text leaves the run. `shared` says that
    the server has other users."""

    label: str
    at: Any
    placeholders: Mapping[str, str] = field(default_factory=dict)
    bare: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)
    secret_conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = ()
    shared: bool = False

    def filled(self) -> dict[str, str]:
        """Return its placeholders by their whole names."""
        whole = {f"{self.label}.{name}": value for name, value in self.placeholders.items()}
        return whole | {name: self.placeholders[name] for name in self.bare}


class GivesParts(ABC):
    """A server that makes each part of a run by itself, and takes it away."""

    def provide(self, run_id: str, parts: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Resources]:
        """Make a run's parts, by name what is asked of each. Raises StackError."""
        return {name: self._give(run_id, name, request) for name, request in parts.items()}

    def drop(self, run_id: str, names: Collection[str]) -> None:
        """Take those parts away. Raises StackError, once everything was tried."""
        with contextlib.ExitStack() as steps:
            for name in names:
                steps.callback(self._take, run_id, name)

    @abstractmethod
    def _give(self, run_id: str, name: str, request: Mapping[str, Any]) -> Resources:
        """Make one part."""

    @abstractmethod
    def _take(self, run_id: str, name: str) -> None:
        """Take it away; silent about what is not there."""


@dataclass(frozen=True, kw_only=True)
class RunResources:
    """Everything that one run was given. `root` holds the pipeline's program and what belongs to it; driver and
    executors see `folder` under the same path. `agent` is where the agent in Spark reports, `host:port` or a socket
    file; empty where the harness has still to choose a port."""

    run_id: str
    parts: Mapping[str, Resources]
    spark_master: str
    spark_home: Path
    folder: Path
    checkpoint: Path
    root: Path | None = None
    agent: str = ""

    def part(self, label: str) -> Resources:
        """Raises NotGiven if the run has no such part."""
        return part(self.parts, label)

    def placeholders(self) -> dict[str, str]:
        """Return what `{name}` in a pipeline's arguments, environment, conf and a scenario's setup stands for."""
        own = {
            "checkpoint": str(self.checkpoint),
            "folder": str(self.folder),
            "run": self.run_id,
            "spark.master": self.spark_master,
            "spark.home": str(self.spark_home),
        }
        for each in self.parts.values():
            own |= each.filled()
        return own

    @property
    def environment(self) -> dict[str, str]:
        """Of all parts; where two name one variable, the first part's stands."""
        return _first(each.environment for each in self.parts.values())

    @property
    def conf(self) -> dict[str, str]:
        """Of all parts, in the same way."""
        return _first(each.conf for each in self.parts.values())

    @property
    def secret_conf(self) -> dict[str, str]:
        """Of all parts, in the same way."""
        return _first(each.secret_conf for each in self.parts.values())

    @property
    def secrets(self) -> tuple[str, ...]:
        """Of all parts."""
        return tuple(dict.fromkeys(secret for each in self.parts.values() for secret in each.secrets))


def _first(each: Iterable[Mapping[str, str]]) -> dict[str, str]:
    out: dict[str, str] = {}
    for one in each:
        out = {**one, **out}
    return out


def part(parts: Mapping[str, Resources], label: str) -> Resources:
    """Return the part of that label. Raises NotGiven if there is none."""
    if label not in parts:
        raise NotGiven(f"asked for {label}; the run was given {', '.join(parts) or 'nothing'}")
    return parts[label]


def component_of(label: str) -> str:
    """`postgres` of `postgres.second`."""
    return label.partition(".")[0]


def name_of(label: str) -> str:
    """`second` of `postgres.second`; empty for the plain part."""
    return label.partition(".")[2]


def labelled(component: str, name: str) -> str:
    """Return the label of a component's part; `name` is empty for the plain one."""
    return f"{component}.{name}" if name else component


def by_component(parts: Parts) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Return what each part has to provide, by component and by the name of its part."""
    out: dict[str, dict[str, Mapping[str, Any]]] = {}
    for label, request in parts.items():
        out.setdefault(component_of(label), {})[name_of(label)] = request
    return out


def components(labels: Iterable[str]) -> list[str]:
    """Return the components that the labels name, each once."""
    return list(dict.fromkeys(map(component_of, labels)))
