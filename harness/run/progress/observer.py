"""Follows every checkpoint of one run: tells the armed trigger first, then records what it saw, also in the history."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from harness.checkers.offset_ranges import lowest
from harness.checkpoint import (
    Beginnings,
    OffsetReader,
    Offsets,
    Progress,
    listing,
    query_id,
    read_offsets,
    shuffle_partitions,
)
from harness.context import CheckpointEvent, HeldOperation, Hook
from harness.errors import HarnessError, StackError
from harness.history import (
    POINTS,
    BatchPlanned,
    CheckpointOp,
    Event,
    History,
    QueryEnded,
    QueryStarted,
    SourceBegun,
    event_of,
)
from harness.operation import Operation, Side
from harness.remote import checkpoint_listing as remote
from harness.remote.mirror import Mirror
from harness.run.progress import agent
from harness.run.progress.checkpoint_watch import CheckpointWatch
from harness.scenario import CrashPoint
from harness.snapshot import Query, QueryState

HELD_S = 3600.0
BEHIND_S = 2.0
"""How long a restart waits at most for what the watch has still to tell of the dead attempt."""


class _Kept(NamedTuple):
    """A checkpoint on a server: at its place there, and by what it is copied."""

    mirror: Mirror
    place: str


class Observer:
    """What is known of the run's checkpoints. Thread-safe."""

    def __init__(
        self,
        root: Path,
        reads: OffsetReader,
        history: History,
        *,
        begins: Beginnings | None = None,
        mirror: Mirror | None = None,
        agent_file: Path | None = None,
    ) -> None:
        self._root = root
        self._mirror = mirror
        self._reads = reads
        self._begins = begins
        self._history = history
        self._hook: Hook | None = None
        self._for: str | None = None
        self._listeners: list[Callable[[CheckpointEvent], None]] = []
        self._lock = threading.Lock()
        self._known: dict[Path, Progress] = {}
        self._every: list[Progress] = []
        """Those that were deleted and made again too, in the order of first sight."""
        self._touched: dict[int, set[Path]] = {}
        self.attempt = 0
        self._last = monotonic()
        self._began: float | None = None
        """When the agent in Spark reported the newest query."""
        self._open: dict[str, int] = {}
        """By the id of a start of a query that has not ended well, the attempt of the driver."""
        self._ids: dict[str, str] = {}
        """By the id of a query, which its checkpoint keeps, the name of that."""
        self._reported: set[Path] = set()
        """The checkpoints that the agent in Spark reports: what the watch sees of them comes later."""
        self._one = threading.RLock()
        self._wanted: Callable[[Operation], bool] | None = None
        self._held: list[HeldOperation] = []
        self._agent = agent.AgentServer(self._heard, agent_file)
        self._watch = self._watched(root)

    def _watched(self, root: Path) -> CheckpointWatch:
        return CheckpointWatch(root, self._watched_event)

    @property
    def reports_to(self) -> str:
        """Where the agent in Spark reports."""
        return self._agent.address

    def _heard(self, event: agent.Event) -> None:
        """Of the agent, in the thread that answers it."""
        if event["what"] != agent.OPERATION:
            query = self._ids.get(str(event.get("query")), event.get("query"))
            if (reported := event_of({**event, "query": query})) is not None:
                self._history.write(reported)
                self._count(reported)
            return
        path = self._here(event["path"])
        done = agent.operation(event, path) if path is not None else None
        if done is None:
            return
        # What a dead attempt had sent may arrive once the next one is at work; on YARN no attempt has a number.
        attempt = int(event.get("attempt") or self.attempt)
        self._history.write(
            CheckpointOp(
                attempt=attempt, process=done.process, query=self.name(done.folder), path=done.name, op=done.op,
                when=done.side,
            )
        )  # fmt: skip
        self._reported.add(done.folder)
        if (seen := agent.protocol_event(done)) is not None:
            if done.side is Side.AFTER and (kept := self._kept(done.folder)) is not None:
                # The writer stands still: the copy has what is on the server. One that is away has nothing new.
                with suppress(StackError):
                    kept.mirror.copy(kept.place)
            with self._one:
                self._on_event(seen, attempt)
        if (name := self.name(done.folder)) not in self._ids.values() and (made := query_id(done.folder)):
            self._ids[made] = name
        self._stand(done)

    def _count(self, event: Event) -> None:
        """Keep which queries began and did not end well."""
        if isinstance(event, QueryStarted):
            self._began, self._open[event.query_run] = monotonic(), event.attempt
        elif isinstance(event, QueryEnded) and not event.failed:
            self._open.pop(event.query_run, None)

    def _stand(self, done: Operation) -> None:
        """Hold the thread, if its operation is the one that is waited for."""
        with self._one:
            wanted, held = self._wanted, None
            if wanted is not None and wanted(done):
                held, self._wanted = HeldOperation(done), None
                self._held.append(held)
        if held is not None:
            held.wait(HELD_S)

    @contextmanager
    def holding(
        self, wanted: Callable[[Operation], bool], *, query: str | None = None
    ) -> Iterator[Callable[[], HeldOperation | None]]:
        """Hold the first `wanted` operation on a checkpoint of our queries, or of the one whose folder is `query`; what
        is given returns it once it is held. It stays held afterwards, but not if this is left by an error."""

        def meant(done: Operation) -> bool:
            progress = self._known.get(done.folder)
            ours = progress is None or not progress.elsewhere
            return (ours if query is None else done.folder.name == query) and wanted(done)

        with self._one:
            before, self._wanted = len(self._held), meant
        try:
            yield lambda: self._held[before] if len(self._held) > before else None
        except BaseException:
            with self._one:
                self._wanted = None
            for late in self._held[before:]:
                late.let_go()
            raise
        finally:
            with self._one:
                self._wanted = None

    def _kept(self, folder: Path) -> _Kept | None:
        """Return which checkpoint on a server the folder is the copy of; None for a local one."""
        place = self._mirror.place(folder) if self._mirror is not None else None
        return None if self._mirror is None or place is None else _Kept(self._mirror, place)

    def _here(self, path: str) -> Path | None:
        """Return the path of this machine that Spark's path means: of a file on the server that keeps the checkpoint,
        its copy."""
        root = f"{self._mirror.remote.url}/" if self._mirror is not None else None
        if self._mirror is not None and root and path.startswith(root):
            return self._mirror.folder / path.removeprefix(root)
        return agent.local(path)

    def reported(self, folder: Path) -> bool:
        """Return whether the agent in Spark has reported an operation on the checkpoint."""
        return folder in self._reported

    def _watched_event(self, seen: CheckpointEvent) -> None:
        if seen.folder not in self._reported:
            with self._one:
                self._on_event(seen)

    def close(self) -> None:
        """Stop watching, and hold nothing any more."""
        for held in self._held:
            held.let_go()
        self._agent.close()
        self._watch.close()

    def catch_up(self) -> None:
        """Record everything that is in the checkpoints by now as work of the present attempt, before the next one
        begins."""
        if self._mirror is not None:
            # A server that is away has nothing new, and the next attempt waits for it too.
            with suppress(StackError):
                self._mirror.refresh()
        self._watch.reported_all(within_s=BEHIND_S)

    def listen(self, listener: Callable[[CheckpointEvent], None]) -> None:
        """Call `listener` in the watching thread with every later event, once it is recorded."""
        self._listeners.append(listener)

    @contextmanager
    def armed(self, hook: Hook, *, query: str | None = None) -> Iterator[None]:
        """Call `hook` in the watching thread with every event of our queries, or of the one whose checkpoint's folder
        is called `query`, whatever it reads; before anything else is done with it."""
        self._for, self._hook = query, hook
        try:
            yield
        finally:
            self._hook = None

    def _on_event(self, seen: CheckpointEvent, attempt: int = 0) -> None:
        meant = self._ours(seen) if self._for is None else seen.folder.name == self._for
        hook = self._hook if meant else None
        afterwards = hook(seen) if hook is not None else None
        attempt, self._last = attempt or self.attempt, monotonic()
        with self._lock:
            progress = self._book(seen)
            self._note(seen, progress, attempt)
        if afterwards is not None:
            afterwards()
        for listener in self._listeners:
            listener(seen)
        query, batch = self.name(seen.folder), seen.batch
        if seen.point is CrashPoint.BATCH_PLANNED:
            ranges = progress.ranges(batch)
            self._history.write(BatchPlanned(query=query, batch=batch, attempt=attempt, ranges=ranges))
        else:
            kind = POINTS[seen.point] if seen.point is not None else SourceBegun
            self._history.write(kind(query=query, batch=batch, attempt=attempt))

    def _book(self, seen: CheckpointEvent) -> Progress:
        """Return what is kept of the checkpoint."""
        progress = self._known.get(seen.folder)
        made_again = progress is not None and _again(seen, progress)
        if progress is not None and made_again:
            progress.gone = True
        if progress is None or made_again:
            progress = self._known[seen.folder] = self._progress(seen.folder)
            progress.first_attempt = self.attempt
            self._every.append(progress)
            if made_again:
                progress.note_all()
        return progress

    def _progress(self, folder: Path) -> Progress:
        return Progress(folder, self._reads, begins=self._begins)

    def _note(self, seen: CheckpointEvent, progress: Progress, attempt: int) -> None:
        progress.last_attempt = max(attempt, progress.last_attempt)
        self._touched.setdefault(attempt, set()).add(seen.folder)
        if seen.point is None:
            progress.begun.add(seen.source)
            progress.note_start(seen.source)
            return
        progress.note_work(seen.batch, attempt)
        if seen.point is CrashPoint.BATCH_PLANNED:
            progress.note_offsets(seen.batch)
        elif seen.point is CrashPoint.BATCH_COMMITTED:
            progress.committed.add(seen.batch)

    def _ours(self, seen: CheckpointEvent) -> bool:
        """Return whether it is a query that reads the run's source. No fault is meant for another one."""
        progress = self._known.get(seen.folder)
        if progress is not None and progress.ends:
            return True
        if seen.point is CrashPoint.BATCH_PLANNED:
            return read_offsets(seen.folder, seen.batch, self._reads) is not None
        return progress is None or not progress.elsewhere

    def healthy(self) -> None:
        """Raise HarnessError if the watch died, or the source could not tell what a batch holds: from then on no crash
        point could be seen."""
        if isinstance(self._watch.failure, HarnessError):
            raise self._watch.failure
        if self._watch.failure is not None:
            raise HarnessError(f"the watch on the checkpoint died: {self._watch.failure!r}")
        if self._agent.failure is not None:
            raise HarnessError(f"what the agent reported was not taken: {self._agent.failure!r}")

    def other(self) -> str:
        """Return what the newest batch of a query says of its sources, none of which is the run's; empty without
        one."""
        with self._lock:
            return next((" ".join(p.lines[max(p.lines)].values()) for p in self._every if p.elsewhere and p.lines), "")

    def unread_s(self) -> float:
        """Return for how long no query reads the run's source, since the newest one began; 0 where the agent in Spark
        has reported none, or one reads it."""
        return 0.0 if self._began is None or self.all() else monotonic() - self._began

    def cut_off(self, attempt: int) -> bool:
        """Return whether an attempt that has ended left a query open before any batch was committed, even one without
        records."""
        with self._lock:
            return attempt in self._open.values() and not any(progress.committed for progress in self._every)

    def outside(self) -> Path | None:
        """Return the checkpoint of a query that reads the run's source and keeps it outside the run's folder, where the
        next run finds it; None if there is none."""
        kept = (each.folder for each in self.all() if each.ends and not each.folder.is_relative_to(self._root))
        return next((folder for folder in kept if not folder.is_relative_to(self._root.resolve())), None)

    def started(self) -> bool:
        """Return True once a query has begun."""
        return bool(self._known)

    def current(self) -> list[Progress]:
        """Return the checkpoints that count: those of the newest attempt with any. It may go on with one that an
        attempt before it had, and have fewer than that attempt. Then it may still come to the others, and all of them
        count."""
        known = self.all()
        newest = max((p.last_attempt for p in known), default=0)
        touched = [p for p in known if p.last_attempt == newest]
        goes_on = any(p.first_attempt < newest for p in touched)
        return known if goes_on and len(touched) < self._most(before=newest) else touched

    def _most(self, *, before: int) -> int:
        """Return how many checkpoints of ours one attempt before `before` has touched, at most."""
        ours = {p.folder for p in self.all()}
        with self._lock:
            return max(
                (len(ours & folders) for attempt, folders in self._touched.items() if attempt < before), default=0
            )

    def all(self) -> list[Progress]:
        """Return every checkpoint of a query that reads the run's source, in the order of first sight."""
        with self._lock:
            return [p for p in self._known.values() if not p.elsewhere]

    def folder(self) -> Path | None:
        """Return the checkpoint that faults are judged by: the newest attempt's first."""
        found = self.current()
        return found[0].folder if found else None

    def folders(self, query: str | None) -> list[Path]:
        """Return the checkpoints that count; or that of the query whose folder is called so, whatever it reads, if the
        present attempt has touched it."""
        if query is None:
            return [progress.folder for progress in self.current()]
        with self._lock:
            here = [folder for folder, progress in self._known.items() if progress.last_attempt == self.attempt]
        return [folder for folder in here if folder.name == query]

    def names(self) -> list[str]:
        """Return what the folders of all checkpoints are called, in the order of first sight."""
        with self._lock:
            return list(dict.fromkeys(folder.name for folder in self._known))

    def has_progress(self) -> bool:
        """Return True once the current attempt has touched a checkpoint."""
        return any(p.last_attempt == self.attempt for p in self.all())

    def all_queries_active(self) -> bool:
        """Return True once it has touched as many as any attempt before it: then each of its queries is at work."""
        return self.has_progress() and sum(p.last_attempt == self.attempt for p in self.all()) >= self._most(
            before=self.attempt
        )

    def took_nothing(self, folder: Path, batch: int) -> bool:
        """Return whether it is a batch without a record of the run's source, as a query plans before anything was sent,
        or with a watermark. Raises StackError where a server that keeps the checkpoint does not answer."""
        kept = self._kept(folder)
        if kept is not None and not (folder / "offsets" / str(batch)).exists():
            # Who has its plan from the server's listing is ahead of the copy.
            kept.mirror.copy(kept.place)
        with self._lock:
            progress = self._known.get(folder) or self._progress(folder)
        return progress.took_nothing(batch)

    def name(self, folder: Path) -> str:
        """Return how a checkpoint is called in what is kept: its folder, relative to the run's."""
        return folder.relative_to(self._root).as_posix() if folder.is_relative_to(self._root) else str(folder)

    def queries(self) -> tuple[Query, ...]:
        """Return every query of the program, in the order of first sight."""
        with self._lock:
            return tuple(progress.query(self.name(progress.folder)) for progress in self._every)

    def states(self) -> tuple[QueryState, ...]:
        """Return where each query is now, in the same order. Raises StackError if a server that keeps the checkpoint
        does not answer."""
        if self._mirror is not None:
            self._mirror.refresh()
        with self._lock:
            return tuple(progress.state(self.name(progress.folder)) for progress in self._every)

    def stateful(self) -> dict[str, int]:
        """Return over how many shuffle partitions each query that keeps state does so, by its checkpoint's name."""
        with self._lock:
            folders = list(self._known)
        found = {self.name(folder): shuffle_partitions(folder) for folder in folders}
        return {name: count for name, count in found.items() if count is not None}

    def unchanged_s(self) -> float:
        """Return seconds since the last event of any query."""
        return monotonic() - self._last

    def touched(self, attempt: int) -> bool:
        """Return whether an attempt has been seen to touch a checkpoint."""
        if self._mirror is not None:
            self.catch_up()
        return attempt in self._touched

    def listing(self, folder: Path | None = None) -> dict[str, tuple[int, ...]]:
        """Return batches under `offsets` and `commits` right now, straight from the disk, or from the server that keeps
        them; of `folder` if one is named. Raises StackError."""
        folder = folder or self.folder()
        if folder is None:
            return {}
        kept = self._kept(folder)
        return listing(folder) if kept is None else remote.listing(kept.mirror.remote, kept.place)

    def settled(self, folder: Path | None = None) -> dict[str, tuple[int, ...]]:
        """Return the same, once nothing is on its way any more that a stopped or dead writer has asked a server for."""
        folder = folder or self.folder()
        kept = self._kept(folder) if folder else None
        return self.listing(folder) if kept is None else remote.settled(kept.mirror.remote, kept.place)

    def newest_batch(self) -> int:
        """Return the highest batch planned so far; -1 before the first."""
        return max((batch for p in self.current() for batch in list(p.ends)), default=-1)

    def planned(self) -> Offsets:
        """Return next offsets that are planned in every checkpoint of the current attempt."""
        return lowest([p.planned() for p in self.current()])

    def committed(self) -> Offsets:
        """Return next offsets that are committed in every checkpoint of the current attempt."""
        return lowest([p.done() for p in self.current()])


def _again(seen: CheckpointEvent, progress: Progress) -> bool:
    """Return whether it is another checkpoint in the old one's place. Where a source begins, and the plan of the first
    batch, are written once. The plan shows it only where Spark keeps no log of any source: else the beginning has shown
    it already."""
    if seen.point is None:
        return seen.source in progress.begun
    first = seen.point is CrashPoint.BATCH_PLANNED and seen.batch == 0
    return first and 0 in progress.lines and not (progress.begun or progress.starts)
