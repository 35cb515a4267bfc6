"""Offset ranges of the source's partitions: what a batch read, what was exposed, what was skipped. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

Offsets = Mapping[int, int]
"""Next offset by partition; a partition that is not named is at 0."""


class OffsetRange(NamedTuple):
    """The offsets from `start` up to, not including, `end`."""

    partition: int
    start: int
    end: int


OffsetRanges = tuple[OffsetRange, ...]
REVERSED = -1


@dataclass(frozen=True, kw_only=True)
class Cut:
    """The records that `expected` is computed over: `only` these (None: all), `without` those, and one more copy of
    each of `again`. `order` 0 takes them in the source's order. `REVERSED` takes them in the reverse order, which turns
    every tie of two. Any other number seeds a random order."""

    only: OffsetRanges | None = None
    without: OffsetRanges = ()
    again: tuple[OffsetRanges, ...] = ()
    order: int = 0


def between(low: Offsets, high: Offsets) -> OffsetRanges:
    """Return the offset ranges from `low` up to `high`, without empty ones."""
    partitions = sorted(high)
    found = (OffsetRange(p, low.get(p, 0), high[p]) for p in partitions)
    return tuple(each for each in found if each.end > each.start)


def joined(*many: OffsetRanges) -> OffsetRanges:
    """Return all of the offset ranges; two that overlap or touch become one."""
    out: list[OffsetRange] = []
    for each in sorted(each for ranges in many for each in ranges):
        if out and out[-1].partition == each.partition and each.start <= out[-1].end:
            out[-1] = out[-1]._replace(end=max(out[-1].end, each.end))
        else:
            out.append(each)
    return tuple(out)


def covers(outer: OffsetRanges, inner: OffsetRanges) -> bool:
    """Return whether the outer offset ranges hold all of the inner ones, of which there are some."""
    within = (any(o.partition == i.partition and o.start <= i.start and i.end <= o.end for o in outer) for i in inner)
    return bool(inner) and all(within)


def tail(offset_range: OffsetRange, holds: Callable[[OffsetRange], bool]) -> OffsetRange:
    """Return the longest end of an offset range that `holds`, or an empty range if none does. If an end holds, each
    shorter end holds too."""
    starts = range(offset_range.start, offset_range.end)
    before = bisect_left(starts, True, key=lambda start: holds(offset_range._replace(start=start)))
    return offset_range._replace(start=offset_range.start + before)


def lowest(many: Iterable[Offsets]) -> dict[int, int]:
    """Return partition by partition the lowest; one that is not named is at 0."""
    return _each(many, min)


def highest(many: Iterable[Offsets]) -> dict[int, int]:
    """Return partition by partition the highest."""
    return _each(many, max)


def _each(many: Iterable[Offsets], pick: Callable[[Iterable[int]], int]) -> dict[int, int]:
    offsets = list(many)
    partitions = sorted({partition for each in offsets for partition in each})
    return {p: pick(each.get(p, 0) for each in offsets) for p in partitions}
