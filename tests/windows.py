"""Windows in append and update mode as Spark's state store makes them, batch by batch, and run folders of such a query:
an implementation of its own, to hold the judge against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.checkers.cells import Row
from harness.run_folder.store import RunFolder
from harness.scenario import Sink
from harness.scenario.watermark import OutputMode, Watermark
from harness.snapshot import Batch, Query
from tests.corpus.case import Right, judged_as
from tests.corpus.run_builder import CHECKPOINT, RunBuilder
from tests.folders import COLUMNS, SCENARIO, edited, recorded

WINDOW_MS = 10_000
DELAY_MS = 2_000
Record = tuple[int, int]
"""Its number, and its time in milliseconds."""


@dataclass
class Story:
    """By batch: the watermark in milliseconds, and the windows that it wrote, by their number, with their records."""

    watermarks: list[int] = field(default_factory=list)
    written: list[dict[int, list[int]]] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    open: dict[int, list[int]] = field(default_factory=dict)


CLOSING = Watermark(
    of="event_time", closes="time_bucket(interval '10 seconds', event_time) + interval '10 seconds'", delay_s=2.0
)


def played(batches: Sequence[Sequence[Record]], delay_ms: int) -> Story:
    """What Spark does with these batches."""
    story, before, now = Story(), 0, 0
    for records in batches:
        story.watermarks.append(now)
        for number, at_ms in records:
            window = at_ms // WINDOW_MS
            if (window + 1) * WINDOW_MS <= before:
                story.dropped.append(number)
            else:
                story.open.setdefault(window, []).append(number)
        closed = sorted(window for window in story.open if (window + 1) * WINDOW_MS <= now)
        story.written.append({window: story.open.pop(window) for window in closed})
        before, now = now, max([now, *(at_ms - delay_ms for _, at_ms in records)])
    return story


def updated(batches: Sequence[Sequence[Record]], delay_ms: int) -> Story:
    """What Spark does with these batches in update mode: a window is written with all its records so far."""
    story, before, now = Story(), 0, 0
    for records in batches:
        story.watermarks.append(now)
        taken = [each for each in records if (each[1] // WINDOW_MS + 1) * WINDOW_MS > before]
        story.dropped += [number for number, at_ms in records if (number, at_ms) not in taken]
        for number, at_ms in taken:
            story.open.setdefault(at_ms // WINDOW_MS, []).append(number)
        story.written.append({at_ms // WINDOW_MS: [*story.open[at_ms // WINDOW_MS]] for _, at_ms in taken})
        story.open = {window: each for window, each in story.open.items() if (window + 1) * WINDOW_MS > now}
        before, now = now, max([now, *(at_ms - delay_ms for _, at_ms in records)])
    return story


SINK = Sink(
    kind="postgres",
    target="windows",
    expected="select ms // 10000 as w, count(*) as n, sum(amount) as total from ledger where not (_late or _open) "
    "group by 1",
    key=("w",),
    watermark=CLOSING,
)
UPDATED = replace(
    SINK,
    expected="select ms // 10000 as w, count(*) as n, sum(amount) as total from ledger where not _late group by 1",
    watermark=replace(CLOSING, mode=OutputMode.UPDATE),
)
TIMES = [
    {"name": "ms", "type": "BIGINT", "expression": "value ->> '$.ms'"},
    {"name": "event_time", "type": "TIMESTAMP", "expression": "epoch_ms(cast(value ->> '$.ms' as bigint))"},
]
TYPES = [[("w", "bigint", "number"), ("n", "bigint", "number"), ("total", "numeric", "number")]]


@dataclass
class WindowRun(RunBuilder):
    """A run whose one sink holds windows; `times` are the milliseconds of each batch's records. Honest until it is
    changed: `rows` may be, and `marks`, the watermarks that Spark's log tells."""

    times: Sequence[Sequence[int]] = ()
    marks: list[int | None] = field(default_factory=list)
    rows_: list[Row] = field(default_factory=list)
    honest: list[Row] = field(default_factory=list)
    calm_rows: list[list[Row]] = field(default_factory=list)
    calm_marks: list[int | None] | None = None
    begins: int = 0
    """The offset at which the query begins to read."""
    committed: int = 10**9
    """The batches before it are committed."""
    holds: Sink = SINK

    @property
    def story(self) -> Story:
        """What Spark does."""
        at, out = 0, list[list[Record]]()
        for each in self.times:
            out.append([(at + place, ms) for place, ms in enumerate(each)])
            at += len(each)
        return (updated if self.holds is UPDATED else played)(out, DELAY_MS)

    def wrote(self, *batches: int) -> list[Row]:
        """The rows that these batches wrote, a later one over an earlier one."""
        story, there = self.story, dict[int, list[int]]()
        for batch in batches:
            there |= story.written[batch]
        return [self.row(window, numbers) for window, numbers in there.items()]

    def row(self, window: int, numbers: Sequence[int]) -> Row:
        """One window of these records: every amount is another one."""
        total = sum(self.records[number]["cents"] for number in numbers)
        return str(window), str(len(numbers)), f"{total / 100:.2f}".rstrip("0").rstrip(".")

    def made(self) -> None:
        """Take the records of `times`, in the batches that took them."""
        flat = [ms for each in self.times for ms in each]
        self.records = [
            {"id": n, "account": f"a{n % 3}", "amount": f"{n + 1}.{n:02d}", "cents": (n + 1) * 100 + n, "ms": ms}
            for n, ms in enumerate(flat)
        ]
        self.columns = [*COLUMNS, *TIMES]
        self.sink(self.holds, types=TYPES)
        self.ends = [sum(len(each) for each in self.times[: place + 1]) for place in range(len(self.times))]
        self.marks = list(self.story.watermarks)
        self.rows_ = self.wrote(*range(len(self.times)))
        self.honest = [*self.rows_]

    def injected(self, batch: int, *, written: bool, **changes: Any) -> None:
        """The driver was killed in this batch, with its windows in the sink or without."""
        point = "sink-committed" if written else "batch-planned"
        there = self.wrote(*range(batch + 1)) if written else self.wrote(*range(batch))
        self.injection(batch, point=point, tables=[there], **changes)

    def written(self) -> Path:
        """The folder, with all that was changed."""
        self._ready()
        path = self.write()
        for number, rows in enumerate(self.calm_rows, 1):
            self._calm(number, rows)
        return path

    def complete(self) -> RunFolder:
        """The same without baseline runs, judged and with digests."""
        self._ready()
        return super().complete()

    def _ready(self) -> None:
        first = {1: 0, **{each.attempt + 1: each.again for each in self.moments if each.again is not None}}
        self.tables = [self.rows_]
        if self.queries is None:
            self.queries = [Query(checkpoint=CHECKPOINT, batches=self.taken(self.marks), first=first)]
            self.batches = list(self.queries[0].batches)

    def taken(self, marks: Sequence[int | None]) -> tuple[Batch, ...]:
        """The batches, under these watermarks."""
        starts = [self.begins, *self.ends]
        return tuple(
            Batch(batch=n, ranges={0: (starts[n], end)}, committed=n < self.committed, watermark_ms=marks[n])
            for n, end in enumerate(self.ends)
        )

    def _calm(self, number: int, rows: list[Row]) -> None:
        batches = self.taken(self.calm_marks or self.story.watermarks)
        whole = [Query(checkpoint=CHECKPOINT, batches=batches, first={1: 0})]
        calm = replace(
            self,
            path=self.path / "baseline" / str(number),
            scenario=replace(self.scenario, schedule=()),
            steps=[],
            moments=[],
            edits={},
            outcome={},
            queries=whole,
            batches=list(batches),
            tables=[rows],
            calm_rows=[],
        )
        calm.write()

    def write_baseline(self) -> Path:
        self._calm(1, self.honest)
        return self.path

    def edit(self, name: str, change: Callable[[dict[str, Any]], None]) -> None:
        """Change what the history of the folder says, by the names of `edited`."""
        said = recorded(self.path, name)
        change(said)
        edited(self.path, name, **said)


TOLD = ((1_000, 4_000, 8_000), (12_000, 5_000), (9_500, 23_500), (31_000, 24_000), (45_000,), ())
"""Five batches of records, and one without any. Batch 2 closes window 0, a record of its own in it; batch 3 closes
window 1, the last one windows 2 and 3. Window 4 stays open."""


def windowed(path: Path, times: Sequence[Sequence[int]] = TOLD, holds: Sink = SINK) -> WindowRun:
    """An honest run in which nothing was struck yet."""
    run = WindowRun(path, scenario=replace(SCENARIO, schedule=()), times=times, holds=holds)
    run.made()
    return run


def says(run: WindowRun, right: Right) -> None:
    """The judge says so of it."""
    missed = judged_as(run, run.written()).misses(right)
    assert missed == {}, missed


def marked(run: WindowRun, batch: int) -> None:
    """Spark's log tells another watermark from there on."""
    run.marks = [mark if n < batch or mark is None else mark + 1 for n, mark in enumerate(run.marks)]
