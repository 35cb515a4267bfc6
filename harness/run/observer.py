"""Follows every checkpoint of one run: tells the armed trigger first, then keeps the books and the journal."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.checkpoint import Offsets, Progress, listing, read_offsets
from harness.errors import HarnessError
from harness.journal import Journal
from harness.scenario import Window
from harness.snapshot import QueryState
from harness.triggers.watch import CheckpointWatch, Sight

Hook = Callable[[Sight], Callable[[], None] | None]
"""Told of a sight before the books are; what it returns is called after them."""


class Observer:
    """What is known of the run's checkpoints. Thread-safe."""

    def __init__(self, root: Path, topic: str, journal: Journal) -> None:
        self._topic = topic
        self._journal = journal
        self._hook: Hook | None = None
        self._lock = threading.Lock()
        self._known: dict[Path, Progress] = {}
        self._touched: dict[int, set[Path]] = {}
        self.life = 0
        self._watch = CheckpointWatch(root, self._saw)

    def close(self) -> None:
        """Stop watching."""
        self._watch.close()

    @contextmanager
    def armed(self, hook: Hook) -> Iterator[None]:
        """Call `hook` in the watching thread with every sight, before anything else is done with it."""
        self._hook = hook
        try:
            yield
        finally:
            self._hook = None

    def _saw(self, seen: Sight) -> None:
        hook = self._hook if self._ours(seen) else None
        afterwards = hook(seen) if hook is not None else None
        with self._lock:
            fresh = Progress(seen.folder, self._topic, first_life=self.life)
            progress = self._known.setdefault(seen.folder, fresh)
            if seen.window is None and progress.begun:
                # That is written once: another time, it is another checkpoint in the old one's place.
                progress = self._known[seen.folder] = fresh
                fresh.note_all()
            progress.begun |= seen.window is None
            progress.life = self.life
            self._touched.setdefault(self.life, set()).add(seen.folder)
            if seen.window is Window.OFFSETS_WRITTEN:
                progress.note_offsets(seen.batch)
            elif seen.window is Window.OFFSETS_COMMITTED:
                progress.committed.add(seen.batch)
        if afterwards is not None:
            afterwards()
        self._journal.write("batch", batch=seen.batch, window=seen.window or "started", checkpoint=seen.folder.name)

    def _ours(self, seen: Sight) -> bool:
        """Is it a query that reads the run's topic? No fault is meant for another one."""
        progress = self._known.get(seen.folder)
        if progress is not None and progress.ends:
            return True
        if seen.window is Window.OFFSETS_WRITTEN:
            return read_offsets(seen.folder / "offsets" / str(seen.batch), self._topic) is not None
        return progress is None or not progress.elsewhere

    def healthy(self) -> None:
        """Raise HarnessError if the watch died: from then on no window could be seen."""
        if self._watch.failure is not None:
            raise HarnessError(f"the watch on the checkpoint died: {self._watch.failure!r}")

    def started(self) -> bool:
        """True once a query has begun."""
        return bool(self._known)

    def current(self) -> list[Progress]:
        """The checkpoints that count: those of the newest life with any. While these are fewer than a life before it
        had, and it goes on with one of that one's, it may still come to the others: then all of them."""
        known = self.all()
        newest = max((p.life for p in known), default=0)
        touched = [p for p in known if p.life == newest]
        goes_on = any(p.first_life < newest for p in touched)
        return known if goes_on and len(touched) < self._most(before=newest) else touched

    def _most(self, *, before: int) -> int:
        """How many checkpoints of ours one life before `before` has touched, at most."""
        ours = {p.folder for p in self.all()}
        with self._lock:
            return max((len(ours & folders) for life, folders in self._touched.items() if life < before), default=0)

    def all(self) -> list[Progress]:
        """Every checkpoint of a query that reads the topic, in the order of first sight."""
        with self._lock:
            return [p for p in self._known.values() if not p.elsewhere]

    def folder(self) -> Path | None:
        """The checkpoint that faults are judged by: the newest life's first."""
        found = self.current()
        return found[0].folder if found else None

    def awake(self) -> bool:
        """True once the current life has touched a checkpoint."""
        return any(p.life == self.life for p in self.all())

    def whole(self) -> bool:
        """True once it has touched as many as any life before it: then each of its queries is at work."""
        return self.awake() and sum(p.life == self.life for p in self.all()) >= self._most(before=self.life)

    def took_nothing(self, folder: Path, batch: int) -> bool:
        """Is it a batch without a record of the topic, as a query with a watermark plans some?"""
        ends = [read_offsets(folder / "offsets" / str(number), self._topic) for number in (batch - 1, batch)]
        return None not in ends and ends[0] == ends[1]

    def states(self) -> tuple[QueryState, ...]:
        """Where each query of the program stands right now, whatever it reads, in the order of first sight."""
        with self._lock:
            known = list(self._known.values())
        return tuple(_state(progress) for progress in known)

    def listing(self, folder: Path | None = None) -> dict[str, tuple[int, ...]]:
        """Batches under `offsets` and `commits` right now, straight from the disk; of `folder` if one is named."""
        folder = folder or self.folder()
        return listing(folder) if folder else {}

    def newest_batch(self) -> int:
        """The highest batch planned so far; -1 before the first."""
        return max((batch for p in self.current() for batch in list(p.ends)), default=-1)

    def planned(self) -> Offsets:
        """Next offsets that are planned in every checkpoint of the current life."""
        return lowest([p.planned() for p in self.current()])

    def committed(self) -> Offsets:
        """Next offsets that are committed in every checkpoint of the current life."""
        return lowest([p.frontier() for p in self.current()])


def _state(progress: Progress) -> QueryState:
    found = listing(progress.folder)
    return QueryState(
        checkpoint=progress.folder.name,
        ours=not progress.elsewhere,
        offsets=found["offsets"],
        commits=found["commits"],
    )


def lowest(many: list[Offsets]) -> Offsets:
    """Partition by partition, the lowest; a partition that one of them lacks is at 0."""
    if not many:
        return {}
    partitions = {partition for offsets in many for partition in offsets}
    return {p: min(offsets.get(p, 0) for offsets in many) for p in sorted(partitions)}
