"""The whole picture: the time axis, the faults as numbered bands over everything, the tracks, the curves.

Pure: the same run folder gives the same picture, byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from harness.report.escape import plural
from harness.report.timeline import shapes
from harness.report.timeline.curves import Curve, Curves
from harness.report.timeline.from_history import Fault, Happened
from harness.report.timeline.shapes import Label, Mark, Scale, Shape, Stroke, Way
from harness.report.timeline.tracks import TRACK, Setting, tracks

AXIS, COUNTS, LAG, GAP = 22, 110, 56, 22
FLAG, NEAR = 16, 2.6
"""The height of a fault's number, and how near (per cent) two may stand on one line."""
LEVELS = 4
MOST_FAULTS = 40


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A picture: its height in pixels, its shapes from back to front, and what it shows in a sentence or two."""

    height: int
    shapes: list[Shape]
    description: str
    committed_by: str
    rows: bool
    lag: bool


def picture(run: Happened, setting: Setting, over_time: Curves) -> Picture:
    """Return the timeline of a run."""
    scale = Scale(run.end)
    faults = list(run.faults[:MOST_FAULTS])
    flags = levels([scale.at((fault.begin + fault.end) / 2) for fault in faults])
    top = FLAG * (max(flags, default=-1) + 1) + 6
    body: list[Shape] = []
    y = top
    for track in tracks(run, setting, scale):
        body += [Label(kind="track", x="0%", y=y + 13, text=track.name)]
        body += [Label(kind="remark", x="100%", y=y + 13, text=track.remark, anchor="end", screen=True)]
        body += [moved(shape, y) for shape in track.shapes]
        y += TRACK
    y += 6
    most = max(
        (count for curve in (over_time.sent, over_time.committed, over_time.rows) for _, count in curve), default=0
    )
    if most:
        body += _panel("Records over time", most, y, COUNTS)
        body += _counts(over_time, scale, most, y + GAP)
        y += GAP + COUNTS + 10
    worst = max((count for _, count in over_time.lag), default=0)
    if worst:
        body += _panel("Lag: sent and not yet committed", worst, y, LAG)
        path = shapes.staircase(over_time.lag, scale, worst, LAG)
        body.append(Way(kind="lag", y=y + GAP, height=LAG, d=f"{path}V{LAG}Z"))
        y += GAP + LAG + 10
    back = [*_axis(scale, top, y), *_bands(faults, scale, flags, y)]
    return Picture(
        height=y + AXIS,
        shapes=[*back, *body],
        description=described(run, setting.saved),
        committed_by=over_time.by if over_time.committed else "",
        rows=bool(over_time.rows) and bool(most),
        lag=bool(worst),
    )


def described(run: Happened, saved: str = "") -> str:
    """Return the picture in words, for readers who cannot see it; `saved` replaces the batches."""
    deaths = sum(attempt.end is not None for attempt in run.attempts)
    batches = saved or plural(len({(work.query, work.batch) for work in run.works}), "batch")
    return (
        f"{run.end:.1f} seconds: {plural(len(run.attempts), 'attempt')} of the driver, of which {deaths} died; "
        f"{batches}; {plural(len(run.faults), 'fault')}. The run's history below has it line by line."
    )


def levels(places: Sequence[float]) -> list[int]:
    """For numbers at these places, the lines on which no two lie over each other."""
    taken: list[list[float]] = [[] for _ in range(LEVELS)]
    out = []
    for place in places:
        free = [line for line, others in enumerate(taken) if all(abs(place - other) >= NEAR for other in others)]
        line = free[0] if free else LEVELS - 1
        taken[line].append(place)
        out.append(line)
    return out


def moved(shape: Shape, down: int) -> Shape:
    """Return the same shape further down."""
    if isinstance(shape, Stroke):
        return replace(shape, y=shape.y + down, y2=shape.y2 + down)
    return replace(shape, y=shape.y + down)


def _axis(scale: Scale, top: int, bottom: int) -> Iterator[Shape]:
    every = shapes.ticks(scale.end)
    for place, seconds in enumerate(every):
        yield shapes.upright("grid", scale, seconds, (top, bottom - top))
        share = scale.at(seconds)
        anchor = "start" if share < 2 else "end" if share > 97 else "middle"
        text = f"{shapes.short(seconds)} s"
        yield Label(kind="time", x=scale.x(seconds), y=bottom + 14, text=text, anchor=anchor, screen=place % 3 != 0)


def _bands(faults: Sequence[Fault], scale: Scale, flags: Sequence[int], bottom: int) -> Iterator[Shape]:
    for fault, line in zip(faults, flags, strict=True):
        title = f"fault {fault.number}: {fault.step.name}"
        y = FLAG * line + 8
        kind = "band" if fault.step.injected else "band missed"
        yield shapes.box(kind, scale, (fault.begin, fault.end), (y, bottom - y), title)
        place = min(max((scale.at(fault.begin) + scale.at(fault.end)) / 2, 1.5), 98.5)
        yield Mark(
            kind="flag" if fault.step.injected else "flag missed",
            sign="flag",
            x=shapes.percent(place),
            y=y,
            title=title,
        )
        yield Label(kind="number", x=shapes.percent(place), y=y + 4, text=str(fault.number), anchor="middle")


def _panel(name: str, most: int, y: int, height: int) -> Iterator[Shape]:
    """Yield the head of a panel, its highest value and its ground line."""
    yield Label(kind="track", x="0%", y=y + 13, text=name)
    yield Label(kind="remark", x="100%", y=y + 13, text=f"top: {most:,}", anchor="end")
    yield Stroke(kind="ground", x="0%", x2="100%", y=y + GAP, y2=y + GAP)
    yield Stroke(kind="ground", x="0%", x2="100%", y=y + GAP + height, y2=y + GAP + height)


def _counts(over_time: Curves, scale: Scale, most: int, y: int) -> Iterator[Shape]:
    for kind, curve in (("sent", over_time.sent), ("committed", over_time.committed)):
        if curve:
            yield Way(kind=kind, y=y, height=COUNTS, d=shapes.staircase(curve, scale, most, COUNTS))
    yield from _readings(over_time.rows, scale, most, y)


def _readings(rows: Curve, scale: Scale, most: int, y: int) -> Iterator[Shape]:
    for seconds, count in rows:
        down = round(COUNTS - COUNTS * count / most)
        title = f"{count:,} rows in the sinks, read at {seconds:.2f} s"
        yield Mark(kind="rows", sign="diamond", x=scale.x(seconds), y=y + down, title=title)
