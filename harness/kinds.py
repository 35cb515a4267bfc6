"""What there is of each kind: triggers, faults and so on, found by name.

A kind is one module of its package here (`harness/faults/kill_driver.py`) that calls its one object `KIND`. Other
installed packages add theirs by an entry point of the group `onceproof.<package>` (`onceproof.faults`); a repository
adds its own in the `conftest.py` that pytest loads, by `harness.faults.FAULTS.register(...)`. No other list of kinds
stands anywhere.
"""

from __future__ import annotations

import importlib
import pkgutil
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from harness.errors import HarnessError, UsageError


@dataclass(frozen=True, kw_only=True)
class About:
    """What a reader is told of a kind: its name as a scenario file writes it, what it does in one line, one use of it
    as a line of a scenario file, and the model of its part of the file, `harness.fields.shape.Shape`."""

    name: str
    summary: str
    example: str
    options: Any


class Kind(Protocol):
    """Anything that a registry can hold."""

    @property
    def about(self) -> About:
        """Who it is."""


class Refusal(NamedTuple):
    """Why something of a file cannot be. `key` is to blame, of the step, its `when` or the input; empty for all of
    `when`. `words` follow the key's own path in the message, or are the `whole` of it, `{path}` in them standing for
    that of `when`."""

    key: str
    words: str
    whole: bool = False


Refusals = Iterator[Refusal]
K = TypeVar("K", bound=Kind)


@dataclass
class Registry(Generic[K]):
    """The kinds of one noun, such as `fault`; `package` is where ours are, such as `harness.faults`."""

    noun: str
    package: str
    _known: dict[str, K] = field(default_factory=dict)
    _origin: dict[str, str] = field(default_factory=dict)
    _found: bool = False
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def register(self, kind: K, origin: str = "") -> None:
        """Add a kind; `origin` says where it comes from. Raises UsageError if another one has its name."""
        name, origin = kind.about.name, origin or type(kind).__module__
        if name in self._known and self._known[name] is not kind:
            asked = f"asked to register the {self.noun} {name!r} of {origin}"
            raise UsageError(f"{asked}; {self._origin[name]} has registered one of that name. Give it another name")
        self._known[name], self._origin[name] = kind, origin

    def all(self) -> Mapping[str, K]:
        """Every kind by its name, in order of name. Raises HarnessError for a package whose kind cannot be loaded."""
        with self._lock:
            if not self._found:
                self._ours()
                self._of_others()
                self._found = True
            return dict(sorted(self._known.items()))

    def __iter__(self) -> Iterator[K]:
        return iter(self.all().values())

    def __getitem__(self, name: str) -> K:
        """The kind of that name. Raises UsageError if there is none: its package may not be installed here."""
        if name not in self.all():
            known = ", ".join(self.all())
            raise UsageError(f"asked for the {self.noun} {name!r}; there are {known}. Install the package that has it")
        return self._known[name]

    def _ours(self) -> None:
        for module in pkgutil.iter_modules(importlib.import_module(self.package).__path__, f"{self.package}."):
            if (kind := getattr(importlib.import_module(module.name), "KIND", None)) is not None:
                self.register(kind)

    def _of_others(self) -> None:
        group = f"onceproof.{self.package.rpartition('.')[2]}"
        for point in entry_points(group=group):
            origin = f"{point.dist.name if point.dist else 'a package'} ({point.value})"
            try:
                kind = point.load()
            except Exception as failure:
                asked = f"asked {origin} for the {self.noun} {point.name!r}, its entry point in {group}"
                raise HarnessError(f"{asked}; saw {failure!r}. Mend or remove that package") from failure
            self.register(kind, origin)
