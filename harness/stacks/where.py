"""Where a cluster is that is already there, as a user says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import UsageError

STACKS = ("processes", "containers", "external")
NEEDED = ("kafka", "postgres", "spark_master")
SAID = {
    "kafka": ("HOST:PORT", "external: its Kafka"),
    "postgres": (
        "ADDRESS",
        "external: its Postgres, postgresql://user@host/database; password also in PGPASSWORD",
    ),
    "spark_master": ("URL", "external: its Spark, spark://host:port"),
    "folder": ("FOLDER", "external: a folder that executors see too, for checkpoints"),
    "driver_host": ("HOST", "external: how executors reach this machine (default: as the master sees it)"),
    "executor_python": ("PROGRAM", "external: what executors run Python with (default: python3); of our own version"),
}
"""Each part with the word for its value and what it means."""


@dataclass(frozen=True, kw_only=True)
class Where:
    """`folder` is one that this machine and the executors see under the same path; `driver_host` is how the executors
    reach this machine, `executor_python` what they run Python with."""

    kafka: str
    postgres: str = field(repr=False)
    spark_master: str
    folder: Path | None = None
    driver_host: str | None = None
    executor_python: str = "python3"


def where(stack: str, given: Mapping[str, str | None], *, prefix: str = "--") -> Where | None:
    """The cluster that was asked for with options named `prefix` and a part's name; None on another stack.

    Raises UsageError if an address is missing, or if nobody asked for `external`."""
    found = {name: value for name, value in given.items() if value}
    if stack not in STACKS:
        raise UsageError(f"asked for the stack {stack!r}; there are {', '.join(STACKS)}")
    if stack != "external":
        if found:
            raise UsageError(f"asked for {_options(list(found), prefix)} on the stack {stack}; that goes with external")
        return None
    if missing := [name for name in NEEDED if name not in found]:
        raise UsageError(f"asked for the stack external; it also needs {_options(missing, prefix)}")
    named = found.pop("folder", None)
    folder = Path(named).absolute() if named else None
    if folder is not None and not folder.is_dir():
        raise UsageError(f"asked for {prefix}folder {folder}; there is none here; make it, where executors see it too")
    return Where(**found, folder=folder)


def _options(names: Sequence[str], prefix: str) -> str:
    return ", ".join(prefix + name.replace("_", "-") for name in names)
