"""The process that keeps a stack up for the next commands: `onceproof up` starts it, `onceproof down` ends it.

    python -m harness.suite.shared_owner IDLE_S KINDS COMPONENT...      KINDS: where kinds are registered, as JSON

It ends by itself when no run has used its stack for IDLE_S seconds, or when a part of it dies. Its session's reaper
ends what it started if it is killed.
"""

from __future__ import annotations

import contextlib
import json
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

from harness.component import COMPONENTS, Lent, NeedsOfMachine, OnDemand, Shareable
from harness.errors import HarnessError, Interrupted, StackError, UsageError, WaitError
from harness.fields.own_kinds import load_own_kinds
from harness.hosts.logs import tail
from harness.machine import cache
from harness.session import reaper
from harness.session.session import private
from harness.stacks.processes import shared
from harness.stacks.processes.stack import ProcessesStack
from harness.suite import signals
from harness.suite.suite_stack import up
from harness.wait import Waiting, locked, until

UP_S = 900.0
"""With class archives to make, on a busy machine."""
DOWN_S = 120.0
POLL_S = 0.5
MOMENT_S = 1.0
LOG = "owner.log"
STARTING = "starting.lock"
"""Held by `onceproof up` until its stack is up."""
LOST = 75
"""The exit status of an owner before which another one was there."""


class _Lost(StackError):
    """Another process owns a stack already."""

    exit_code = LOST


def shareable(names: Collection[str] = ()) -> tuple[str, ...]:
    """Return those components that can be shared, of `names`; without any, all that every installation has."""
    able = [kind for kind in COMPONENTS if isinstance(kind, Shareable)]
    return tuple(kind.about.name for kind in able if (kind.about.name in names if names else not optional(kind)))


def optional(kind: object) -> bool:
    """Return whether it needs what is not installed with us, or downloaded for every stack."""
    missing = isinstance(kind, NeedsOfMachine) and any(check.optional for check in kind.machine_checks)
    return missing or isinstance(kind, OnDemand)


def start(components: Collection[str], idle_s: float, *, kinds: Sequence[Path]) -> shared.There:
    """Start the owner of a stack and wait until it is up. `kinds`: files in whose repositories kinds are registered.
    Raises UsageError if one is up that cannot be used, and the HarnessError that it failed with."""
    place = shared.folder()
    # Its owner holds another lock once it has imported what it needs, which takes seconds.
    with locked(place / STARTING, within_s=UP_S):
        return _started(place, components, idle_s, kinds)


def _started(place: Path, components: Collection[str], idle_s: float, kinds: Sequence[Path]) -> shared.There:
    if _settled(place) is not None:
        return _up_already(components)
    log = place / LOG
    where = json.dumps([str(path.absolute()) for path in kinds])
    argv = [sys.executable, "-m", "harness.suite.shared_owner", str(idle_s), where, *components]
    paths = [str(Path(__file__).parents[2]), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    named = {shared.VARIABLE: str(place), cache.VARIABLE: str(cache.root()), "PYTHONPATH": os.pathsep.join(paths)}
    # It may be another one's, who is faster: the owner empties it.
    with log.open("ab") as out:
        child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, cwd=place,
            env={**os.environ, **named},
        )  # fmt: skip
    try:
        found = until("the stack to be up", lambda: _seen(child, log), within_s=UP_S, every_s=0.1)
    except _Lost:
        _settled(place)
        return _up_already(components)
    except BaseException:
        child.terminate()
        try:
            child.wait(DOWN_S)
        except subprocess.TimeoutExpired:
            child.kill()
        raise
    assert isinstance(found, shared.There)
    return found


def _settled(place: Path, *locks: str) -> shared.There | None:
    """Return the stack that is up, None if there is none, once no process is starting one or taking it down: none holds
    its owner's lock, nor one of `locks`. Raises WaitError."""

    def check() -> shared.There | bool | Waiting:
        busy = any(shared.held(place / each) for each in (shared.OWNER, *locks))
        return shared.there() or not busy or Waiting(tail(place / LOG))

    found = until("the stack that is coming up or going down", check, within_s=UP_S, every_s=0.1)
    return found if isinstance(found, shared.There) else None


def _up_already(components: Collection[str]) -> shared.There:
    notes: list[str] = []
    found = shared.usable(notes.append)
    if found is None:
        saw = notes[0].partition(";")[0] if notes else "another command has just taken it down"
        raise UsageError(f"asked for a stack to share; {saw}. End that one first: onceproof down")
    if lacking := [name for name in components if name not in found.components]:
        there = ", ".join(found.components) or "none"
        raise UsageError(
            f"asked for a stack with {', '.join(lacking)}; one is up with {there}. End that one first: onceproof down"
        )
    return found


def _seen(child: subprocess.Popen[bytes], log: Path) -> shared.There | Waiting:
    if (code := child.poll()) is not None:
        if code == LOST:
            raise _Lost
        ended = log.with_name(shared.ENDED)
        why = ended.read_text(encoding="utf-8") if ended.is_file() else tail(log)
        failure = HarnessError(f"the stack to share could not come up; its owner ended with {code}: {why}")
        failure.exit_code = code or HarnessError.exit_code
        raise failure
    found = shared.there()
    return found if found is not None and found.owner.pid == child.pid else Waiting(tail(log))


def end(*, now: bool) -> bool:
    """End the stack that is up; False if there is none. Raises UsageError while it is in use, unless `now`."""
    place = shared.folder()
    found = _settled(place, STARTING)
    if found is None:
        return False
    with contextlib.ExitStack() as door:
        if not (_taken(place / shared.USERS, door) or now):
            # A process that takes it down lets no other one use it either.
            if shared.there() is None:
                return _settled(place) is None
            raise UsageError("asked to end the stack that is up; another command uses it. Wait for it, or give --now")
        reaper.send(found.owner, signal.SIGTERM)
        gone = "the owner of the stack to end"
        until(gone, lambda: not shared.held(place / shared.OWNER) or Waiting("it lives"), within_s=DOWN_S)
    return True


def _taken(path: Path, door: contextlib.ExitStack, *, within_s: float = MOMENT_S) -> bool:
    """Hold a lock until `door` closes; False if others hold it. A process that only checks it holds it for a
    moment."""
    try:
        door.enter_context(locked(path, within_s=within_s))
    except WaitError:
        return False
    return True


def own(components: Sequence[str], idle_s: float) -> None:
    """Be the owner of a stack until no process wants it any more. Raises StackError."""
    place = shared.folder()
    with contextlib.ExitStack() as door:
        door.enter_context(signals())
        if not _taken(place / shared.OWNER, door):
            raise _Lost("another process owns a stack already")
        with contextlib.suppress(FileNotFoundError):
            os.truncate(place / LOG, 0)
        door.enter_context(contextlib.suppress(Interrupted))
        for left in (shared.FOUND, shared.ENDED):
            (place / left).unlink(missing_ok=True)
        shutil.rmtree(place / "logs", ignore_errors=True)
        stack = ProcessesStack(place / "logs", needs=components)
        # The logs of executors may hold what a pipeline logged in with.
        door.callback(shutil.rmtree, place / "logs" / "executors", ignore_errors=True)
        with up(stack), _explains_end(place):
            private(place / shared.FOUND, described(stack).written())
            until("its last user to go", _unused(place, stack.health, idle_s, door), within_s=inf, every_s=POLL_S)


@contextmanager
def _explains_end(place: Path) -> Iterator[None]:
    """Before anything of it ends, write why for its users, so that no process finds it any more."""
    try:
        yield
    except (HarnessError, Interrupted) as failure:
        why = "it was taken down" if isinstance(failure, Interrupted) else str(failure)
        private(place / shared.ENDED, why)
        raise
    finally:
        (place / shared.FOUND).unlink(missing_ok=True)


def described(stack: ProcessesStack) -> shared.There:
    """Return how others find this stack, which is up."""
    spark = stack.spark
    return shared.There(
        session=stack.describe()["session"],
        owner=shared.process(),
        versions=shared.versions(),
        spark={
            "master": spark.master,
            "home": str(spark.home),
            "worker": spark.worker,
            "variables": spark.variables(),
        },
        components={
            name: {"lent": server.lent(), "about": server.describe()}
            for name, server in stack.servers.items()
            if isinstance(server, Lent)
        },
    )


def _unused(
    place: Path, health: Callable[[], None], idle_s: float, door: contextlib.ExitStack
) -> Callable[[], bool | Waiting]:
    """Return whether no run has used it for so long; then `door` keeps others out."""
    last = monotonic()

    def check() -> bool | Waiting:
        nonlocal last
        health()
        with contextlib.ExitStack() as users:
            if not _taken(place / shared.USERS, users, within_s=0):
                last = monotonic()
                return Waiting("it is used")
            if monotonic() - last < idle_s:
                return Waiting("it is idle")
            door.push(users.pop_all())
        return True

    return check


def main(argv: Sequence[str]) -> int:
    """Be the owner. Return 0, or print the failure and return its exit code."""
    try:
        load_own_kinds([Path(each) for each in json.loads(argv[1])])
        own(argv[2:], float(argv[0]))
    except (HarnessError, Interrupted) as failure:
        print(failure, file=sys.stderr, flush=True)
        if not isinstance(failure, _Lost):
            # For the process that started this one: the end of the log may be that of some server.
            private(shared.folder() / shared.ENDED, str(failure))
        return failure.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
