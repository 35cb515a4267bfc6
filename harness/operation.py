"""An operation that changes a checkpoint, as the agent in Spark reports it: before it, and after it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from harness.scenario import CrashPoint

LOGS = ("offsets", "commits", "sources", "metadata", "state")
"""What is in a checkpoint."""
VERSION = re.compile(r"(\d+)(_[^.]*)?\.")
"""How the name of a state file begins: `4.delta`, `4.changelog`, `4_<uuid>.zip`."""


class Op(StrEnum):
    """What Spark asks its checkpoint file manager for. A file is created under a temporary name, and renamed when it is
    closed; `cancel` deletes the temporary file instead."""

    CREATE = "create"
    RENAME = "rename"
    DELETE = "delete"
    CANCEL = "cancel"
    MKDIRS = "mkdirs"


class Side(StrEnum):
    """On which side of the operation its thread stands."""

    BEFORE = "before"
    AFTER = "after"


POINTS = {
    ("offsets", Op.CREATE, Side.BEFORE): CrashPoint.BATCH_PLANNING,
    ("offsets", Op.CREATE, Side.AFTER): CrashPoint.BATCH_PLANNING,
    ("offsets", Op.RENAME, Side.BEFORE): CrashPoint.BATCH_PLANNING,
    ("offsets", Op.RENAME, Side.AFTER): CrashPoint.BATCH_PLANNED,
    ("commits", Op.CREATE, Side.BEFORE): CrashPoint.SINK_COMMITTED,
    ("commits", Op.CREATE, Side.AFTER): CrashPoint.SINK_COMMITTED,
    ("commits", Op.RENAME, Side.BEFORE): CrashPoint.SINK_COMMITTED,
    ("commits", Op.RENAME, Side.AFTER): CrashPoint.BATCH_COMMITTED,
}
"""By log, operation and side, where in the protocol the batch stands."""


@dataclass(frozen=True)
class Operation:
    """One side of one operation on the file `name` of the checkpoint at `folder`. `name` is relative to the folder;
    `process` is Spark's name of the JVM: `driver`, or the number of an executor."""

    op: Op
    side: Side
    folder: Path
    name: str
    process: str = "driver"

    @property
    def log(self) -> str:
        """The part of the checkpoint that the file is of, such as `commits`."""
        return self.name.partition("/")[0]

    @property
    def batch(self) -> int | None:
        """The batch that the file is of; None for one of no batch."""
        return file_batch(self.name)

    def below(self, path: str) -> bool:
        """Return whether the file is `path` of the checkpoint, or lies below it."""
        return self.name == path or self.name.startswith(f"{path}/")


def file_batch(name: str) -> int | None:
    """Return the batch that a file of a checkpoint is of; None for one of no batch. Batch N commits version N+1 of its
    state."""
    log, last = name.partition("/")[0], name.rpartition("/")[2]
    if log == "state":
        found = VERSION.match(last)
        return int(found[1]) - 1 if found else None
    return int(last) if last.isdecimal() and log in ("offsets", "commits") else None


def checkpoint(path: Path) -> Path | None:
    """Return the checkpoint that a file of that path is of; None if that is not known."""
    for each in reversed([path, *path.parents]):
        if each.name in LOGS and each.parent != each:
            return each.parent
    return None
