"""Which offset ranges a pipeline saved that manages its own offsets.

An offset range lies between two saved positions. Offset ranges are numbered from 0 over the whole run: the folder has
no other number for them. The batch that a failpoint names is the program's own count.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.report.escape import plural
from harness.report.failure_text import numbers
from harness.snapshot import Position


def saved_ranges(positions: Sequence[Position]) -> dict[int, list[int]]:
    """Return by attempt the offset ranges that it saved. What an attempt finds at its launch the one before it had
    saved."""
    out: dict[int, list[int]] = {}
    number = 0
    for last, each in zip([None, *positions], positions, strict=False):
        own = out.setdefault(each.attempt, [])
        if last is not None and any(end > last.next.get(partition, 0) for partition, end in each.next.items()):
            (own if each.attempt == last.attempt else out[last.attempt]).append(number)
            number += 1
    return out


def range_numbers(saved: Sequence[int]) -> str:
    """Return `offset range 0`, `offset ranges 0-7` or `none`."""
    return f"{'offset range' if len(saved) == 1 else 'offset ranges'} {numbers(saved)}" if saved else "none"


def saved_at(positions: Sequence[Position], attempt: int) -> str:
    """Return which offset ranges had been saved when a fault ended an attempt; empty if it did not end."""
    saved = saved_ranges(positions)
    if not attempt or max(saved, default=0) <= attempt:
        return ""
    before = [number for each, own in saved.items() if each <= attempt for number in own]
    return f"{range_numbers(before)} had been saved" if before else "no offset range had been saved"


def range_count(positions: Sequence[Position]) -> str:
    """Return `12 offset ranges saved`."""
    return f"{plural(sum(map(len, saved_ranges(positions).values())), 'offset range')} saved"
