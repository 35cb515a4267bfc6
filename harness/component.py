"""What a component is made of: a server that a run needs, such as Kafka or Postgres, and what can be asked of it.

One module says of each kind what is known of it without a client (`harness/components/kafka/__init__.py`); how it is
run stands beside it. A component that has an ability has its method: some only run as child processes, some can be
found at an address.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from harness.checkpoint import Offsets
from harness.errors import StackError, UsageError
from harness.kinds import About, Registry
from harness.resources import Resources, component_of

if TYPE_CHECKING:
    # Scenario files are read without what runs anything.
    from harness.hosts.container import Container
    from harness.hosts.engine import Engine
    from harness.hosts.images import Image
    from harness.hosts.processes import ProcessHost
    from harness.remote import RemoteFolder
    from harness.remote.proxy.commits import Commits
    from harness.session.session import Session


class Server(Protocol):
    """A component that runs, started by us or by the user."""

    def describe(self) -> Mapping[str, Any]:
        """Return version and settings, for run.json; no secret. Raises StackError if it does not answer."""

    def provide(self, run_id: str, parts: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Resources]:
        """Make a run's parts, by name (empty for the plain one) what is asked of each. Raises StackError."""

    def drop(self, run_id: str, names: Collection[str]) -> None:
        """Take away those parts of a run, whatever still uses them; silent about what is not there. Raises StackError,
        once everything was tried."""

    def close(self) -> None:
        """Close our connections and give back what was reserved; ending it is the session's work."""


class Started(Server, Protocol):
    """One that we start."""

    def start(self) -> None:
        """Start it and return when it answers and is the one that was started. Raises StackError."""

    def check(self) -> None:
        """Raise StackError with the end of its log if it is dead."""


@runtime_checkable
class Boxed(Started, Protocol):
    """One that we start in a container."""

    @property
    def container(self) -> Container | None:
        """The container; None before its start."""


class Addressed(Server, Protocol):
    """One that is the user's."""

    @property
    def address(self) -> str:
        """How it is found again, secrets included."""

    @property
    def plain(self) -> str:
        """The same as it may be shown."""


class Component(Protocol):
    """A kind of server."""

    @property
    def about(self) -> About:
        """Who it is."""

    @property
    def gives(self) -> tuple[str, ...]:
        """The placeholders of a part, without its label: `dsn` for `{postgres.dsn}`."""

    @property
    def bare(self) -> tuple[str, ...]:
        """Those of them that also stand for the plain part's alone: `{topic}`."""


@runtime_checkable
class AsProcesses(Protocol):
    """It can run as child processes of ours."""

    def as_processes(self, host: ProcessHost) -> Started:
        """Return one of it, not yet started. Raises StackError."""


@runtime_checkable
class AsContainer(Protocol):
    """It can run in a container."""

    @property
    def image(self) -> Image:
        """What it is made from."""

    def as_container(self, engine: Engine) -> Boxed:
        """Return one of it, not yet started. Raises StackError."""


@runtime_checkable
class InSession(Protocol):
    """It is no server: on every stack it lives in our own session."""

    def in_session(self, session: Session, runs: Path) -> Started:
        """Return one of it, not yet started. `runs` holds each run's folder, which driver and executors see under that
        path wherever they see the checkpoint. Raises StackError."""


@runtime_checkable
class AtAddress(Protocol):
    """It can be used where it is."""

    def at(self, address: str) -> Addressed:
        """Return the one that is there. Raises UsageError for an address that is none; it is not asked yet."""


@runtime_checkable
class Lent(Started, Protocol):
    """One that we start, and that other processes of this user may use while it is up."""

    def lent(self) -> str:
        """Return how it is found by them; may hold a secret."""


@runtime_checkable
class Shareable(Protocol):
    """What it starts can be used by other processes: it is `Lent`."""

    def borrowed(self, text: str) -> Server:
        """Return the one that `text` leads to; it is not asked yet."""


@runtime_checkable
class OnDemand(Protocol):
    """Its server is fetched for those who ask for it: `onceproof up` without scenarios leaves it out."""

    on_demand: bool


@runtime_checkable
class FoundByName(Protocol):
    """A pipeline finds a part of it by a placeholder alone: no variable of its process leads there, as libpq's do."""

    by_placeholder: bool


@runtime_checkable
class SetsUp(Protocol):
    """A part of it can be prepared by a text of the scenario, such as SQL."""

    def set_up(self, own: Resources, text: str) -> None:
        """Do what the text says, placeholders filled in. Raises SetupError."""


@runtime_checkable
class ReadsSetUp(Protocol):
    """It sees of such a text that it is none, before it is done."""

    def no_set_up(self, text: str) -> str:
        """Return why it does nothing with the text, in words that follow the text's key; empty if nothing shows before.
        What is in it for placeholders are other words than in a run."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """How a program shows that it reaches a component. `option` is a key of Spark's readers and writers or of a client,
    `format` their format, empty for any; `call` is a function of a client, and `argument` the name of the one that
    counts, beside its first. `text` is what a scenario says in its place, `$name` a name for the part. `writes`: it is
    where the pipeline writes. `sets`: how the names of variables begin that a run sets, and that lead there too."""

    text: str
    option: str = ""
    format: str = ""
    call: str = ""
    argument: str = ""
    writes: bool = False
    sets: str = ""


@runtime_checkable
class Recognised(Protocol):
    """`onceproof init` sees in a program's source that it is used."""

    marks: Sequence[Mark]


@runtime_checkable
class HasClient(Protocol):
    """Pipelines in Python reach it by a module, which an image of Spark has to have."""

    @property
    def client(self) -> str:
        """The name that is imported."""


@dataclass(frozen=True)
class MachineCheck:
    """A check of one thing that this machine must have: `see` returns what was found, and raises if it is not good
    enough. An optional one never makes the machine unfit."""

    name: str
    wanted: str
    see: Callable[[], str]
    cure: str
    optional: bool = False


FETCH = "run a scenario that asks for it, with a network"


def server_check(name: str, wanted: str, see: Callable[[], str], *, cure: str = FETCH) -> MachineCheck:
    """Return the check of a server that is fetched once a scenario needs it. `see` raises if it is not there, or cannot
    run here."""
    return MachineCheck(
        f"{name} server", f"{wanted}, fetched when a scenario first asks for it", see, cure, optional=True
    )


@runtime_checkable
class NeedsOfMachine(Protocol):
    """It needs something of this machine before it can run as child processes."""

    @property
    def machine_checks(self) -> Sequence[MachineCheck]:
        """What `onceproof doctor` checks."""


def remembered(read: Callable[[], Offsets | None]) -> Callable[[], Offsets]:
    """Return a function that returns what `read` does, or its last value while it returns None."""
    last: Offsets = {}

    def newest() -> Offsets:
        nonlocal last
        found = read()
        last = last if found is None else found
        return last

    return newest


@dataclass(frozen=True)
class Followed:
    """Where a pipeline manages its own offsets. `offsets`: the next ones that it calls done. `saving`: the statements
    of open transactions that have written there."""

    offsets: Callable[[], Offsets]
    close: Callable[[], None]
    saving: Callable[[], tuple[str, ...]] = lambda: ()


@runtime_checkable
class AnswersQueries(Protocol):
    """A pipeline may keep its offsets in it, where a query of the scenario finds them."""

    def followed(self, own: Resources, query: str) -> Followed:
        """`query` gives (partition, next offset). Raises StackError; `offsets` raises SetupError for a wrong query."""


@runtime_checkable
class KeepsGroups(Protocol):
    """A pipeline may commit its offsets to it, as a consumer group."""

    def group(self, own: Resources) -> Followed:
        """Return the group that the run was given. Raises StackError."""


@runtime_checkable
class KeepsCheckpoints(Protocol):
    """It can keep a pipeline's checkpoint. A part whose request has it (`{"checkpoint": True}`) gives the bare
    placeholder `{checkpoint}`, as the address of a folder that is not there yet."""

    def checkpoints(self, own: Resources) -> RemoteFolder:
        """Return that folder. Raises StackError."""


@runtime_checkable
class Substitutes(Protocol):
    """It is a smaller form of another component, and faults on that one do not strike it: `apart` says why, in words
    that follow its name."""

    substitutes: str
    apart: str


@runtime_checkable
class ShowsCommits(Protocol):
    """Keeps checkpoints, and the requests by which they are committed can be seen on their way and held: a
    part that is asked for it (`{"proxy": True}`) is reached through a proxy."""

    def commits(self, own: Resources) -> Commits | None:
        """Return what sees them; None for a part that was not asked for it."""


@runtime_checkable
class NeedsComponents(Protocol):
    """A trigger or a fault that asks or strikes components: a run with it in its schedule is given a part of each."""

    @property
    def components(self) -> tuple[str, ...]:
        """Their names."""


COMPONENTS: Registry[Component] = Registry("component", "harness.components", Component)


def component(label: str) -> Component:
    """Return the component of a label. Raises UsageError if there is none."""
    return COMPONENTS[component_of(label)]


def needs(kind: object) -> tuple[str, ...]:
    """Return the components that a trigger or a fault needs."""
    # A night's plans ask a million times, and Python 3.11 takes 30 us to compare an object with a protocol.
    found: tuple[str, ...] = getattr(kind, "components", ())
    return found


def able(label: str, ability: type[Any], words: str) -> Any:
    """Return the component of a label, which has to have an ability. Raises UsageError: it `words`."""
    found = component(label)
    if not isinstance(found, ability):
        raise UsageError(f"asked for {label}; {component_of(label)} {words}")
    return found


def pip_install(extra: str) -> str:
    """Return the command that installs an extra of Onceproof. pip takes the Onceproof that is installed, also one that
    was installed from a path."""
    return f"pip install 'onceproof[{extra}]'"


def no_package(request: str, package: str | None, extra: str) -> str:
    """Return the text of an error: what was asked for needs a Python package that is not installed."""
    return f"asked for {request}; there is no Python package {package}; {pip_install(extra)}"


def installed(component: str, package: str, *, extra: str = "") -> str:
    """Return the version of the Python package that a component's server or tables are read with; `extra` is ours that
    brings it, where it has another name than the component. Raises StackError where the package is not there. Whether
    its version fits is not asked: nothing that onceproof needs compares versions."""
    if importlib.util.find_spec(package) is None:
        raise StackError(no_package(component, package, extra or component))
    return importlib.metadata.version(package)
