"""What a pipeline that keeps its own offsets saved, slice by slice.

A slice is what lies between two saved positions. Slices are numbered from 0 over the whole run: the folder has no other
number for them, and the batch that a failpoint names is the program's own count.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.report.escape import plural
from harness.report.failure_text import numbers
from harness.snapshot import Position


def saved_ranges(positions: Sequence[Position]) -> dict[int, list[int]]:
    """Return by attempt, the slices that it saved. What an attempt finds at its launch the one before it had saved."""
    out: dict[int, list[int]] = {}
    number = 0
    for last, each in zip([None, *positions], positions, strict=False):
        own = out.setdefault(each.attempt, [])
        if last is not None and any(end > last.next.get(partition, 0) for partition, end in each.next.items()):
            (own if each.attempt == last.attempt else out[last.attempt]).append(number)
            number += 1
    return out


def named(saved: Sequence[int]) -> str:
    """`slice 0`, `slices 0-7`, `none`."""
    return f"{'slice' if len(saved) == 1 else 'slices'} {numbers(saved)}" if saved else "none"


def saved_at(positions: Sequence[Position], attempt: int) -> str:
    """Return which slices had been saved when a fault ended an attempt; empty if it did not end."""
    saved = saved_ranges(positions)
    if not attempt or max(saved, default=0) <= attempt:
        return ""
    before = [number for each, own in saved.items() if each <= attempt for number in own]
    return f"{named(before)} had been saved" if before else "no slice had been saved"


def counted(positions: Sequence[Position]) -> str:
    """`12 slices saved`."""
    return f"{plural(sum(map(len, saved_ranges(positions).values())), 'slice')} saved"
