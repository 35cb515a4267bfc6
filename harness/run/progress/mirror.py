"""A copy of the checkpoints that lie where no watch on a folder sees them: an object store, a remote file system.

Its listing is asked for again and again; what changed is written below a folder of the run, where the watch on
checkpoints sees it as if Spark had written there. So a crash point is seen only if it lasts longer than a look, and
what comes and goes between two looks is never seen. Copied are the logs of offsets, commits and sources; of a file that
is being written, the name.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from time import monotonic

from harness.errors import HarnessError, StackError
from harness.resources import KeepsCheckpoints
from harness.wait import Deadline

EVERY_S = 0.005
REST_S = 0.25
"""How long to rest after a look that found nobody there."""
SETTLED_S = 0.05
"""What a client has asked before it was stopped, its server may do a moment later: so long nothing has to change."""
WITHIN_S = 60.0
LOGS = ("sources", "offsets", "commits")


class Mirror:
    """Keeps `into` like the remote checkpoints, in a thread of its own until `close()`."""

    def __init__(self, there: KeepsCheckpoints, into: Path) -> None:
        self._there, self._into = there, into
        self._half = into.with_name(f".{into.name}.half")
        self._known: dict[str, str] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._kept, name=f"mirror of {into.name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop; returns when the thread is gone."""
        self._stop.set()
        self._thread.join(5.0)

    def fresh(self) -> None:
        """Return once the copy is what is there, and that has not changed for a moment. Raises StackError where nobody
        answers for long, or it changes all the time."""
        deadline, quiet_since, seen = Deadline(WITHIN_S), monotonic(), ""
        before: Mapping[str, str] | None = None
        while not deadline.over():
            try:
                now = self._look()
            except StackError as failure:
                seen, before = str(failure), None
            else:
                if now != before:
                    seen, before, quiet_since = "it changes", now, monotonic()
                elif monotonic() - quiet_since >= SETTLED_S:
                    return
            self._stop.wait(EVERY_S)
        raise StackError(f"waited {WITHIN_S:g} s for the checkpoints of {self._into.name} to be seen; last saw: {seen}")

    def _kept(self) -> None:
        # One that died in silence would turn every crash point into "never came".
        try:
            while not self._stop.wait(EVERY_S):
                try:
                    self._look()
                except StackError:
                    # Its server may be away for a fault; who has to know asks for `fresh`.
                    self._stop.wait(REST_S)
        except BaseException as failure:
            self.failure = failure

    def _look(self) -> Mapping[str, str]:
        with self._lock:
            found = self._there.checkpoint_files()
            for state in {name.partition("/state/")[0] for name in found if "/state/" in name}:
                (self._into / state / "state").mkdir(parents=True, exist_ok=True)
            now = {name: tag for name, tag in found.items() if meant(name)}
            for name in sorted(set(now) - set(self._known), key=order):
                self._appeared(name)
                self._known[name] = now[name]
            for name in [name for name, tag in self._known.items() if now.get(name) != tag]:
                self._changed(name, now.get(name))
            return now

    def _appeared(self, name: str) -> None:
        path = self._into / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.name.startswith("."):
            path.touch()
            return
        text = self._there.checkpoint_file(name)
        if text is not None:
            self._half.write_bytes(text)
            self._half.rename(path)

    def _changed(self, name: str, tag: str | None) -> None:
        (self._into / name).unlink(missing_ok=True)
        del self._known[name]
        if tag is not None:
            self._appeared(name)
            self._known[name] = tag


def meant(name: str) -> bool:
    """Is it one of the files that tell of a query's progress? Of the state it is enough that there is some."""
    parts = PurePosixPath(name).parts
    return len(parts) > 1 and (parts[-2] in LOGS[1:] or (len(parts) > 2 and parts[-3] == LOGS[0]))


def order(name: str) -> tuple[str, int, int, str]:
    """In which order Spark writes such files: a checkpoint, a batch, its plan before its commit."""
    path = PurePosixPath(name)
    number = path.name.lstrip(".").partition(".")[0]
    log = LOGS.index(path.parent.name) if path.parent.name in LOGS else 0
    begun = 0 if path.name.startswith(".") else 1
    batch = int(number) if number.isdecimal() else -1
    return str(path.parent.parent if log else path.parents[2]), batch, 2 * log + begun, path.name


def mirrors(parts: Mapping[str, object], root: Path) -> list[Mirror]:
    """One for each part of a run that keeps checkpoints, by its label below `root`. Raises HarnessError."""
    out = []
    for label, at in parts.items():
        if isinstance(at, KeepsCheckpoints):
            into = root / label
            try:
                into.mkdir()
            except OSError as refused:
                raise HarnessError(f"asked for the folder {into}; {refused.strerror}") from refused
            out.append(Mirror(at, into))
    return out
