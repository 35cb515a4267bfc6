"""How many records of the source lie before an offset, and so how many a batch took.

Offsets alone do not say: a log may have holes (transactions, compaction), and begin anywhere.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

PART = 100_000
"""Records that are counted together."""


class Counts:
    """The offsets of a source as read back, by partition."""

    def __init__(self, offsets: Mapping[int, array[int]]) -> None:
        self._offsets = offsets

    def before(self, next_offsets: Mapping[int, int]) -> int:
        """Return how many records are before these offsets."""
        return sum(bisect_left(self._offsets.get(each, array("q")), end) for each, end in next_offsets.items())

    def within(self, ranges: Mapping[int, tuple[int, int]]) -> int:
        """Return how many records are in these ranges, whose ends are excluded."""
        first, last = ({each: pair[side] for each, pair in ranges.items()} for side in (0, 1))
        return self.before(last) - self.before(first)

    @property
    def total(self) -> int:
        """How many records there are."""
        return sum(map(len, self._offsets.values()))


def read_counts(path: Path) -> Counts | None:
    """Return the counts of `ledger/source.parquet`; None if it is not there, or not readable."""
    try:
        table = pq.read_table(path, columns=["partition", "offset"])
        table = table.sort_by([("partition", "ascending"), ("offset", "ascending")])
        out: dict[int, array[int]] = {}
        for part in table.to_batches(max_chunksize=PART):
            for partition, offset in zip(part["partition"].to_pylist(), part["offset"].to_pylist(), strict=True):
                out.setdefault(partition, array("q")).append(offset)
    except (OSError, ValueError, TypeError, KeyError, OverflowError, pa.ArrowException):
        return None
    return Counts(out)
