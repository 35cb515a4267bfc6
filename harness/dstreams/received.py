"""What the receiver of one DStreams program has stored: its blocks, and which records of the source each has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from harness.checkpoint import Offsets
from harness.dstreams.written import Allocated, Block
from harness.errors import HarnessError
from harness.snapshot import Gone

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
    """What the log of received blocks has shown so far. Spark deletes old files of it, so it is kept."""

    connected: Connected
    numbered: Numbered | None = None
    blocks: dict[tuple[int, int], Stored] = field(default_factory=dict)
    stored: dict[int, Offsets] = field(default_factory=dict)
    """By attempt and connection, where its next block begins: `{base: next}`."""
    placed: set[tuple[int, int]] = field(default_factory=set)
    """The blocks that a batch has, by name."""

    def add(self, block: Block, attempt: int, at_ms: int, since_ms: float) -> None:
        """Add a block, cut about then by an attempt that was launched at `since_ms`. Raises HarnessError if it cannot
        be what was sent."""
        streams = {stream for stream, _ in self.blocks} | {block.stream}
        if len(streams) > 1:
            raise HarnessError("the program has several receivers; it is not known which of them has which record")
        if self.numbered is not None:
            self.blocks[block.stream, block.number] = Stored(block, attempt, *_numbers(block, self.numbered()))
            return
        base, end = self._connection(at_ms, since_ms)
        ours = self.stored.setdefault(attempt, {})
        start = ours.get(base, base)
        ours[base] = start + block.records
        if ours[base] > end:
            sent = f"{end - base} that were sent to it"
            raise HarnessError(f"a receiver has stored {ours[base] - base} records of the {sent}")
        self.blocks[block.stream, block.number] = Stored(block, attempt, start, ours[base])

    def _connection(self, at_ms: int, since_ms: float) -> tuple[int, int]:
        """Return what was sent on the newest connection of that time; on the first one of the attempt, if that is
        later. Spark names a block by when it was due to be cut, and cuts it later: so its reader may have connected in
        between."""
        known = self.connected()
        own = [each for each in known if each[0] >= since_ms]
        found = [each for each in own if each[0] <= at_ms][-1:] or own[:1]
        if not found:
            raise HarnessError(f"a receiver has stored a block of {at_ms} ms; no reader had connected by then")
        return found[0][1:]

    def ranges(self, allocated: Allocated, attempt: int) -> list[tuple[int, int]]:
        """Return the ranges of its blocks that a batch takes, when an attempt has allocated them. Those that an earlier
        attempt held only in memory are gone."""
        self.placed |= {*allocated.blocks}
        found = [self.blocks[name] for name in allocated.blocks if name in self.blocks]
        kept = [each for each in found if each.block.kept or each.attempt == attempt]
        return sorted((each.start, each.end) for each in kept if each.end > each.start)

    def waiting(self, attempt: int) -> int:
        """Return up to where records are stored in blocks that no batch has: in the write-ahead log, or in the memory
        of that attempt; 0 if there is none."""
        open_ = [each for name, each in self.blocks.items() if name not in self.placed and each.end > each.start]
        return max((each.end for each in open_ if each.block.kept or each.attempt == attempt), default=0)

    def left_out(self, taken: Sequence[tuple[int, int]], upto: int, since: int, attempt: int) -> tuple[Gone, ...]:
        """Return which numbered records from `since` to `upto` are in none of the ranges `taken`, which are in order;
        those before all blocks by that attempt."""
        out, at = list[Gone](), since
        for start, end in taken:
            for gone in self._gap(at, start, attempt) if at < start <= upto else ():
                if out and (out[-1].attempt, out[-1].end) == (gone.attempt, gone.start):
                    gone = replace(gone, start=out.pop().start)
                out.append(gone)
            at = max(at, end)
        return tuple(out)

    def _gap(self, low: int, high: int, attempt: int) -> Iterator[Gone]:
        """Yield what is missing there, cut at the blocks that it was stored in: each went with the attempt that stored
        it last. What no block had went with one of several attempts. The first of these is the last attempt that had
        stored something before it. The last of these comes before the attempt that stored what follows it."""
        blocks = list(self.blocks.values())
        cuts = {each for block in blocks for each in (block.start, block.end) if low < each < high}
        for start, end in pairwise(sorted({low, high, *cuts})):
            own = [each.attempt for each in blocks if each.start <= start and end <= each.end]
            first = max([each.attempt for each in blocks if each.end <= start], default=attempt)
            last = min([each.attempt for each in blocks if each.start >= end], default=first + 1) - 1
            for number in [max(own)] if own else range(first, max(first, last) + 1):
                yield Gone(attempt=number, partition=0, start=start, end=end)

    def first(self) -> int | None:
        """With which record it began; None as long as it has stored nothing."""
        return next((each.start for each in self.blocks.values()), None)

    def ended(self, attempt: int) -> None:
        """What that attempt and later ones have stored was another program's."""
        self.blocks = {name: each for name, each in self.blocks.items() if each.attempt < attempt}

    @property
    def volatile(self) -> bool:
        """Return whether a receiver keeps what it has in memory alone."""
        return any(not each.block.kept for each in self.blocks.values())


def _numbers(block: Block, many: int) -> tuple[int, int]:
    """Return which records a block has, of so many. Raises HarnessError if it does not say so, or there are none
    such."""
    if block.first is None:
        cure = "store it with the number of its first record as metadata: `store(iterator, number)`"
        raise HarnessError(f"a receiver has stored a block of {block.records} records, and does not say which; {cure}")
    end = block.first + block.records
    if not 0 <= block.first <= end <= many:
        raise HarnessError(f"a receiver says that it has stored records {block.first} to {end}; there are {many}")
    return block.first, end
