"""What the receiver of one DStreams program has stored: its blocks, and which records of the source each has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harness.checkpoint import Offsets
from harness.dstreams.written import Allocated, Block
from harness.errors import HarnessError
from harness.run_folder.snapshot import Gone

Connected = Callable[[], Sequence[tuple[float, int, int]]]
"""Each connection of a receiver, in order: since when (ms since 1970), and which records were sent on it: from, and up
to."""
Numbered = Callable[[], int]
"""How many numbered records there are, of which a receiver gives the first one's number with each block."""


@dataclass
class Stored:
    """A block, the attempt that received it, and its records in the source."""

    block: Block
    attempt: int
    start: int
    end: int


@dataclass
class Received:
    """What the log of received blocks has told so far. Spark deletes old files of it, so it is kept."""

    connected: Connected
    numbered: Numbered | None = None
    blocks: dict[tuple[int, int], Stored] = field(default_factory=dict)
    told: dict[int, Offsets] = field(default_factory=dict)
    """By attempt and connection, where its next block begins: `{base: next}`."""

    def add(self, block: Block, attempt: int, at_ms: int, since_ms: float) -> None:
        """One more block, cut about then by an attempt that was launched at `since_ms`. Raises HarnessError if it
        cannot be what was sent."""
        streams = {stream for stream, _ in self.blocks} | {block.stream}
        if len(streams) > 1:
            raise HarnessError("the program has several receivers; nobody knows which of them has which record")
        if self.numbered is not None:
            self.blocks[block.stream, block.number] = Stored(block, attempt, *_numbers(block, self.numbered()))
            return
        base, end = self._connection(at_ms, since_ms)
        ours = self.told.setdefault(attempt, {})
        start = ours.get(base, base)
        ours[base] = start + block.records
        if ours[base] > end:
            sent = f"{end - base} that were sent to it"
            raise HarnessError(f"a receiver has stored {ours[base] - base} records of the {sent}")
        self.blocks[block.stream, block.number] = Stored(block, attempt, start, ours[base])

    def _connection(self, at_ms: int, since_ms: float) -> tuple[int, int]:
        """What was sent on the newest connection of that time; on the first one of the attempt, if that is later. Spark
        names a block by when it was due to be cut, and cuts it later: so its reader may have connected in between."""
        known = self.connected()
        own = [each for each in known if each[0] >= since_ms]
        found = [each for each in own if each[0] <= at_ms][-1:] or own[:1]
        if not found:
            raise HarnessError(f"a receiver has stored a block of {at_ms} ms; nobody had connected by then")
        return found[0][1:]

    def spans(self, allocated: Allocated, attempt: int) -> list[tuple[int, int]]:
        """What a batch takes of its blocks, when an attempt has allocated them: those that an earlier one held in
        memory alone are gone."""
        found = [self.blocks[name] for name in allocated.blocks if name in self.blocks]
        kept = [each for each in found if each.block.kept or each.attempt == attempt]
        return sorted((each.start, each.end) for each in kept if each.end > each.start)

    def left_out(self, taken: Sequence[tuple[int, int]], upto: int) -> tuple[Gone, ...]:
        """Which numbered records before `upto` are in none of the spans `taken`, which are in order: of the attempt
        that had stored last before the receiver went on beyond them."""
        out, at = list[Gone](), 0
        for start, end in taken:
            if at < start <= upto:
                before = [each for each in self.blocks.values() if each.start < start]
                last = max(before, key=lambda each: (each.start, each.attempt), default=None)
                out.append(Gone(attempt=last.attempt if last else 1, partition=0, start=at, end=start))
            at = max(at, end)
        return tuple(out)

    @property
    def volatile(self) -> bool:
        """Does a receiver keep what it has in memory alone?"""
        return any(not each.block.kept for each in self.blocks.values())


def _numbers(block: Block, many: int) -> tuple[int, int]:
    """Which records a block has, of so many. Raises HarnessError if it does not say so, or there are none such."""
    if block.first is None:
        cure = "store it with the number of its first record as metadata: `store(iterator, number)`"
        raise HarnessError(f"a receiver has stored a block of {block.records} records, and does not say which; {cure}")
    end = block.first + block.records
    if not 0 <= block.first <= end <= many:
        raise HarnessError(f"a receiver says that it has stored records {block.first} to {end}; there are {many}")
    return block.first, end
