"""Where a cluster is that is already there, as a user says it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import UsageError

AT = "at"
ADDRESS_OPTIONS = {
    AT: ("NAME=ADDRESS", "external: where a component is, such as kafka=HOST:PORT; once for each"),
    "spark_master": ("URL", "external: its Spark, spark://host:port"),
    "shared_dir": ("FOLDER", "external: a folder that executors see too, for checkpoints"),
    "driver_host": ("HOST", "external: how executors reach this machine (default: as the master sees it)"),
    "executor_python": ("PROGRAM", "external: what executors run Python with (default: python3); of our own version"),
}
"""Each part with the word for its value and what it means."""


@dataclass(frozen=True, kw_only=True)
class Where:
    """`at` has the address of each component. `shared_dir` is a folder that this machine and the executors see under
    the same path; `driver_host` is how executors reach this machine, `executor_python` what they run Python with."""

    spark_master: str
    at: Mapping[str, str] = field(default_factory=dict, repr=False)
    shared_dir: Path | None = None
    driver_host: str | None = None
    executor_python: str = "python3"


def where(stack: str, given: Mapping[str, Any], *, prefix: str = "--") -> Where | None:
    """Return the cluster that was asked for with options named `prefix` and a part's name; None on another stack.

    Raises UsageError for a stack that there is not, or for addresses on one that takes none. Also raises it if there is
    no Spark among them, or no such folder."""
    # pytest reads the words above at each start, with scenarios or without.
    from harness.stacks.kind import AtAddresses
    from harness.stacks.registry import STACKS, names

    found = {name: value for name, value in given.items() if value}
    if stack not in STACKS.all():
        raise UsageError(f"asked for the stack {stack!r}; there are {', '.join(names())}")
    if not isinstance(STACKS[stack], AtAddresses):
        if found:
            goes = " or ".join(kind.about.name for kind in STACKS if isinstance(kind, AtAddresses))
            request = f"asked for {_options(list(found), prefix)} on the stack {stack}"
            raise UsageError(f"{request}; that goes with {goes or 'no stack'}")
        return None
    at = dict(_pair(each, prefix) for each in found.pop(AT, ()))
    if "spark_master" not in found:
        raise unnamed(stack, prefix=prefix)
    named = found.pop("shared_dir", None)
    shared = Path(named).absolute() if named else None
    if shared is not None and not shared.is_dir():
        request = f"asked for {_options(['shared_dir'], prefix)} {shared}"
        raise UsageError(f"{request}; there is none here; make it, where executors see it too")
    return Where(at=at, shared_dir=shared, **found)


def unnamed(stack: str, *, prefix: str = "--") -> UsageError:
    """That the command line does not say where the Spark of that stack is."""
    return UsageError(f"asked for the stack {stack}; it also needs {_options(['spark_master'], prefix)}")


def _pair(text: str, prefix: str) -> tuple[str, str]:
    """Return a component and its address, which may hold a password. Raises UsageError."""
    name, equals, address = text.partition("=")
    if not equals or not name.isidentifier() or not address:
        raise UsageError(f"{prefix}{AT} must be NAME=ADDRESS, such as kafka=HOST:PORT; what was given is none")
    return name, address


class NoAddress(UsageError):
    """The command line does not say where a component is."""


def missing(names: Collection[str]) -> NoAddress:
    """That the command line does not say where these components are."""
    return NoAddress(f"asked for the stack external; it also needs {', '.join(map(option, names))}")


def option(name: str) -> str:
    """Return how an address of a component is given."""
    return f"--{AT} {name}=ADDRESS"


def _options(names: Sequence[str], prefix: str) -> str:
    return ", ".join(prefix + name.replace("_", "-") for name in names)
