"""Named places in a pipeline's own code where the harness may stop it: inert unless armed.

The only module of the harness that a pipeline may import, and none has to. It imports nothing of ours.

    from harness import failpoint
    failpoint.reach("offsets-saved", batch=7)
    failpoint.reach_in_task("row-written")

Armed means: the environment variable `ONCEPROOF_FAILPOINTS` names a folder, and a file `NAME` (any batch) or
`NAME@BATCH` is in it. A program that reaches an armed failpoint leaves a file `reached.NAME.PID` that holds the batch.
It waits until it is killed, or the file that armed it is gone, or `HOLD_S` have passed. Of each failpoint that a
process comes to, armed or not, a file `seen.NAME` tells, and `seen-in-task.NAME` where that is in a task: `onceproof
sweep` asks for them."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from time import monotonic

FOLDER = "ONCEPROOF_FAILPOINTS"
BATCH = "streaming.sql.batchId"
"""The local property by which a task of Spark's knows its batch."""
HOLD_S = 600.0
"""Long enough for the slowest machine: who went on would be struck behind the place that it named."""
SEEN, SEEN_IN_TASK = "seen.", "seen-in-task."
_reached = set[str]()


def reach(name: str, *, batch: int | None = None) -> None:
    """Stand still here if the harness asked for it; else return at once."""
    folder = os.environ.get(FOLDER)
    if not folder:
        return
    if name not in _reached:
        _reached.add(name)
        with suppress(OSError):
            Path(folder).mkdir(exist_ok=True)
            Path(folder, f"{SEEN}{name}").touch()
            if _in_task():
                Path(folder, f"{SEEN_IN_TASK}{name}").touch()
    names = [name] if batch is None else [name, f"{name}@{batch}"]
    armed = next((path for path in (Path(folder, n) for n in names) if path.exists()), None)
    if armed is None:
        return
    # A rename makes the word visible whole or not at all.
    word = Path(folder, f".reached.{name}.{os.getpid()}")
    word.write_text("" if batch is None else str(batch), encoding="utf-8")
    word.rename(Path(folder, word.name[1:]))
    end = monotonic() + HOLD_S
    pause = threading.Event()
    while armed.exists() and monotonic() < end:
        pause.wait(0.01)


def _in_task() -> bool:
    """Return whether this process runs a task of Spark's. Without Spark, or with its Connect client alone, none."""
    context = getattr(sys.modules.get("pyspark"), "TaskContext", None)
    return context is not None and context.get() is not None


def seen(folder: Path) -> dict[str, bool]:
    """Return the failpoints that the processes of a run came to, the first one first; true for one that a task came
    to. `folder` is where they are armed."""
    found = sorted(folder.glob(f"{SEEN}*"), key=lambda path: path.stat().st_mtime_ns)
    names = [path.name.removeprefix(SEEN) for path in found]
    return {name: (folder / f"{SEEN_IN_TASK}{name}").exists() for name in names}


def reach_in_task(name: str) -> None:
    """`reach`, called in a task of Spark's: in its batch, or in any where it has none."""
    if not os.environ.get(FOLDER):
        return
    from pyspark import TaskContext

    task = TaskContext.get()
    number = task.getLocalProperty(BATCH) if task is not None else None
    reach(name, batch=int(number) if number else None)
