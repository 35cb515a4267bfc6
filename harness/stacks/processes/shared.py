"""The stack that `onceproof up` left running, as the stack of a suite: drivers are ours, Spark and components are not.

Its owner (`harness/suite/shared_owner.py`) holds the lock `owner` in the cache for as long as it lives, and writes down
there how everything is found. Who uses it holds the lock `users`. A component that it does not have, or that a fault
is going to stop, comes up in our own session.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from harness.component import Server, Shareable, able
from harness.errors import StackError, WaitError
from harness.hosts import service
from harness.machine import agent, cache, java, spark_versions
from harness.machine.jars import spark_home
from harness.session import reaper
from harness.session.session import Session
from harness.spark.standalone_processes import executors_under
from harness.stacks.lasting import Again, LastingStack
from harness.stacks.lasting import main as drop_remembered
from harness.stacks.processes.stack import ProcessesStack
from harness.wait import locked

VARIABLE = "ONCEPROOF_SHARED_STACK"
OWNER, USERS, FOUND, ENDED = "owner.lock", "users.lock", "stack.json", "ended"
JOIN_S = 5.0
BOOT = Path("/proc/sys/kernel/random/boot_id")
NAMESPACES = (Path("/proc/self/ns/net"), Path("/proc/self/ns/pid"))


@dataclass(frozen=True)
class There:
    """What its owner wrote down. `versions` are what it was started with; `spark` how Spark is found. `components` has
    by name how each is found (`lent`) and what it says of itself (`about`)."""

    session: str
    owner: reaper.ProcessId
    versions: Mapping[str, str]
    spark: Mapping[str, Any]
    components: Mapping[str, Mapping[str, Any]]

    def written(self) -> str:
        """As a file."""
        return json.dumps({**vars(self), "owner": [*self.owner]})


def folder() -> Path:
    """Return where its files are: in the cache, or where VARIABLE says. Raises StackError."""
    own = os.environ.get(VARIABLE)
    if not own:
        return cache.folder("shared-stack")
    try:
        Path(own).mkdir(mode=0o700, parents=True, exist_ok=True)
        Path(own).chmod(0o700)
    except OSError as error:
        raise StackError(f"cannot make the folder {own}: {error.strerror}; set {VARIABLE} to another") from error
    return Path(own).absolute()


def versions() -> dict[str, str]:
    """Return what two processes need to have in common to use one stack."""
    source, house = sha256(), Path(__file__).parents[1]
    for path in sorted(house.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            source.update(path.read_bytes())
    found = java.find()
    return {
        "onceproof": source.hexdigest(),
        "python": sys.executable,
        "pyspark": f"{spark_versions.installed()} in {spark_home()}",
        "java": f"{found.text} in {found.home}",
        "jars": agent.resolve(found).digest,
        # Executors have the environment in which the stack was started: the time zone, say.
        **{f"{name} in the environment": _short(value) for name, value in service.environment().items()},
        "machine": " ".join(
            [str(os.getuid()), BOOT.read_text().strip(), *(str(each.readlink()) for each in NAMESPACES)]
        ),
    }


def _short(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def there() -> There | None:
    """Return the stack that is up; None if there is none. Raises StackError."""
    place = folder()
    if not held(place / OWNER):
        return None
    try:
        stored = json.loads((place / FOUND).read_text(encoding="utf-8"))
        found = There(**{**stored, "owner": reaper.ProcessId(*stored["owner"])})
        # What an owner left that was killed is not the next one's.
        return found if reaper.identify(found.owner.pid) == found.owner else None
    except (OSError, ValueError, TypeError, KeyError):
        return None  # it is still coming up, or goes down


def usable(notify: Callable[[str], object]) -> There | None:
    """Return the stack that is up, if it is as ours would be; says why not."""
    found = there()
    if found is None:
        return None
    ours = versions()
    other = [name for name in {**ours, **found.versions} if found.versions.get(name) != ours.get(name)]
    if other:
        notify(
            f"the stack that is up was started with another {', another '.join(other)}; starting one for this command"
        )
        return None
    return found


def that_is_up(
    logs: Path, *, needs: Collection[str], own: Collection[str], notify: Callable[[str], object]
) -> SharedStack | None:
    """Return the stack that `onceproof up` left running; None if there is none that can be used. Raises StackError."""
    found = usable(notify)
    if found is None:
        return None
    stack = SharedStack(found, logs, needs=needs, own=own)
    try:
        # From here on it does not end for want of users.
        stack.join()
    except StackError:
        notify("the stack that was up has just gone down; starting one for this command")
        return None
    notify("using the stack that is up (onceproof down ends it)")
    return stack


def held(path: Path) -> bool:
    """Return whether another process holds that lock."""
    try:
        with path.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


@dataclass(frozen=True)
class SharedSpark:
    """The master and the worker of the user's stack."""

    session: str
    master: str
    home: Path
    worker: reaper.ProcessId
    given: Mapping[str, str]

    def variables(self) -> Mapping[str, str]:
        """Return what executors inherit from the worker."""
        return self.given

    def executors(self, *marks: str) -> list[reaper.ProcessId]:
        """Return the executors whose environment holds each of the marks (`NAME=value`), oldest first."""
        return executors_under({self.worker}, *marks)

    def check(self) -> None:
        """Raise StackError if it is gone, with the reason that its owner left."""
        if not lives(self.session):
            reason = folder() / ENDED
            why = reason.read_text(encoding="utf-8") if reason.is_file() else "its process is gone"
            raise StackError(f"the stack that `onceproof up` started is gone: {why}; run it again")

    def close(self) -> None:
        """It goes on."""


class SharedStack(LastingStack, ProcessesStack):
    """`found` is the stack; components in `own` are started here all the same."""

    def __init__(
        self, found: There, logs: Path, *, needs: Collection[str] = (), own: Collection[str] = frozenset()
    ) -> None:
        super().__init__(logs, needs=needs)
        self._found = found
        self._lent = {name: each for name, each in found.components.items() if name not in own}
        self._borrowed: dict[str, Server] = {}
        self._user = contextlib.ExitStack()
        self._joined = False

    def health(self) -> None:
        """Raise StackError, naming the part and its log's last lines, if a part died that no fault struck."""
        if self._leaving:
            raise StackError("this command is leaving the stack that is up")
        super().health()

    def _start(self, session: Session) -> None:
        self.join()
        spark = self._found.spark
        worker = reaper.ProcessId(*spark["worker"])
        self.spark = SharedSpark(self._found.session, spark["master"], Path(spark["home"]), worker, spark["variables"])
        self.spark.check()
        self.servers |= self._add(self._needs)

    def join(self) -> None:
        """Keep it from ending for want of users, until `down` or `leave`. Raises StackError if it is just doing that,
        or is gone."""
        if self._joined:
            return
        try:
            # The owner takes this lock for a moment, to see whether a process uses the stack.
            self._user.enter_context(locked(folder() / USERS, within_s=JOIN_S, how=fcntl.LOCK_SH))
        except WaitError as failure:
            raise StackError(f"{failure}; it is going down, run it again") from failure
        self._joined = True
        if not lives(self._found.session):
            self.leave()
            raise StackError("the stack that was up is gone, run it again")

    def leave(self) -> None:
        """Let it end."""
        self._joined = False
        self._user.close()

    def _add(self, names: Collection[str]) -> Mapping[str, Server]:
        borrowed = {
            name: able(name, Shareable, "cannot be shared").borrowed(self._lent[name]["lent"])
            for name in names
            if name in self._lent
        }
        self._borrowed |= borrowed
        rest = [name for name in names if name not in borrowed]
        return {**borrowed, **(super()._add(rest) if rest else {})}

    def _again(self) -> Mapping[str, Again]:
        return {name: ("borrowed", self._lent[name]["lent"]) for name in self._borrowed}

    def _last_words(self, path: Path) -> Sequence[str]:
        return ("harness.stacks.processes.shared", self._found.session, str(folder()), *super()._last_words(path)[1:])

    def _drop(self, run_id: str) -> None:
        if lives(self._found.session):
            super()._drop(run_id)
        else:  # what the run had there went with it
            self._made.pop(run_id, None)

    def _described(self, names: Collection[str]) -> dict[str, Any]:
        own = super()._described([name for name in names if name not in self._borrowed])
        shared = {name: dict(self._lent[name]["about"]) for name in sorted(set(names) & set(self._borrowed))}
        return {"shared": self._found.session, **own, **shared}

    def _end(self) -> None:
        borrowed, self._borrowed = self._borrowed, {}
        # Whatever of it fails, the rest is done.
        with contextlib.ExitStack() as steps:
            steps.callback(self.leave)
            steps.callback(ProcessesStack.down, self)
            for server in borrowed.values():
                steps.callback(server.close)


def lives(session: str) -> bool:
    """Return whether the stack of that session is still up."""
    found = there()
    return found is not None and found.session == session


def process() -> reaper.ProcessId:
    """This process."""
    found = reaper.identify(os.getpid())
    assert found is not None
    return found


def main(session: str, place: str, path: Path) -> int:
    """Drop what a dead session had made on the stack of `session`, whose files are in `place`, if that is still up; how
    much of it could not be dropped."""
    os.environ[VARIABLE] = place
    return drop_remembered(path) if lives(session) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
