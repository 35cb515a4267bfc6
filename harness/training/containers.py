"""Class data archives (see `harness.machine.class_data`) for the drivers and executors that run in containers.

    python -m harness.training.containers     make what is missing (a minute, once) and print the folder

They are made in containers too, since an archive fits one JDK and one class path: the image's.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from signal import SIGCONT, SIGSTOP, Signals
from typing import TYPE_CHECKING

from harness import wait
from harness.component import no_package
from harness.errors import HarnessError, StackError
from harness.hosts.local import LocalProcess
from harness.machine import cache, class_data
from harness.machine.class_data import IN_CONTAINERS, Kind
from harness.spark.standalone_processes import WORKER
from harness.training import processes as training

if TYPE_CHECKING:
    from harness.stacks.containers.stack import ContainersStack

RUN = "training"
HELD_S = 600.0


def train(stack: ContainersStack) -> Path:
    """Make the archives if they are missing, with a stack that is up; returns their folder. Raises StackError when the
    training run fails; the stack works without archives, only slower."""
    class_archives = stack.class_archives
    with wait.locked(class_archives / ".lock", within_s=HELD_S):
        if not class_data.complete(class_archives, IN_CONTAINERS):
            _run(stack, class_archives)
            cache.trim(class_archives.parent, most=training.KEPT)
    return class_archives


def before(notify: Callable[[str], object]) -> None:
    """Nothing: they are made in containers of the stack."""


def after(stack: ContainersStack, notify: Callable[[str], object]) -> None:
    """Make the archives with a stack that is up if they are missing, and say so; if they cannot be made, say that it is
    slower without."""
    if class_data.complete(stack.class_archives, IN_CONTAINERS):
        return
    notify(training.MAKING)
    try:
        train(stack)
    except (HarnessError, OSError) as error:
        notify(training.WITHOUT.format(error))


def _run(stack: ContainersStack, class_archives: Path) -> None:
    own = stack.provide(RUN, training.needed())
    try:
        # Here, since this is what its containers may write to.
        made = {kind: own.folder / f"{kind}.jsa" for kind in IN_CONTAINERS}
        words = {kind: " ".join(class_data.training_flags(path)) for kind, path in made.items()}
        gate, log = own.folder / "stop", stack.logs / f"{RUN}.log"
        program = training.training_app(
            own,
            gate=gate,
            conf={"spark.executor.extraJavaOptions": words[Kind.EXECUTOR]},
            env={"SPARK_SUBMIT_OPTS": words[Kind.DRIVER]},
        )
        training.feed(own)
        daemons = [
            each for container in stack.spark.workers for each in container.processes() if WORKER in each.command()
        ]
        try:
            training.drive(lambda: stack.launch(own, program, number=1, log=log), gate, lambda: _all(daemons, SIGSTOP))
            wait.until("the executor to end", lambda: not stack.executors(own), within_s=training.DUMP_S)
        finally:
            _all(daemons, SIGCONT)
        if missing := [str(kind) for kind, path in made.items() if not path.is_file()]:
            raise StackError(f"the training run wrote no archive for {', '.join(missing)}; its log: {log}")
        for path in made.values():
            whole = shutil.copy(path, class_archives / f".{path.name}")
            Path(whole).rename(class_archives / path.name)
    finally:
        stack.release(own)


def _all(processes: Sequence[LocalProcess], what: Signals) -> None:
    for process in processes:
        process.send(what)


def main() -> int:
    """Train and print the folder; 0, or the error's exit code with one line."""
    try:
        from harness.stacks.containers.stack import ContainersStack
    except ModuleNotFoundError as missing:
        print(f"onceproof: {no_package('class archives for containers', missing.name, 'containers')}", file=sys.stderr)
        return StackError.exit_code
    try:
        with tempfile.TemporaryDirectory() as logs, ContainersStack(Path(logs)) as stack:
            if not class_data.complete(stack.class_archives, IN_CONTAINERS):
                print(training.MAKING, flush=True)
            print(f"class archives in {train(stack)}")
    except (HarnessError, OSError) as error:
        print(f"onceproof: {error}", file=sys.stderr)
        return StackError.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
