"""The process that keeps a stack up for the next commands: `onceproof up` starts it, `onceproof down` ends it.

    python -m harness.suite.shared_owner IDLE_S COMPONENT...

It ends by itself when nobody has used its stack for IDLE_S seconds, or when a part of it dies. Its session's reaper
ends what it started if it is killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from time import monotonic
from typing import cast

from harness.component import COMPONENTS, Lent, Shareable
from harness.errors import HarnessError, Interrupted, StackError, UsageError
from harness.hosts.logs import tail
from harness.session import reaper
from harness.stacks import shared
from harness.stacks.processes import ProcessesStack
from harness.suite import signals, up
from harness.wait import Waiting, until

UP_S = 900.0
"""With class archives to make, on a busy machine."""
DOWN_S = 120.0
LOOK_S = 0.5
LOG = "owner.log"


def shareable(names: Collection[str] = ()) -> tuple[str, ...]:
    """Those components that can be shared: all, or of `names`."""
    able = [kind.about.name for kind in COMPONENTS if isinstance(kind, Shareable)]
    return tuple(name for name in able if not names or name in names)


def start(components: Collection[str], idle_s: float) -> shared.There:
    """Start the owner of a stack and wait until it is up. Raises UsageError if one is up that cannot be used, and the
    HarnessError that it failed with."""
    place = shared.folder()
    if shared.held(place / shared.OWNER):
        return _up_already()
    log = place / LOG
    argv = [sys.executable, "-m", __name__, str(idle_s), *components]
    with log.open("wb") as out:
        child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, cwd=place,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *_path()])},
        )  # fmt: skip
    try:
        found = until("the stack to be up", lambda: _seen(child, log), within_s=UP_S, every_s=0.1)
    except BaseException:
        child.terminate()
        child.wait(DOWN_S)
        raise
    assert isinstance(found, shared.There)
    return found


def _path() -> list[str]:
    return [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]


def _up_already() -> shared.There:
    notes: list[str] = []
    found = shared.usable(notes.append)
    if found is None:
        saw = notes[0].partition(";")[0] if notes else "another command is starting it or taking it down"
        raise UsageError(f"asked for a stack to share; {saw}. End that one first: onceproof down")
    return found


def _seen(child: subprocess.Popen[bytes], log: Path) -> shared.There | Waiting:
    if (code := child.poll()) is not None:
        failure = HarnessError(f"the stack to share could not come up: {tail(log) or f'its owner ended with {code}'}")
        failure.exit_code = code or HarnessError.exit_code
        raise failure
    return shared.there() or Waiting(tail(log) or "its owner has said nothing yet")


def end(*, now: bool) -> bool:
    """End the stack that is up; False if there is none. Raises UsageError while somebody uses it, unless `now`."""
    place = shared.folder()
    found = shared.there()
    if found is None:
        return False
    with shared.locked(place / shared.USERS, fcntl.LOCK_EX) as unused:
        if not (unused or now):
            raise UsageError("asked to end the stack that is up; another command uses it. Wait for it, or give --now")
        reaper.send(found.owner, signal.SIGTERM)
        gone = "the owner of the stack to end"
        until(gone, lambda: not shared.held(place / shared.OWNER) or Waiting("it lives"), within_s=DOWN_S)
    return True


def own(components: Sequence[str], idle_s: float) -> None:
    """Be the owner of a stack until nobody wants it any more. Raises StackError."""
    place = shared.folder()
    with contextlib.ExitStack() as door:
        door.enter_context(signals())
        if not door.enter_context(shared.locked(place / shared.OWNER, fcntl.LOCK_EX)):
            raise StackError("another process owns a stack already")
        door.enter_context(contextlib.suppress(Interrupted))
        for left in (shared.FOUND, shared.ENDED):
            (place / left).unlink(missing_ok=True)
        shutil.rmtree(place / "logs", ignore_errors=True)
        stack = ProcessesStack(place / "logs", needs=components)
        with up(stack), _told(place):
            _write(place / shared.FOUND, described(stack).written())
            until("its last user to go", _unused(place, stack.health, idle_s, door), within_s=inf, every_s=LOOK_S)


@contextmanager
def _told(place: Path) -> Iterator[None]:
    """However it ends, nobody finds it any more, and what its users had is not kept."""
    try:
        yield
    except StackError as failure:
        _write(place / shared.ENDED, str(failure))
        raise
    finally:
        (place / shared.FOUND).unlink(missing_ok=True)
        # The logs of executors may hold what a pipeline logged in with.
        shutil.rmtree(place / "logs" / "executors", ignore_errors=True)


def described(stack: ProcessesStack) -> shared.There:
    """How others find this stack, which is up."""
    spark = stack.spark
    return shared.There(
        session=stack.describe()["session"],
        owner=shared.process(),
        versions=shared.versions(),
        spark={"master": spark.master, "home": str(spark.home), "cores": spark.cores, "worker": spark.worker},
        components={
            name: {"lent": cast(Lent, server).lent(), "about": server.describe()}
            for name, server in stack.servers.items()
        },
    )


def _unused(
    place: Path, health: Callable[[], None], idle_s: float, door: contextlib.ExitStack
) -> Callable[[], bool | Waiting]:
    """Whether nobody has used it for so long; then `door` keeps others out."""
    last = monotonic()

    def look() -> bool | Waiting:
        nonlocal last
        health()
        with contextlib.ExitStack() as users:
            if not users.enter_context(shared.locked(place / shared.USERS, fcntl.LOCK_EX)):
                last = monotonic()
                return Waiting("it is used")
            if monotonic() - last < idle_s:
                return Waiting("it is idle")
            door.push(users.pop_all())
        return True

    return look


def _write(path: Path, text: str) -> None:
    """Whole or not at all, for us alone: it holds a password."""
    temporary = path.with_name(f".{path.name}")
    temporary.unlink(missing_ok=True)
    temporary.touch(mode=0o600)
    temporary.write_text(text, encoding="utf-8")
    temporary.rename(path)


def main(argv: Sequence[str]) -> int:
    """Raises nothing: the one who started us reads our last words."""
    try:
        own(argv[1:], float(argv[0]))
    except HarnessError as failure:
        print(failure, file=sys.stderr, flush=True)
        return failure.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
