"""What Spark's checkpoint folder says: which batches are planned, which are committed, which offsets each covers.

Layout (Spark's MicroBatchExecution): `offsets/N` is written before batch N runs, `commits/N` after its sink is
committed; both appear by a rename from `.N.<uuid>.tmp`. An offset file has a version, a line of metadata and a line for
each source. In version 2 of the file this line begins with the source's name. `sources/K` is the log of source K; in
its first entry, `0`, Kafka's source says where it begins. What a line says is the source's own form: the caller brings
its `OffsetReader`. A query that reads the run's source more than once (a self-join, a union) is as far as the slowest
of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.snapshot import Batch, Query, QueryState

PLANNING = "planning"
"""In a listing, the batches whose `offsets/.N.<uuid>.tmp` is there."""
NAMED = "v2"
"""The first line of an offset file whose other lines begin with the name of their source."""
Offsets = dict[int, int]
"""Next offset by partition."""
OffsetReader = Callable[[str, Path], Offsets | None]
"""What a line of the offset log says of the run's source, whose own log is the folder; None if it is about something
else."""
Beginnings = Callable[[Path], Offsets]
"""Where the run's source begins in a checkpoint, whose folder is given, if Spark keeps no log of the source."""


def listing(checkpoint: Path) -> dict[str, tuple[int, ...]]:
    """Return the batch numbers under `offsets` and `commits`, and under `begun` those whose `commits/.N.<uuid>.tmp` was
    begun and not renamed yet; sorted, empty where the folder is not there. Under `planning`, if there are any, those of
    the same in `offsets`."""
    # In this order: a commit that is renamed between two listings is seen in one of them.
    begun = _names(checkpoint / "commits")
    return {**listed(_names(checkpoint / "offsets"), _names(checkpoint / "commits")), "begun": _begun(begun)}


def listed(offsets: Collection[str], commits: Collection[str]) -> dict[str, tuple[int, ...]]:
    """Return the same, of the names in both folders."""
    numbers = {"offsets": _numbers(offsets), "commits": _numbers(commits)}
    found = {**{name: tuple(sorted(each)) for name, each in numbers.items()}, "begun": _begun(commits)}
    planning = _begun(offsets)
    return {**found, PLANNING: planning} if planning else found


def _names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir()]
    except OSError:
        return []


def _numbers(names: Iterable[str]) -> list[int]:
    return [int(name) for name in names if name.isdecimal()]


def _begun(names: Iterable[str]) -> tuple[int, ...]:
    found = {int(n.split(".")[1]) for n in names if n.endswith(".tmp") and n.split(".")[1].isdecimal()}
    return tuple(sorted(found))


def lines_of(text: str) -> dict[str, str]:
    """Return what a file of the offset log says of each source, by the source's name: its number, unless the program
    names it."""
    lines = text.splitlines()
    if lines[:1] != [NAMED]:
        return {str(number): line for number, line in enumerate(lines[2:])}
    return _in_order({name: line for name, _, line in (each.partition(":") for each in lines[2:])})


def watermark_of(text: str) -> int | None:
    """Return the watermark that a file of the offset log names, in milliseconds; None if it names none."""
    mark = _metadata(text).get("batchWatermarkMs")
    return mark if isinstance(mark, int) and not isinstance(mark, bool) else None


def _metadata(text: str) -> dict[str, Any]:
    """Return the line of metadata in a file of the offset log; empty if there is none to read."""
    try:
        metadata = json.loads(text.splitlines()[1])
    except (IndexError, ValueError, RecursionError):
        return {}
    return metadata if isinstance(metadata, dict) else {}


def query_id(checkpoint: Path) -> str:
    """Return the id of the query whose checkpoint it is, as its file `metadata` has it; empty where it has none."""
    try:
        metadata = json.loads(_read(checkpoint / "metadata") or "{}")
    except (ValueError, RecursionError):
        return ""
    return str(metadata.get("id", "")) if isinstance(metadata, dict) else ""


def shuffle_partitions(checkpoint: Path) -> int | None:
    """Return over how many shuffle partitions a query keeps its state, as the newest file of its offset log has the
    setting; None for a query without state, or where the log does not say. Spark takes the number from there at a
    restart."""
    if not (checkpoint / "state").is_dir():
        return None
    text = _read(checkpoint / "offsets" / str(max(_numbers(_names(checkpoint / "offsets")), default=-1)))
    settings = _metadata(text or "").get("conf")
    given = str(settings.get("spark.sql.shuffle.partitions", "")) if isinstance(settings, dict) else ""
    return int(given) if given.isascii() and given.isdigit() else None


def sources_of(lines: Mapping[str, str], reads: OffsetReader, checkpoint: Path) -> list[Offsets]:
    """Return next offsets by each source that reads what the run's input goes into, in the order of the lines."""
    found = [reads(line, checkpoint / "sources" / source) for source, line in lines.items()]
    return [offsets for offsets in found if offsets is not None]


def slowest(sources: Iterable[Offsets]) -> Offsets:
    """Return partition by partition, the lowest of the sources that read it."""
    return _each(sources, min)


def fastest(sources: Iterable[Offsets]) -> Offsets:
    """Return partition by partition, the highest of the sources that read it."""
    return _each(sources, max)


def _each(sources: Iterable[Offsets], pick: Callable[[int, int], int]) -> Offsets:
    out: Offsets = {}
    for offsets in sources:
        for partition, offset in offsets.items():
            out[partition] = pick(offset, out.get(partition, offset))
    return out


def offsets_of(text: str, reads: OffsetReader, checkpoint: Path) -> Offsets | None:
    """Return next offsets in a file of the offset log, by the slowest of its sources; None if none reads the run's
    source."""
    found = sources_of(lines_of(text), reads, checkpoint)
    return slowest(found) if found else None


def read_offsets(checkpoint: Path, batch: int, reads: OffsetReader) -> Offsets | None:
    """`offsets_of` the file `offsets/<batch>`; None while it cannot be read."""
    text = _read(checkpoint / "offsets" / str(batch))
    return None if text is None else offsets_of(text, reads, checkpoint)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


@dataclass
class Progress:
    """What one checkpoint folder has shown so far: kept by the watcher, since Spark purges old batches."""

    folder: Path
    reads: OffsetReader
    ends: dict[int, Offsets] = field(default_factory=dict)
    committed: set[int] = field(default_factory=set)
    first_attempt: int = 0
    last_attempt: int = 0
    """The attempts of the driver that touched it first and last."""
    starts: dict[str, str] = field(default_factory=dict)
    """Where each source began, as `sources/K/0` says it: its last line."""
    begun: set[str] = field(default_factory=set)
    """The sources whose beginning was seen to appear."""
    lines: dict[int, dict[str, str]] = field(default_factory=dict)
    """By batch, the line of each source in `offsets/N`."""
    watermarks: dict[int, int | None] = field(default_factory=dict)
    """By batch, the watermark under which it runs."""
    attempts: dict[int, set[int]] = field(default_factory=dict)
    """By batch, the attempts that were seen at work on it."""
    first: dict[int, int] = field(default_factory=dict)
    """By attempt, the first batch that it was seen at work on."""
    elsewhere: bool = False
    """It has planned batches, and none of them names the run's source: a query that reads something else."""
    gone: bool = False
    """It was deleted, and another was begun in its place."""
    begins: Beginnings | None = None

    def note_start(self, source: str) -> None:
        """Remember where a source began, whose `sources/K/0` is there."""
        text = _read(self.folder / "sources" / source / "0")
        self.starts[source] = (text or "").strip().rpartition("\n")[2]

    def note_offsets(self, batch: int) -> None:
        """Remember the range of a batch whose `offsets/N` is there."""
        text = _read(self.folder / "offsets" / str(batch))
        if text is not None:
            self.lines[batch], self.watermarks[batch] = lines_of(text), watermark_of(text)
        ends = None if text is None else offsets_of(text, self.reads, self.folder)
        if ends is not None:
            self.ends[batch] = ends
        # Spark renames the file into place, so what is there is whole.
        self.elsewhere = not self.ends and (self.elsewhere or text is not None)

    def note_all(self) -> None:
        """Remember every batch that is there now."""
        found = listing(self.folder)
        for batch in found["offsets"]:
            self.note_offsets(batch)
        self.committed |= set(found["commits"])

    def note_work(self, batch: int, attempt: int) -> None:
        """Remember that an attempt was seen at work on a batch."""
        self.attempts.setdefault(batch, set()).add(attempt)
        self.first.setdefault(attempt, batch)

    def planned(self) -> Offsets:
        """Return next offsets of the newest planned batch."""
        planned = list(self.ends)
        return self.ends[max(planned)] if planned else {}

    def done(self) -> Offsets:
        """Return next offsets of the newest committed batch: all before them is what the pipeline calls done."""
        # A copy: the watching thread adds to it at any time.
        done = [batch for batch in list(self.ends) if batch in self.committed]
        return self.ends[max(done)] if done else {}

    def began(self) -> Offsets:
        """Return where batch 0 began."""
        starts = self._starts()
        if not starts and self.begins is not None:
            return self.begins(self.folder)
        return slowest(sources_of(starts, self.reads, self.folder))

    def _starts(self) -> dict[str, str]:
        if not self.starts and not self.gone:
            for path in self.folder.glob("sources/*/0"):
                self.note_start(path.parent.name)
        return _in_order(self.starts)

    def took_nothing(self, batch: int) -> bool:
        """Return whether it is a batch without a record of the run's source. Such a batch comes before anything was
        sent, or only moves a watermark. Of a query that reads something else: without any record."""
        now = self._lines(batch)
        earlier = [number for number in list(self.lines) if number < batch]
        before = self._lines(max([batch - 1, *earlier])) if batch > 0 else self._starts()
        began = self.began() if batch == 0 and not before else {}
        if not now or not (before or began):
            return False
        if self.elsewhere:
            return now == before
        old, new = (sources_of(lines, self.reads, self.folder) for lines in (before, now))
        old = old or [began]
        if len(old) != len(new):
            old = [slowest(old)] * len(new)
        pairs = zip(old, new, strict=True)
        return bool(new) and all(offset <= was.get(p, 0) for was, ends in pairs for p, offset in ends.items())

    def _lines(self, batch: int) -> dict[str, str]:
        """From the disk, where a batch may have been planned again; as remembered once Spark has purged it."""
        text = _read(self.folder / "offsets" / str(batch))
        return self.lines.get(batch, {}) if text is None else lines_of(text)

    def ranges(self, batch: int) -> dict[int, tuple[int, int]]:
        """Return what a batch takes of the run's source, by partition; empty where that is not known."""
        earlier = [number for number in list(self.ends) if number < batch]
        before = self.ends[max(earlier)] if earlier else self.began()
        return {p: (before.get(p, 0), end) for p, end in sorted(self.ends.get(batch, {}).items())}

    def batches(self) -> tuple[Batch, ...]:
        """Return what each batch took of the run's source, in order."""
        before, out = self.began(), []
        known = set(self.attempts) | set(self.ends) | set(self.lines) | self.committed
        for batch in sorted(known):
            ends = self.ends.get(batch, {})
            ranges = {p: (before.get(p, 0), end) for p, end in sorted(ends.items())}
            done, attempts = batch in self.committed, tuple(sorted(self.attempts.get(batch, ())))
            mark = self.watermarks.get(batch)
            out.append(Batch(batch=batch, ranges=ranges, committed=done, attempts=attempts, watermark_ms=mark))
            before = ends or before
        return tuple(out)

    def query(self, name: str) -> Query:
        """Return all of it, under the name of its folder."""
        return Query(checkpoint=name, ours=not self.elsewhere, batches=self.batches(), first=dict(self.first))

    def state(self, name: str) -> QueryState:
        """Return where it stands right now, straight from the disk; nothing is left of one that is gone."""
        if self.gone:
            return QueryState(checkpoint=name, ours=not self.elsewhere)
        found = listing(self.folder)
        offsets, commits = found["offsets"], found["commits"]
        return QueryState(
            checkpoint=name,
            ours=not self.elsewhere,
            offsets=offsets,
            commits=commits,
            planned=self._end(max(offsets, default=-1)),
            committed=self._end(max(commits, default=-1)),
            planned_most=self._most(max(offsets, default=-1)),
            committed_most=self._most(max(commits, default=-1)),
        )

    def _end(self, batch: int) -> Offsets:
        return read_offsets(self.folder, batch, self.reads) or self.ends.get(batch, {})

    def _most(self, batch: int) -> Offsets:
        """Return next offsets by the fastest of several sources; empty if there is one."""
        sources = sources_of(self._lines(batch), self.reads, self.folder)
        return fastest(sources) if len(sources) > 1 else {}


def _in_order(lines: Mapping[str, str]) -> dict[str, str]:
    """By the names of the sources, numbers as numbers."""
    return {name: lines[name] for name in sorted(lines, key=lambda name: (len(name) if name.isdecimal() else 0, name))}


def caught_up(committed: Mapping[int, int], end: Mapping[int, int]) -> bool:
    """Return True if every record before `end` is `committed`."""
    return all(committed.get(partition, 0) >= offset for partition, offset in end.items())


def count(offsets: Mapping[int, int]) -> int:
    """Return sum of the next offsets: how many log positions lie before them."""
    return sum(offsets.values())
