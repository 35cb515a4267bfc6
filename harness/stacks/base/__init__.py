"""What every stack has in common that lives in a session of ours: it is up or not, components come up as they are
needed, and a `with` block takes it down."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from harness.component import InSession, Server, Started, component
from harness.errors import StackError
from harness.hosts.in_parallel import together
from harness.machine import jars
from harness.resources import Parts, RunResources, components
from harness.session.session import Session, need_space
from harness.stacks.provision import Made, Provision

RUNS = "runs"
"""The folder that holds the folders of runs."""


class SessionStack(ABC):
    """`logs` is where what is started writes; `needs` are the components that come up with the stack."""

    name: str
    _jars: jars.Jars

    def __init__(self, logs: Path, *, needs: Collection[str] = ()) -> None:
        self.logs = logs.absolute()
        self.servers: dict[str, Server] = {}
        """The components that are up, by name."""
        self._needs = tuple(dict.fromkeys(needs))
        self._session: Session | None = None
        self._made: dict[str, Made] = {}
        self._secrets: set[str] = set()
        self._adding = threading.Lock()

    def up(self) -> None:
        """Start what every run needs, and the needed components; return when each part answers its own protocol. Raises
        StackError, and HarnessError when the disk is full; nothing is left running then."""
        self._ready()
        self._prepare()
        self._session = Session()
        try:
            self._start(self._session)
        except BaseException:
            self.down()
            raise

    @abstractmethod
    def _prepare(self) -> None:
        """Find what this machine has to have, the jars for one. Raises StackError."""

    @abstractmethod
    def _start(self, session: Session) -> None:
        """Start all of it, in this session. Raises StackError."""

    @abstractmethod
    def down(self) -> None:
        """End everything. Safe to call twice."""

    @abstractmethod
    def _add(self, names: Collection[str]) -> Mapping[str, Server]:
        """Return components by name, up. Raises StackError; UsageError for one that cannot be had here."""

    @abstractmethod
    def _provision(self) -> Provision:
        """Return how a run is given its resources."""

    def ensure(self, components: Collection[str]) -> None:
        """Start those of the components that are not up yet. Raises StackError, and UsageError for one that it cannot
        have."""
        self._up()
        with self._adding:
            if missing := [name for name in dict.fromkeys(components) if name not in self.servers]:
                self.servers |= self._add(missing)

    def provide(self, run_id: str, parts: Parts, *, root: Path | None = None) -> RunResources:
        """Make the parts of one run and its folder. Raises StackError."""
        self.ensure(components(parts))
        provision = self._provision()
        self._made[run_id] = provision.named(run_id, parts, root=root)
        own = provision.make(run_id, parts, root=root)
        self._secrets |= set(own.secrets)
        return own

    def release(self, own: RunResources, *, keep: bool = False) -> None:
        """Drop what `provide` made; `keep` leaves it until the stack goes down."""
        if not keep and self._session is not None and own.run_id in self._made:
            self._provision().drop(self._made[own.run_id])
            del self._made[own.run_id]

    def _common(
        self, components: Collection[str], spark: Mapping[str, Any], *, options: str = "", **machine: Any
    ) -> dict[str, Any]:
        """Return versions and settings, for run.json: `spark` is more of Spark, `machine` what it runs on, `options`
        those of the command line that get this stack. Holds no secret."""
        session = self._up()
        return {
            "stack": self.name,
            **({"options": options} if options else {}),
            "session": session.id,
            "reapers_replaced": session.rearmed,
            **machine,
            "jars": self._jars.digest,
            **self._described(components),
            "spark": {**jars.installed_spark(components), **spark},
        }

    def _described(self, names: Collection[str]) -> dict[str, Any]:
        """Return what the components say of themselves."""
        return {name: dict(self.servers[name].describe()) for name in sorted(set(names) & set(self.servers))}

    def _ready(self) -> None:
        """Check, before anything is started, whether it may be. Raises StackError and HarnessError."""
        if self._session is not None:
            raise StackError("this stack is up already; take it down first")
        self.logs.mkdir(parents=True, exist_ok=True)
        need_space(self.logs)
        self.servers, self._made, self._secrets = {}, {}, set()

    def _up(self) -> Session:
        if self._session is None:
            raise StackError("the stack is not up")
        return self._session

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.down()


def of_session(names: Collection[str], session: Session, runs: Path) -> dict[str, Started]:
    """Return those of the components that live in a session of ours on any stack, not yet started. Raises StackError,
    UsageError."""
    found = {name: component(name) for name in names}
    return {name: each.in_session(session, runs) for name, each in found.items() if isinstance(each, InSession)}


class StartingStack(SessionStack):
    """One that starts the components itself."""

    def __init__(self, logs: Path, *, needs: Collection[str] = ()) -> None:
        super().__init__(logs, needs=needs)
        self._started: dict[str, Started] = {}
        """Also those that never came up: they may have ports to give back."""

    @abstractmethod
    def _server(self, name: str) -> Started:
        """Return a component that is a server, not yet started. Raises StackError; UsageError for one that cannot be
        had here."""

    def _made_of(self, names: Collection[str]) -> Mapping[str, Started]:
        """Return components by name, not yet started. Raises StackError; UsageError for one that cannot be had here."""
        session = self._up()
        own = of_session(names, session, session.folder / RUNS)
        for name in names:
            self._started[name] = own[name] if name in own else self._server(name)
        return {name: self._started[name] for name in names}

    def _add(self, names: Collection[str]) -> Mapping[str, Server]:
        made = self._made_of(names)
        together([server.start for server in made.values()])
        return made
