"""Sees Spark write its checkpoint, as it happens: inotify where there is one, else polling.

Watches every folder under a root, so a checkpoint is found wherever the pipeline puts it, also a temporary one.
The listener is called in the watching thread, at once: a crash point such as "sink committed, `commits/N` not yet
visible" is only some 0.05 s wide.
"""

from __future__ import annotations

import errno
import re
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.context import CheckpointEvent
from harness.errors import HarnessError
from harness.scenario import CrashPoint

TEMPORARY = re.compile(r"^\.(\d+)\.[^.]+\.tmp$")
DEEPEST = 6
LOGS = ("sources/*", "offsets", "commits")
POLL_S = 0.002
SWITCH_S = 0.0005
"""After so long a thread that computes lets another one in; Python's 5 ms, by several runs, are too many here."""


def event_of(path: Path) -> CheckpointEvent | None:
    """Return what the appearance of a file means, if it means anything."""
    kind, name = path.parent.name, path.name
    if kind == "offsets" and name.isdecimal():
        return CheckpointEvent(CrashPoint.BATCH_PLANNED, int(name), path.parent.parent)
    if kind == "commits" and name.isdecimal():
        return CheckpointEvent(CrashPoint.BATCH_COMMITTED, int(name), path.parent.parent)
    if path.parent.parent.name == "sources" and name == "0":
        return CheckpointEvent(None, 0, path.parents[2], kind)
    temporary = TEMPORARY.match(name) if kind == "commits" else None
    return CheckpointEvent(CrashPoint.SINK_COMMITTED, int(temporary[1]), path.parent.parent) if temporary else None


def _events_of(path: Path) -> list[CheckpointEvent]:
    seen = event_of(path)
    return [] if seen is None else [seen]


class CheckpointWatch:
    """Watches `root` in a separate thread until `close()`. It reports each event once for each appearance of its file:
    again if a pipeline has deleted its checkpoint and begun another in the same place. `events` returns the meaning of
    a file that appeared; a file that `grows` is read again whenever it has grown. `folders` are those whose files a
    poll reads. No folder more than `deepest` levels below the root is watched."""

    def __init__(
        self,
        root: Path,
        listener: Callable[[CheckpointEvent], None],
        *,
        events: Callable[[Path], Sequence[CheckpointEvent]] = _events_of,
        grows: Callable[[Path], bool] | None = None,
        polling: bool = False,
        folders: Sequence[str] = LOGS,
        deepest: int = DEEPEST,
    ) -> None:
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_S))
        self._root = root
        self._listener = listener
        self._events, self._grows = events, grows
        self._folders, self._deepest = folders, deepest
        self._stop = threading.Event()
        self.failure: BaseException | None = None
        self._seen: set[Path] = set()
        loop = self._poll if polling or sys.platform != "linux" else self._inotify
        self._ready = threading.Event()
        self._requested, self._reported_all = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._guarded, args=(loop,), name="checkpoint watch", daemon=True)
        self._thread.start()
        self._ready.wait(5.0)

    def close(self) -> None:
        """Stop watching; returns when the thread is gone."""
        self._stop.set()
        self._thread.join(5.0)

    def reported_all(self, *, within_s: float) -> bool:
        """Wait until all that appeared before this call is reported; return False if that takes longer."""
        self._reported_all.clear()
        self._requested.set()
        return self._reported_all.wait(within_s)

    def _idle(self) -> None:
        """Note that nothing is left to report: this answers a request from before the poll that found nothing."""
        self._requested.clear()
        self._reported_all.set()

    def _guarded(self, loop: Callable[[], None]) -> None:
        # A watch that died in silence would turn every crash point into "never came".
        try:
            loop()
        except BaseException as failure:
            self.failure = failure
        finally:
            self._ready.set()  # who waits for a watch that died need not wait on

    def _report(self, path: Path) -> None:
        grows = self._grows is not None and self._grows(path)
        if path in self._seen and not grows:
            return
        for seen in self._events(path):
            if not grows:
                self._seen.add(path)
            self._listener(seen)

    def _forget(self, path: Path) -> None:
        self._seen = {each for each in self._seen if each != path and path not in each.parents}

    def _inotify(self) -> None:
        from inotify_simple import INotify, flags

        gone = flags.DELETE | flags.MOVED_FROM
        wanted = flags.CREATE | flags.MOVED_TO | gone | flags.ONLYDIR
        # Else each write into any file of the run would be an event.
        wanted |= flags.MODIFY if self._grows is not None else 0
        with INotify() as notify:
            folders: dict[int, Path] = {}

            def add(folder: Path, depth: int) -> None:
                try:
                    folders[notify.add_watch(folder, wanted)] = folder
                    entries = list(folder.iterdir())
                except (FileNotFoundError, NotADirectoryError):
                    return  # gone again before it was read
                except OSError as failure:
                    if failure.errno != errno.ENOSPC:
                        raise
                    cure = "raise fs.inotify.max_user_watches, or end who uses them up"
                    raise HarnessError(f"the kernel has no watch left for {folder}; {cure}") from failure
                # What appeared before the watch existed would otherwise never be reported.
                for entry in entries:
                    if entry.is_dir() and depth < self._deepest:
                        add(entry, depth + 1)
                    else:
                        self._report(entry)

            add(self._root, 0)
            self._ready.set()
            while not self._stop.is_set():
                requested = self._requested.is_set()
                events = notify.read(timeout=0 if requested else 100)
                if requested and not events:
                    self._idle()
                for event in events:
                    if event.mask & flags.Q_OVERFLOW:
                        raise HarnessError("the kernel dropped events: crash points may have gone unseen")
                    folder = folders.get(event.wd)
                    if folder is None or not event.name:
                        continue
                    path = folder / event.name
                    if event.mask & gone:
                        self._forget(path)
                    elif event.mask & flags.MODIFY:
                        if self._grows is not None and self._grows(path):
                            self._report(path)
                    elif event.mask & flags.ISDIR:
                        depth = len(path.relative_to(self._root).parts)
                        if depth <= self._deepest:
                            add(path, depth)
                    else:
                        self._report(path)

    def _poll(self) -> None:
        self._ready.set()
        while not self._stop.wait(POLL_S):
            requested = self._requested.is_set()
            for name in self._folders:
                try:
                    paths = sorted(self._root.glob(f"**/{name}/*"))
                except OSError:
                    break  # a folder went while it was listed: poll again
                for path in paths:
                    self._report(path)
            else:
                # A poll that broke off has not reported all.
                if requested:
                    self._idle()
            self._seen = {path for path in self._seen if path.exists()}
