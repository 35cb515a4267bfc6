"""Which run folders a night keeps: the newest held ones, and failed ones for as long as the disk bound allows. Pure but
for `size`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HELD_KEPT = 10


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A run folder that is there: its bytes, and whether it is of a plan that failed."""

    folder: str
    size: int
    failed: bool


def thinned(kept: Sequence[Kept], bound: int) -> list[Kept]:
    """Those to remove, of `kept` in the order of their runs: held ones but the newest, then the oldest held, then the
    oldest failed, until the rest has at most `bound` bytes. The last one that failed stays whatever it takes."""
    held = [each for each in kept if not each.failed]
    failed = [each for each in kept if each.failed]
    gone = held[:-HELD_KEPT]
    left = sum(each.size for each in kept) - sum(each.size for each in gone)
    for each in (*held[len(gone) :], *failed[:-1]):
        if left <= bound:
            break
        gone.append(each)
        left -= each.size
    return gone


def size(folder: Path) -> int:
    """The bytes of a folder; of what goes away meanwhile, nothing."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_size
        except FileNotFoundError:
            continue
    return total
