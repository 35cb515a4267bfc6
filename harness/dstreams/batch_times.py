"""The batches of one DStreams program, as its checkpoint and its log of received blocks tell them.

A batch is numbered by its time, from 0. It is *planned* once its blocks are allocated to it, or the checkpoint names
its files; *completed* once a checkpoint of its time or a later one does not have it pending; *settled* once no restart
would do it again. A restart does again what is pending in the newest checkpoint that can be read, and every batch from
the time of that checkpoint on: so the last completed one too. Only a settled batch is what Structured Streaming calls
committed.

What a receiver had stored without a write-ahead log is gone with its driver: such a batch is done again, and is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from harness.checkpoint import Offsets, Progress, fastest
from harness.dstreams.java_stream import NoJavaStreamError
from harness.dstreams.received import Connected, Numbered, Received
from harness.dstreams.written import BLOCKS, LOG, Allocated, Block, Checkpoint, events, of_checkpoint, written
from harness.snapshot import Batch, Gone, Query, QueryState

InFile = Callable[[str], tuple[int, int] | None]
"""The partition that a file's address stands for, and how many records it has; None for one of another folder."""


class Stream(Progress):
    """One checkpoint of a program of DStreams. `connected`, `numbered` or `in_file` says what the run's source has to
    do with what is read there. `launched` has by attempt when it was (ms since 1970)."""

    def __init__(
        self,
        folder: Path,
        *,
        connected: Connected | None = None,
        numbered: Numbered | None = None,
        in_file: InFile | None = None,
        launched: Mapping[int, float] | None = None,
    ) -> None:
        super().__init__(folder, lambda line, log: None)
        received = connected is not None or numbered is not None
        self._received = Received(connected or tuple, numbered) if received else None
        self._in_file = in_file
        self._launched = {} if launched is None else launched
        self._read: dict[Path, int] = {}
        self._reads_as = 1
        """The attempt at work when the log was read last."""
        self._found: dict[int, dict[Path, int]] = {}
        """By attempt, how much of each log had been read when it was launched: the work of those before it."""
        self._pending: list[tuple[Allocated | Block, int]] = []
        self._ranges: dict[int, list[tuple[int, int]]] = {}
        self.newest: Checkpoint | None = None
        self.checkpointed: set[int] = set()
        self.completed: set[int] = set()
        self.made_again = False
        """Whether the program made the checkpoint again, where another one had been at work."""
        self._before: Offsets = {}
        """What those before it had taken."""
        self.redone: dict[int, int] = {}
        """By attempt, the batch with which it begins as the checkpoint says that it finds."""

    def again(self, found: Checkpoint) -> bool:
        """Return whether it is the checkpoint that another program has made in the same folder."""
        return self.newest is not None and found.zero_ms != self.newest.zero_ms

    def follows(self, others: Iterable[Stream]) -> None:
        """It is made again where others were at work, none of whose batches it does again."""
        self.made_again = True
        self._before = fastest(other._end(max(other.ends, default=-1)) for other in others)

    def succeeds(self, other: Stream, attempt: int) -> None:
        """That attempt makes it again in the other one's folder. What the other one had logged by then is not its
        own: it can be of less than one interval before."""
        self._found = other._found
        self._read = dict(other._found.get(attempt, {}))

    def ended(self, attempt: int) -> None:
        """Note that another program has begun in its place with that attempt, whose work was taken for this one's."""
        self.gone = True
        for batch in [each for each, attempts in self.attempts.items() if min(attempts) >= attempt]:
            for kept in (self.attempts, self.ends, self._ranges):
                kept.pop(batch, None)
            self.checkpointed.discard(batch)
        for attempts in self.attempts.values():
            attempts.discard(attempt)
        if self._received is not None:
            self._received.ended(attempt)

    def read(self, attempt: int) -> bool:
        """Read what the log of received blocks has got since, which is the work of that attempt, and return whether it
        has got anything. Raises HarnessError."""
        before, self._reads_as = sum(self._read.values()), attempt
        try:
            logs = sorted(
                (entry for entry in (self.folder / BLOCKS).iterdir() if LOG.fullmatch(entry.name)), key=_begun
            )
        except OSError:
            logs = []
        for log in logs:
            try:
                with log.open("rb") as file:
                    file.seek(self._read.get(log, 0))
                    data = file.read()
            except OSError:
                continue  # Spark deletes those that it needs no more
            found, taken = events(data)
            self._read[log] = self._read.get(log, 0) + taken
            self._pending += [(event, attempt) for event in found]
        self._number()
        return sum(self._read.values()) > before

    def _number(self) -> None:
        """Put the events of the log into their batches, once a checkpoint says how these are counted."""
        if self.newest is None or self._received is None:
            return
        since_ms = self.newest.zero_ms - self.newest.interval_ms
        for event, attempt in self._pending:
            # Of a program before this one, in the same folder. A batch of this one is later than its zero; a receiver
            # may begin a block before.
            if event.number < since_ms if isinstance(event, Block) else event.time_ms <= self.newest.zero_ms:
                continue
            if isinstance(event, Block):
                at_ms = event.number + self.newest.block_ms
                if at_ms < self._launched.get(attempt, 0.0):
                    # A program may die before its JVM, which logs a last block when the next one is launched.
                    attempt = self._attempt_at(at_ms)
                self._received.add(event, attempt, at_ms, self._launched.get(attempt, 0.0))
                continue
            batch = self.newest.number(event.time_ms)
            self._ranges[batch] = self._received.ranges(event, attempt)
            end = max([end for _, end in self._ranges[batch]], default=self._base())
            self.ends[batch] = {} if end is None else {0: end}
            self.note_work(batch, attempt)
        self._pending.clear()
        self._rising()

    def _rising(self) -> None:
        """No batch ends before the one before it."""
        reached = self.began()
        for batch in sorted(self.ends):
            reached = fastest([reached, self.ends[batch]])
            self.ends[batch] = dict(sorted(reached.items()))

    def note(self, found: Checkpoint, attempt: int) -> None:
        """A checkpoint was written, which a restart would find now. It may be of an earlier time than its name says:
        then a restart does again what it would not have with the one before."""
        if self.newest is None and attempt not in self.redone:
            self.made_again = self.made_again or attempt > self.first_attempt
            # Where there was no checkpoint, Spark did not read the log of who was there before either.
            self._pending = [each for each in self._pending if each[1] == attempt]
        self.newest = found
        batch, pending = found.number(found.time_ms), {found.number(time) for time in found.pending_ms}
        self.checkpointed |= {batch, *pending}
        self.note_work(batch, attempt)
        self._number()
        if self._in_file is not None:
            self._files(found, attempt)
        known = {*self.ends, *self.checkpointed}
        self.completed |= {each for each in known if each <= max([batch, *pending]) and each not in pending}
        self.committed = {each for each in known if each < min([batch, *pending])}

    def _files(self, found: Checkpoint, attempt: int) -> None:
        assert self._in_file is not None
        # A batch without a file is one too.
        for time, files in sorted({found.time_ms: (), **found.files}.items()):
            batch = found.number(time)
            if batch not in self.ends:
                self.note_work(batch, attempt)
            ours = [place for file in files if (place := self._in_file(file)) is not None]
            self.ends[batch] = {**self.ends.get(batch, {}), **dict(ours)}
        self._rising()

    def note_launch(self, attempt: int) -> None:
        """An attempt is about to begin, with the newest checkpoint that can be read."""
        self._found[attempt] = dict(self._read)
        for path in written(self.folder):
            try:
                found = of_checkpoint(path.read_bytes())
            except (OSError, NoJavaStreamError):
                continue
            self.redone[attempt] = min(found.number(time) for time in (found.time_ms, *found.pending_ms))
            return

    def note_work(self, batch: int, attempt: int) -> None:
        """Remember that an attempt was seen at work on a batch."""
        self.attempts.setdefault(batch, set()).add(attempt)
        self.last_attempt = max(self.last_attempt, attempt)

    def listed(self) -> dict[str, tuple[int, ...]]:
        """Return which batches are planned, which are completed, and which no restart would do again."""
        planned = {*self.ends, *self.checkpointed}
        found = {"offsets": planned, "commits": self.completed & planned, "settled": self.committed & planned}
        return {name: tuple(sorted(batches)) for name, batches in found.items()}

    def waiting(self, attempt: int) -> int | None:
        """Return the batch that will take what a receiver has stored, and no batch has; None if nothing waits."""
        waits = self._received is not None and self._received.waiting(attempt)
        return max(self.ends, default=-1) + 1 if waits else None

    def took_nothing(self, batch: int) -> bool:
        """Return whether it is a batch without a record of the run's source."""
        return not self._own(batch)

    def _own(self, batch: int) -> Offsets:
        """Return where what it took ends, in the partitions of which it took something."""
        earlier = [each for each in list(self.ends) if each < batch]
        before, ends = self.ends[max(earlier)] if earlier else self.began(), self.ends.get(batch, {})
        return {p: end for p, end in ends.items() if end > before.get(p, 0)}

    def began(self) -> Offsets:
        """With the first record; one that was made again, with what was sent first since, or with the first number that
        its receiver gave. Of files Spark passes over those that are older than the program."""
        if self._in_file is not None:
            return dict(self._before)
        base = self._base()
        return {0: base} if base else {}

    def _base(self) -> int | None:
        """Return how many records had been sent to a receiver before the first one of this program connected, or that
        one passed over; None as long as that is not known."""
        if self._received is not None and self._received.numbered is not None:
            return self._received.first() if self.made_again else 0
        since_ms = self._launched.get(self.first_attempt, 0.0)
        known = self._received.connected() if self._received is not None and since_ms else ()
        own = [start for connected_ms, start, _ in known if connected_ms >= since_ms]
        return own[0] if own else max((end for _, _, end in known), default=0)

    def done(self) -> Offsets:
        """Return next offsets of all that is settled, or was sent before a receiver connected that has settled
        batches."""
        end, passed = self._end(max(self._settled(), default=-1)), self._passed()
        return {**end, 0: max(passed, end.get(0, 0))} if passed else end

    def _settled(self) -> list[int]:
        return [each for each in list(self.ends) if each in self.committed]

    def _passed(self) -> int:
        """Return up to where what no settled batch has cannot come any more: what was sent before the newest connection
        that is older than one. By an interval: a receiver that connects again under the same driver may still have a
        block of before to report."""
        settled = self._settled()
        if self._received is None or self.newest is None or not settled:
            return 0
        until_ms = self.newest.zero_ms + max(settled) * self.newest.interval_ms
        return max((start for since_ms, start, _ in self._received.connected() if since_ms < until_ms), default=0)

    def _end(self, batch: int) -> Offsets:
        return dict(self.ends.get(batch, {}))

    def batches(self) -> tuple[Batch, ...]:
        """Return what each batch took of the run's source, in order."""
        before = self.began()
        out = []
        for batch in sorted({*self.ends, *self.checkpointed}):
            ends = self.ends.get(batch, before)
            own = self._ranges.get(batch, [])
            # What a receiver had not stored is in no batch.
            start = {0: min(start for start, _ in own)} if own else {}
            ranges = {p: (max(before.get(p, 0), start.get(p, 0)), end) for p, end in sorted(ends.items())}
            out.append(
                Batch(batch=batch, ranges=ranges, committed=batch in self.committed, attempts=self._worked(batch))
            )
            before = ends
        return tuple(out)

    def _worked(self, batch: int) -> tuple[int, ...]:
        """Return the attempts that were seen at work on it, and those that had to do it again."""
        seen = self.attempts.get(batch, set())
        again = {each for each, first in self.redone.items() if first <= batch and seen and min(seen) < each}
        return tuple(sorted(seen | (again & self.attempts_seen)))

    def query(self, name: str) -> Query:
        """Return all of it, under the name of its folder."""
        return Query(
            checkpoint=name,
            batches=self.batches(),
            first=self._first(),
            by_time=True,
            gone=self._missed(),
            made_again=self.made_again,
        )

    @property
    def _volatile(self) -> bool:
        return self._received is not None and self._received.volatile

    def _first(self) -> dict[int, int]:
        """Return the batch with which each attempt began. What is done again without its records is not begun with."""
        out: dict[int, int] = {}
        for batch, attempts in sorted(self.attempts.items()):
            for attempt in attempts:
                out.setdefault(attempt, batch)
        again = {} if self._volatile else self.redone
        return {attempt: min(batch, again.get(attempt, batch)) for attempt, batch in sorted(out.items())}

    def _missed(self) -> tuple[Gone, ...]:
        """Return what was sent to a receiver, is in no batch, and has been passed by a later one."""
        if self._received is None:
            return ()
        taken = sorted({each for ranges in self._ranges.values() for each in ranges})
        if self._received.numbered is not None:
            upto = self._end(max(self._settled(), default=-1)).get(0, 0)
            since = max(1, self.first_attempt - 1) if self.made_again else 1
            return self._received.left_out(taken, upto, self._before.get(0, 0), since)
        connections = self._received.connected()
        out, at = list[Gone](), self._base() or 0
        passed = self._passed()
        for start, end in [*taken, (passed, passed)]:
            if start > at:
                # What was sent on a connection was lost with its attempt.
                for since_ms, base, sent in connections:
                    lost = (max(at, base), min(start, sent))
                    if lost[0] < lost[1]:
                        out.append(Gone(attempt=self._attempt_at(since_ms), partition=0, start=lost[0], end=lost[1]))
            at = max(at, end)
        return tuple(out)

    def _attempt_at(self, at_ms: float) -> int:
        """Return the attempt that had been launched last by then."""
        return max([attempt for attempt, launched_ms in self._launched.items() if launched_ms <= at_ms], default=1)

    @property
    def attempts_seen(self) -> set[int]:
        """Those that were seen at work."""
        return {attempt for attempts in self.attempts.values() for attempt in attempts} or {1}

    def state(self, name: str) -> QueryState:
        """Return where it stands; nothing is left of one that is gone. A batch without a record counts once it is
        settled."""
        if self.gone:
            return QueryState(checkpoint=name)
        known = sorted({*self.ends, *self.checkpointed})
        offsets = tuple(batch for batch in known if batch in self.committed or self._own(batch))
        planned, done = self._end(max(self.ends, default=-1)), self.done()
        stored = self._received.waiting(self._reads_as) if self._received is not None else 0
        return QueryState(
            checkpoint=name,
            offsets=offsets,
            commits=tuple(batch for batch in known if batch in self.committed),
            planned={p: max(offset, done.get(p, 0)) for p, offset in planned.items()},
            committed=done,
            stored={0: stored} if stored else {},
        )


def _begun(log: Path) -> int:
    match = LOG.fullmatch(log.name)
    return int(match[1]) if match else 0
