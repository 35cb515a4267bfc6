"""What Spark's checkpoint folder says: which batches are planned, which are committed, which offsets each covers.

Layout (Spark's MicroBatchExecution): `offsets/N` is written before batch N runs, `commits/N` after its sink is
committed; both appear by a rename from `.N.<uuid>.tmp`. `sources/0/0` holds where batch 0 began.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Offsets = dict[int, int]
"""Next offset by partition."""


def listing(checkpoint: Path) -> dict[str, tuple[int, ...]]:
    """The batch numbers under `offsets` and `commits`, and under `begun` those whose `commits/.N.<uuid>.tmp` was begun
    and not renamed yet; sorted, empty where the folder is not there."""
    # In this order: a commit that is renamed between two looks is seen in one of them.
    begun = _begun(checkpoint / "commits")
    return {**{name: tuple(sorted(_numbers(checkpoint / name))) for name in ("offsets", "commits")}, "begun": begun}


def _numbers(folder: Path) -> Iterable[int]:
    try:
        return [int(entry.name) for entry in folder.iterdir() if entry.name.isdecimal()]
    except OSError:
        return []


def _begun(commits: Path) -> tuple[int, ...]:
    try:
        names = [entry.name for entry in commits.iterdir()]
    except OSError:
        return ()
    found = {int(n.split(".")[1]) for n in names if n.endswith(".tmp") and n.split(".")[1].isdecimal()}
    return tuple(sorted(found))


def offsets_of(text: str, topic: str) -> Offsets | None:
    """Next offsets of `topic` in one file of the offset log (or `sources/0/0`); None if it names no such topic."""
    for line in text.splitlines():
        try:
            words: Any = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(words, dict) and isinstance(words.get(topic), dict):
            return {int(partition): int(offset) for partition, offset in words[topic].items()}
    return None


def read_offsets(path: Path, topic: str) -> Offsets | None:
    """`offsets_of` the file at `path`; None while it cannot be read."""
    try:
        return offsets_of(path.read_text(encoding="utf-8", errors="replace"), topic)
    except OSError:
        return None


@dataclass
class Progress:
    """What one checkpoint folder has shown so far: kept by whoever watches, since Spark purges old batches."""

    folder: Path
    topic: str
    ends: dict[int, Offsets] = field(default_factory=dict)
    committed: set[int] = field(default_factory=set)
    first_life: int = 0
    life: int = 0
    """The lives of the driver that touched it first and last."""
    begun: bool = False
    """Where its first batch begins has been seen (`sources/0/0`)."""
    elsewhere: bool = False
    """It has planned batches, and none of them names the topic: a query that reads something else."""

    def note_offsets(self, batch: int) -> None:
        """Remember the range of a batch whose `offsets/N` is there."""
        path = self.folder / "offsets" / str(batch)
        ends = read_offsets(path, self.topic)
        if ends is not None:
            self.ends[batch] = ends
        # Spark renames the file into place, so what is there is whole.
        self.elsewhere = not self.ends and (self.elsewhere or path.exists())

    def note_all(self) -> None:
        """Remember every batch that is there now."""
        found = listing(self.folder)
        for batch in found["offsets"]:
            self.note_offsets(batch)
        self.committed |= set(found["commits"])

    def planned(self) -> Offsets:
        """Next offsets of the newest planned batch."""
        planned = list(self.ends)
        return self.ends[max(planned)] if planned else {}

    def frontier(self) -> Offsets:
        """Next offsets of the newest committed batch: all before them is what the pipeline calls done."""
        # A copy: the watching thread adds to it at any time.
        done = [batch for batch in list(self.ends) if batch in self.committed]
        return self.ends[max(done)] if done else {}

    def batches(self) -> list[dict[str, Any]]:
        """Ranges by batch, `{"batch", "ranges": {partition: [start, end)}, "committed"}`, in order."""
        before = read_offsets(self.folder / "sources" / "0" / "0", self.topic) or {}
        out = []
        for batch in sorted(self.ends):
            ends = self.ends[batch]
            ranges = {str(p): [before.get(p, 0), end] for p, end in sorted(ends.items())}
            out.append({"batch": batch, "ranges": ranges, "committed": batch in self.committed})
            before = ends
        return out


def behind(frontier: Mapping[int, int], end: Mapping[int, int]) -> bool:
    """True if every record before `end` lies behind `frontier`."""
    return all(frontier.get(partition, 0) >= offset for partition, offset in end.items())


def count(offsets: Mapping[int, int]) -> int:
    """Sum of the next offsets: how many log positions lie before them."""
    return sum(offsets.values())
