"""A local copy of a remote folder that holds checkpoints: whoever reads checkpoint files reads them here.

What appears there appears here in the order of the protocol: where a source begins and what it has taken, `offsets/N`,
`commits/.N.*.tmp`, `commits/N`; each under its name at once and whole. So the watch of local folders tells of it. A
name that was there between two looks only is never here: a crash point that is missed is missed. What lies below
`state` is not copied.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic

from harness.errors import HarnessError, StackError, UsageError
from harness.remote import Entry, RemoteFolder, joined
from harness.wait import Deadline

DEEPEST = 6
WALK_EVERY_S = 0.5
"""How often it is looked for checkpoints that are not known yet."""
LOOK_EVERY_S = 0.25
"""How long it waits at most for a word that something has changed."""
AGAIN_S = 0.2
SILENT_S = 180.0
"""After so long without an answer nobody would see a crash point."""
COPIED_S = 20.0
"""How long a folder may change that is copied."""
UNREAD_S = 30.0
"""How long a file that is listed and cannot be read holds back what comes after it in its checkpoint."""
LOGS = ("offsets", "commits")
STATE = "state"


class Mirror:
    """Copies `remote` to `folder`; `scratch` is a folder of the same disk that nobody watches for events. `away_s`: for
    how long faults have the server away."""

    def __init__(self, remote: RemoteFolder, folder: Path, *, scratch: Path, away_s: float = 0.0) -> None:
        self.remote, self.folder, self._scratch = remote, folder, scratch
        self._away_s = away_s
        self._seen: Callable[[], object] = lambda: None
        scratch.mkdir(parents=True, exist_ok=True)
        self._known: dict[str, str] = {}
        """The stamp of each file that is here."""
        self._unread: dict[str, tuple[float, str]] = {}
        """Since when each file could not be read, and what the server said."""
        self._checkpoints: set[str] = set()
        self._walked = Deadline(0.0)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._answered = monotonic()
        self.failure: BaseException | None = None
        self._why = ""
        self._thread = threading.Thread(target=self._follow, name="remote checkpoint", daemon=True)

    @property
    def told(self) -> str:
        """Where it lies and how it is watched, in words, for evidence."""
        return f"the checkpoint lies at {self.remote.url}, and was listed {self.remote.listed_how}"

    def start(self, seen: Callable[[], object] = lambda: None) -> None:
        """Follow it in a thread of its own until `close`. `seen` returns once whoever watches has seen the folders that
        were made: what comes into one before it is watched is told of in any order."""
        self._seen = seen
        self._thread.start()

    def close(self) -> None:
        """Follow it no more; what is here stays. Returns when the thread is gone."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10.0)

    def healthy(self) -> None:
        """Raise HarnessError if it is followed no more."""
        if self.failure is not None:
            raise HarnessError(f"the watch on {self.remote.url} died: {self.failure!r}")
        silent_s = SILENT_S + self._away_s
        if monotonic() - self._answered > silent_s:
            raise HarnessError(f"nobody has answered for {self.remote.url} in {silent_s:g} s: {self._why}")

    def place(self, folder: Path) -> str | None:
        """What a local folder is the copy of; None for one that is no copy."""
        if not folder.is_relative_to(self.folder):
            return None
        found = folder.relative_to(self.folder).as_posix()
        return "" if found == "." else found

    def look(self, *, walk: bool = True) -> None:
        """Copy what is there now. Raises StackError, of a file that cannot be read once the others are copied."""
        with self._lock:
            if walk or self._walked.over() or not self._checkpoints:
                found = set(self._walk("", 0))
                for gone in sorted(self._checkpoints - found):
                    self._forget(gone)
                self._checkpoints = found
                self._walked = Deadline(WALK_EVERY_S)
            for place in sorted(self._checkpoints):
                self._copy(place)
            self._answered = monotonic()
            for path, (_, said) in self._unread.items():
                raise StackError(f"asked for {self.remote.url}/{path}, which is listed; it cannot be read: {said}")

    def _follow(self) -> None:
        try:
            with self.remote.changes() as wait:
                while not self._stop.is_set():
                    try:
                        self.look(walk=False)
                    except StackError as failure:
                        # A fault may have its server down.
                        self._why = str(failure)
                        self._stop.wait(AGAIN_S)
                    wait(LOOK_EVERY_S)
        except BaseException as failure:
            self.failure = failure

    def _walk(self, place: str, depth: int) -> Iterator[str]:
        folders = [entry.name for entry in self.remote.entries(place) if entry.folder]
        if {*LOGS, "sources"} & {*folders}:
            if STATE in folders:
                (self.folder / place / STATE).mkdir(parents=True, exist_ok=True)
            yield place
        elif depth < DEEPEST:
            for name in folders:
                yield from self._walk(joined(place, name), depth + 1)

    def _copy(self, place: str) -> None:
        # Who sees a plan sees the commit before it, and what the source has taken for it.
        planned, done = ({e.name: e for e in self.remote.entries(joined(place, log))} for log in LOGS)
        # A commit without its plan was planned after the look at the plans: the next look has both.
        newest = max(map(_number, planned), default=-1)
        done = {name: entry for name, entry in done.items() if (_batch(name) or 0) <= newest}
        new = any(self._is_new(joined(place, "offsets", name), entry) for name, entry in planned.items())
        held = (new or not self._sources_known(place)) and not self._sources(place)
        files = [(joined(place, "offsets", name), entry) for name, entry in planned.items()]
        files += [(joined(place, "commits", name), entry) for name, entry in done.items()]
        self._make(joined(place, log) for log in LOGS)
        for path, entry in sorted(files, key=lambda each: _order(each[0])):
            if held or not self._take(path, entry):
                break
        for log, names in zip(LOGS, (planned, done), strict=True):
            self._drop(joined(place, log), names)

    def _sources(self, place: str) -> bool:
        """Is it all here that can be had?"""
        here = True
        insides = [joined(place, "sources", source.name) for source in self.remote.entries(joined(place, "sources"))]
        self._make(insides)
        for inside in insides:
            found = {entry.name: entry for entry in self.remote.entries(inside) if not entry.folder}
            for name, entry in sorted(found.items(), key=lambda each: _number(each[0])):
                if not name.startswith("."):
                    here &= self._take(joined(inside, name), entry)
            self._drop(inside, found)
        for gone in self._sources_known(place) - {*insides}:
            self._drop(gone, {})
        return here

    def _make(self, folders: Iterable[str]) -> None:
        new = [self.folder / each for each in folders if not (self.folder / each).is_dir()]
        for each in new:
            each.mkdir(parents=True)
        if new:
            self._seen()

    def _is_new(self, path: str, entry: Entry) -> bool:
        # One that is being written changes, and stays the same event.
        return path not in self._known if entry.name.startswith(".") else self._known.get(path) != entry.stamp

    def _take(self, path: str, entry: Entry) -> bool:
        """May what comes after it be taken? Not for a while if it cannot be read: its server may be away."""
        if entry.folder or not self._is_new(path, entry):
            return True
        try:
            # What is still being written has nothing in it that anybody reads.
            data = b"" if entry.name.startswith(".") else self.remote.read(path)
        except StackError as failure:
            since, _ = self._unread.get(path, (monotonic(), ""))
            self._unread[path] = since, str(failure)
            return monotonic() - since > UNREAD_S
        self._unread.pop(path, None)
        if data is None:
            return True
        to, beside = self.folder / path, self._scratch / "next"
        beside.write_bytes(data)
        if path in self._known:
            to.unlink(missing_ok=True)  # another one in its place is told of again
        beside.rename(to)
        self._known[path] = entry.stamp
        return True

    def _forget(self, place: str) -> None:
        """A checkpoint that is there no more."""
        for folder in (*(joined(place, log) for log in reversed(LOGS)), *self._sources_known(place)):
            self._drop(folder, {})

    def _sources_known(self, place: str) -> set[str]:
        inside = f"{joined(place, 'sources')}/"
        return {known.rpartition("/")[0] for known in (*self._known, *self._unread) if known.startswith(inside)}

    def _drop(self, folder: str, names: dict[str, Entry]) -> None:
        for path in [known for known in (*self._known, *self._unread) if known.rpartition("/")[0] == folder]:
            if path.rpartition("/")[2] not in names:
                with suppress(FileNotFoundError):
                    (self.folder / path).unlink()
                self._known.pop(path, None)
                self._unread.pop(path, None)


def copied(remote: RemoteFolder, place: str, to: Path) -> None:
    """Copy a tree, all files of it, into the folder `to`, which is made anew. No listing shows all of it at one moment,
    and a file that is renamed meanwhile may be in none: so it is listed until nothing has changed since it was copied.
    Raises StackError, and UsageError for one that changes all the time."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    here: dict[str, Entry] = {}
    limit: Deadline | None = None
    while (now := dict(walked(remote, place))) != here:
        if limit is not None and limit.over():
            other = next(name for name in sorted({*now, *here}) if now.get(name) != here.get(name))
            saw = f"it changed again and again for {limit.seconds:g} s, at last in {other}"
            raise UsageError(f"asked to copy {remote.url}/{place}; {saw}. Who else writes there?")
        _bring(remote, place, to, now=now, here=here)
        # What is there at first may take long; later on only what has changed is read.
        limit = limit or Deadline(COPIED_S)


def walked(remote: RemoteFolder, place: str, below: str = "") -> Iterator[tuple[str, Entry]]:
    """All names below a folder, each with where it lies there, and a folder before what is in it. Raises StackError."""
    for entry in remote.entries(joined(place, below)):
        inside = joined(below, entry.name)
        if entry.folder:
            # Whatever else a listing says of it: it is the same one when something comes or goes in it.
            yield inside, Entry(entry.name, folder=True)
            yield from walked(remote, place, inside)
        else:
            yield inside, entry


def _bring(remote: RemoteFolder, place: str, to: Path, *, now: dict[str, Entry], here: dict[str, Entry]) -> None:
    """Copy what is `now` there and not `here`, and remove what is no more; what goes before it is read is not here."""
    for gone in [name for name, entry in here.items() if now.get(name) != entry]:
        was = here.pop(gone)
        if was.folder:
            shutil.rmtree(to / gone, ignore_errors=True)
        else:
            (to / gone).unlink(missing_ok=True)
    for name, entry in now.items():
        if name in here:
            continue
        if entry.folder:
            (to / name).mkdir()
        elif (data := remote.read(joined(place, name))) is not None:
            (to / name).write_bytes(data)
        else:
            continue
        here[name] = entry


def _number(name: str) -> int:
    return int(name) if name.isdecimal() else -1


def _batch(name: str) -> int | None:
    """Of `N` and of `.N.*.tmp`."""
    number = name.split(".")[1] if name.startswith(".") else name
    return int(number) if number.isdecimal() else None


def _order(path: str) -> tuple[int, bool, bool]:
    """In the order of the protocol: by batch, its plan, the commit that is begun, the commit."""
    folder, _, name = path.rpartition("/")
    return _batch(name) or 0, folder.endswith("commits"), not name.startswith(".")
