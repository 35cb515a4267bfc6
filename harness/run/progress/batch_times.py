"""Follows the checkpoint of a program of Spark Streaming (DStreams), as `observer` follows those of queries.

The points of a batch:

block-received      a receiver has stored a block that no batch has, by the log of received blocks; this one is next
batch-planned       its blocks are allocated to it, and that is logged; of files, as its checkpoint says
batch-checkpointed  `checkpoint-T` is there, the batch is pending in it
batch-committed     its output operations are done, and a checkpoint says so; a restart does it again all the same,
                    until a later one is there
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from time import time

from harness.checkpoint import Progress
from harness.context import CheckpointEvent
from harness.dstreams.batch_times import Stream
from harness.dstreams.written import BLOCKS, CHECKPOINT, LOG, of_checkpoint, written
from harness.history import History
from harness.run.progress.checkpoint_watch import CheckpointWatch
from harness.run.progress.observer import Observer
from harness.scenario import CrashPoint
from harness.snapshot import Query, QueryState
from harness.sources.base import OpenSource, TellsFiles, TellsNumbers, TellsReceived

Emitted = set[tuple[CrashPoint, int]]


class BatchTimes(Observer):
    """What is known of the run's DStreams. Thread-safe."""

    def __init__(self, root: Path, source: OpenSource, history: History, *, agent_file: Path | None = None) -> None:
        self._source = source
        self._streams: dict[Path, Stream] = {}
        self._emitted: dict[Path, Emitted] = {}
        self._seen: dict[Path, tuple[str, int, int]] = {}
        """By folder the checkpoint that was read last: its name, its inode and when it was changed."""
        self._reading = threading.RLock()
        self._launched: dict[int, float] = {}
        super().__init__(root, source.offsets, history, agent_file=agent_file)

    def _watched(self, root: Path) -> CheckpointWatch:
        return CheckpointWatch(root, self._on_event, events=self._events, grows=_is_log)

    def catch_up(self) -> None:
        """Have all of the dead attempt recorded, and what the next one will find."""
        super().catch_up()
        with self._reading:
            for folder, stream in self._streams.items():
                self._refresh(folder)
                stream.note_launch(self.attempt + 1)
            self._launched[self.attempt + 1] = time() * 1000

    def _events(self, path: Path) -> list[CheckpointEvent]:
        """Return what is new since a file has appeared or has grown. In the watching thread."""
        match = CHECKPOINT.fullmatch(path.name)
        if _is_log(path):
            folder = path.parent.parent
        elif match and not match[2]:
            folder = path.parent
        else:
            return []
        with self._reading:
            self._refresh(folder)
            return list(self._new(folder))

    def _refresh(self, folder: Path) -> None:
        """Read what is new in a checkpoint. What is there at the first read counts as work of the attempt at work
        then."""
        stream = self._stream(folder)
        new = stream.read(self.attempt)
        for path in written(folder)[:1]:
            try:
                state, data = path.stat(), path.read_bytes()
            except OSError:
                break  # it is being replaced: the next event shows it
            seen = (path.name, state.st_ino, state.st_mtime_ns)
            if self._seen.get(folder) == seen:
                break
            self._seen[folder], new = seen, True
            found = of_checkpoint(data)
            if stream.again(found):
                stream.ended(self.attempt)
                old, stream = stream, self._stream(folder, made_again=True)
                stream.succeeds(old, self.attempt)
                stream.read(self.attempt)
            stream.note(found, self.attempt)
        if new:
            with self._lock:
                self._touched.setdefault(self.attempt, set()).add(folder)

    def _stream(self, folder: Path, *, made_again: bool = False) -> Stream:
        if folder not in self._streams or made_again:
            connected = self._source.received if isinstance(self._source, TellsReceived) else None
            numbered = self._source.numbered if isinstance(self._source, TellsNumbers) else None
            in_file = self._source.in_file if isinstance(self._source, TellsFiles) else None
            made = Stream(folder, connected=connected, numbered=numbered, in_file=in_file, launched=self._launched)
            made.first_attempt = made.last_attempt = self.attempt
            before = [each for each in self._every if isinstance(each, Stream) and each.first_attempt < self.attempt]
            if before:
                made.follows(before)
            self._streams[folder], self._emitted[folder] = made, set()
            with self._lock:
                self._known[folder] = made
                self._every.append(made)
        return self._streams[folder]

    def _new(self, folder: Path) -> Iterator[CheckpointEvent]:
        stream, emitted = self._streams[folder], self._emitted[folder]
        waiting = stream.waiting(self.attempt)
        found = {
            CrashPoint.BLOCK_RECEIVED: set() if waiting is None else {waiting},
            CrashPoint.BATCH_PLANNED: set(stream.ends),
            CrashPoint.BATCH_CHECKPOINTED: stream.checkpointed,
            CrashPoint.BATCH_COMMITTED: stream.completed,
        }
        new = sorted((batch, place, point) for place, (point, some) in enumerate(found.items()) for batch in some)
        for batch, _, point in new:
            if (point, batch) not in emitted:
                emitted.add((point, batch))
                yield CheckpointEvent(point, batch, folder)

    def _book(self, seen: CheckpointEvent) -> Progress:
        return self._known[seen.folder]

    def _note(self, seen: CheckpointEvent, progress: Progress, attempt: int) -> None:
        """The stream has noted it."""

    def _ours(self, seen: CheckpointEvent) -> bool:
        return True

    def _refresh_all(self) -> None:
        with self._reading:
            for folder in self._streams:
                self._refresh(folder)

    def listing(self, folder: Path | None = None) -> dict[str, tuple[int, ...]]:
        """Return the batches that are planned, under `commits` those that are completed, under `settled` those of them
        that no restart would do again; from the disk."""
        folder = folder or self.folder()
        if folder is None or folder not in self._streams:
            return {}
        with self._reading:
            self._refresh(folder)
            return self._streams[folder].listed()

    def states(self) -> tuple[QueryState, ...]:
        """Return where each query is now."""
        with self._reading:
            self._refresh_all()
            return super().states()

    def queries(self) -> tuple[Query, ...]:
        """Return every one of them, also those that were made again."""
        with self._reading:
            return super().queries()


def _is_log(path: Path) -> bool:
    return path.parent.name == BLOCKS and bool(LOG.fullmatch(path.name))
