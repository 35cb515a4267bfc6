"""Stretches of the source, partition by partition: what a batch took, what was exposed, what was skipped. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

Offsets = Mapping[int, int]
"""Next offset by partition; a partition that is not named is at 0."""


class Span(NamedTuple):
    """The offsets from `start` up to, not including, `end`."""

    partition: int
    start: int
    end: int


Spans = tuple[Span, ...]
REVERSED = -1


@dataclass(frozen=True, kw_only=True)
class Cut:
    """Which records `expected` is asked about: `only` these (None: all), `without` those, and one more copy of each of
    `again`. `order` 0 takes them as they lie in the source, `REVERSED` the other way round, which turns every tie of
    two; any other number in an order drawn from it."""

    only: Spans | None = None
    without: Spans = ()
    again: tuple[Spans, ...] = ()
    order: int = 0


def between(low: Offsets, high: Offsets) -> Spans:
    """What lies from `low` up to `high`, where there is anything."""
    partitions = sorted(high)
    found = (Span(p, low.get(p, 0), high[p]) for p in partitions)
    return tuple(span for span in found if span.end > span.start)


def joined(*many: Spans) -> Spans:
    """All of them; where two overlap or touch, one."""
    out: list[Span] = []
    for span in sorted(span for spans in many for span in spans):
        if out and out[-1].partition == span.partition and span.start <= out[-1].end:
            out[-1] = out[-1]._replace(end=max(out[-1].end, span.end))
        else:
            out.append(span)
    return tuple(out)


def covers(outer: Spans, inner: Spans) -> bool:
    """Return whether the outer offset ranges hold all of the inner ones, of which there are some."""
    within = (any(o.partition == i.partition and o.start <= i.start and i.end <= o.end for o in outer) for i in inner)
    return bool(inner) and all(within)


def tail(span: Span, holds: Callable[[Span], bool]) -> Span:
    """The longest end of a stretch that `holds`, where each shorter end of one that does does as well; one without a
    record if none does."""
    starts = range(span.start, span.end)
    before = bisect_left(starts, True, key=lambda start: holds(span._replace(start=start)))
    return span._replace(start=span.start + before)


def lowest(many: Iterable[Offsets]) -> dict[int, int]:
    """Partition by partition the lowest; one that is not named is at 0."""
    return _each(many, min)


def highest(many: Iterable[Offsets]) -> dict[int, int]:
    """Partition by partition the highest."""
    return _each(many, max)


def _each(many: Iterable[Offsets], pick: Callable[[Iterable[int]], int]) -> dict[int, int]:
    offsets = list(many)
    partitions = sorted({partition for each in offsets for partition in each})
    return {p: pick(each.get(p, 0) for each in offsets) for p in partitions}
