"""What there is of each kind: triggers, faults and so on, found by name.

A kind is one module of its package here (`harness/faults/kill_driver.py`), or of the folder of its component
(`harness/components/postgres/sink`), and calls its one object `KIND`. Where a component has several of a noun, each is
a module of a package (`harness/components/hdfs/fault/kill_namenode.py`). Other installed packages add theirs by an
entry point of the group `onceproof.<package>` (`onceproof.faults`); a repository adds its own in the `conftest.py` at
its root, by `harness.faults.FAULTS.register(...)`. No other list of kinds stands anywhere.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from harness.errors import HarnessError, UsageError


@dataclass(frozen=True, kw_only=True)
class About:
    """The description of a kind: its name in a scenario file, what it does in one line, and an example. The example is
    a line of a scenario file. `options` is the model of its part of the file, `harness.fields.shape.Shape`. For a
    trigger `options` is the type of its value, and `beside` the model of the keys beside the value."""

    name: str
    summary: str
    example: str
    options: Any
    beside: Any = None

    def normalised(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of a noun without those that have their default, each member of an enum as plain text.
        Raises UsageError for an option that the kind does not take."""
        fields = self.options.model_fields
        if unknown := options.keys() - fields.keys():
            takes = ", ".join(fields) or "nothing"
            raise UsageError(f"asked for {self.name!r} with {', '.join(sorted(unknown))}; it takes {takes}")
        known = {name: str(value) if isinstance(value, str) else value for name, value in options.items()}
        return {name: value for name, value in known.items() if value != fields[name].default}


class Kind(Protocol):
    """Anything that a registry can hold."""

    @property
    def about(self) -> About:
        """Who it is."""


class Refusal(NamedTuple):
    """Why something of a file cannot be. `key` is to blame, of the step, its `when`, the input or a sink; empty for all
    of it. `words` follow the key's own path in the message, or are the `whole` of it. In them `{path}` stands for that
    of where the key is."""

    key: str
    words: str
    whole: bool = False


Refusals = Iterator[Refusal]
COMPONENTS = "harness.components"
NAMED = re.compile(r"^KIND(?:: [^=\n]+)? = ", re.MULTILINE)
K = TypeVar("K", bound=Kind)


@dataclass
class Registry(Generic[K]):
    """The kinds of one noun, such as `fault`; `package` is where ours are, such as `harness.faults`."""

    noun: str
    package: str
    protocol: Any = None
    """What each of them has."""
    _known: dict[str, K] = field(default_factory=dict)
    _origin: dict[str, str] = field(default_factory=dict)
    _found: bool = False
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def register(self, kind: K, origin: str = "") -> None:
        """Add a kind; `origin` says where it comes from. Raises UsageError if another one has its name."""
        # Ours and those of packages come first: a package that takes one of their names is to blame.
        self.all()
        module = type(kind).__module__
        # What is registered is of others, an object of one of our classes too.
        self._add(kind, origin or (f"an object of {module}" if module.startswith("harness.") else module))

    def _add(self, kind: K, origin: str) -> None:
        if wrong := misshapen(kind, self.protocol):
            raise UsageError(f"asked to register a {self.noun} of {origin}; {wrong}. See docs/extending.md")
        name = kind.about.name
        if name in self._known and self._known[name] is not kind:
            request = f"asked to register the {self.noun} {name!r} of {origin}"
            raise UsageError(f"{request}; {self._origin[name]} has registered one of that name. Give it another name")
        self._known = dict(sorted({**self._known, name: kind}.items()))
        self._origin[name] = origin

    def all(self) -> Mapping[str, K]:
        """Return every kind by its name, in order of name. Raises HarnessError for a package whose kind cannot be
        loaded."""
        with self._lock:
            if not self._found:
                # At once: a package that is loaded here may register a kind itself.
                self._found = True
                try:
                    self._ours()
                    self._of_others()
                except BaseException:
                    self._found = False
                    raise
            return self._known

    def __iter__(self) -> Iterator[K]:
        return iter(self.all().values())

    def __getitem__(self, name: str) -> K:
        """Return the kind of that name. Raises UsageError if there is none: its package may not be installed here."""
        if name not in self.all():
            known = ", ".join(self.all())
            raise UsageError(f"asked for the {self.noun} {name!r}; there are {known}. Install the package that has it")
        return self._known[name]

    def origin(self, name: str) -> str:
        """Return the module of ours that has the kind of that name, or the package that brought it. Raises UsageError
        as `self[name]` does."""
        self[name]
        return self._origin[name]

    def _ours(self) -> None:
        beside = [f"{component}.{self.noun}" for component in _modules(COMPONENTS)]
        for name in (*_modules(self.package), *beside):
            if _names_kind(name):
                self._add(importlib.import_module(name).KIND, name)
            elif name in beside and _is_package(name):
                for each in filter(_names_kind, _modules(name)):
                    self._add(importlib.import_module(each).KIND, each)

    def _of_others(self) -> None:
        group = f"onceproof.{self.package.rpartition('.')[2]}"
        for point in entry_points(group=group):
            origin = f"{point.dist.name if point.dist else 'a package'} ({point.value})"
            try:
                kind = point.load()
            except Exception as failure:
                request = f"asked {origin} for the {self.noun} {point.name!r}, its entry point in {group}"
                raise HarnessError(f"{request}; saw {failure!r}. Mend or remove that package") from failure
            self._add(kind, origin)


def misshapen(kind: object, protocol: Any) -> str:
    """Return what keeps an object from being a kind; empty if nothing does."""
    if isinstance(kind, type):
        return f"saw the class {kind.__name__}, not an object of it: {kind.__name__}()"
    about = getattr(kind, "about", None)
    if not isinstance(about, About):
        return f"saw {type(kind).__name__}, whose `about` is no About"
    members = [name for name in vars(protocol or Kind) if not name.startswith("_")]
    if lacks := [name for name in members if getattr(kind, name, None) is None]:
        return f"saw {about.name!r}, which has no {', '.join(lacks)}"
    if isinstance(getattr(kind, "components", ()), str):
        return f"saw {about.name!r}, whose `components` is a text: put it into a tuple"
    return ""


def _names_kind(module: str) -> bool:
    """Return whether there is such a module, with a `KIND`. What is beside the kinds may import a server's client,
    which reading a scenario file does not need: so it is not imported to see."""
    spec = importlib.util.find_spec(module)
    return bool(spec and spec.origin and NAMED.search(Path(spec.origin).read_text(encoding="utf-8")))


def _is_package(module: str) -> bool:
    spec = importlib.util.find_spec(module)
    return spec is not None and spec.submodule_search_locations is not None


def _modules(package: str) -> list[str]:
    """Return the modules and packages in a package of ours, in order of name."""
    path = importlib.import_module(package).__path__
    return [module.name for module in pkgutil.iter_modules(path, f"{package}.")]
