"""Suites and nights: a line each in `trend.jsonl`, as points with a picture and the table behind it.

A suite appends its line to `reports/latest/trend.jsonl`, a night to its own; both have `date`, `plans`, `verdicts`,
`failed` and `exit`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from harness.report.many.seen import Seen
from harness.report.summary import Run
from harness.run_folder import lines
from harness.scenario import Word

NAME = "trend.jsonl"
LINES = 10_000
LONGEST = 2**20
WIDE, HIGH = 720, 120
GAP = 4.0
STEM = 26.0


@dataclass(frozen=True, kw_only=True)
class Point:
    """One suite or night. `failed` counts what was not as expected and is not known; of a night, plans: runs again are
    not counted."""

    date: str
    what: str
    runs: int
    failed: int
    verdicts: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One point in the picture: where its bar stands, and how high its two parts are."""

    x: float
    wide: float
    top: float
    failed_top: float
    failed_high: float
    high: float
    number: int


@dataclass(frozen=True, kw_only=True)
class Trend:
    """The last points, the oldest first, and how many came before."""

    points: tuple[Point, ...]
    bars: tuple[Bar, ...]
    most: int
    left: int


def point(seen: Sequence[Seen], what: str = "suite") -> Point:
    """Return one suite or night from its runs."""
    first = [each for each in seen if not each.again]
    return Point(
        date=min((each.about.started for each in seen if each.about.started), default=""),
        what=what,
        runs=len(first),
        failed=sum(each.wrong for each in first),
        verdicts=dict(Counter(each.word.value for each in first)),
        seconds=round(sum(each.seconds for each in seen), 1),
    )


def append(path: Path, runs: Sequence[Run], code: int) -> None:
    """A line of a suite that is over, and its exit code. Raises HarnessError when the disk refuses."""
    seen = [Seen.of(run) for run in runs]
    new = point(seen)
    line = {
        "date": new.date,
        "what": new.what,
        "seconds": new.seconds,
        "plans": new.runs,
        "verdicts": new.verdicts,
        "failed": [f"{each.scenario}: {each.word}" for each in seen if each.wrong],
        "exit": code,
    }
    lines.append(path, line)


def read(path: Path, damaged: list[tuple[str, str]]) -> list[Point]:
    """Return the points of a `trend.jsonl`; a line that is none is named in `damaged`. Of a night that was cut short
    and went on, with one seed, shard and list, the last line counts."""
    out: dict[object, Point] = {}
    try:
        if path.is_symlink() or not path.is_file():
            raise ValueError("is no plain file")
        with path.open(encoding="utf-8", errors="surrogateescape") as file:
            for number, text in enumerate(islice(iter(lambda: file.readline(LONGEST), ""), LINES), 1):
                try:
                    data = json.loads(text)
                    out[_night(data) or number] = _point(data)
                except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
                    damaged.append((f"{path}:{number}", "is no line of a suite or of a night"))
    except (OSError, ValueError) as failure:
        damaged.append((str(path), str(failure)))
    return [*out.values()]


def trend(points: Sequence[Point], most: int) -> Trend:
    """Return the last `most` points by their time, with a picture: a bar each, as high as its runs."""
    ordered = sorted(points, key=lambda each: (each.date, each.what, each.runs, each.failed))
    shown = ordered[-most:]
    highest = max((each.runs for each in shown), default=0)
    each_wide = min(STEM, WIDE / max(1, len(shown)))
    bars = []
    for number, of_bar in enumerate(shown):
        high = _scaled(of_bar.runs, highest)
        bad = _scaled(min(of_bar.failed, of_bar.runs), highest)
        bars.append(
            Bar(
                x=round(number * each_wide + GAP / 2, 1),
                wide=round(max(1.0, each_wide - GAP), 1),
                top=round(HIGH - high, 1),
                high=round(high - bad, 1),
                failed_top=round(HIGH - bad, 1),
                failed_high=round(bad, 1),
                number=number + 1,
            )
        )
    return Trend(points=tuple(shown), bars=tuple(bars), most=highest, left=len(ordered) - len(shown))


def _scaled(count: int, highest: int) -> float:
    return HIGH * count / highest if highest else 0.0


def _night(data: dict[str, Any]) -> tuple[int, str, str] | None:
    """Return what tells a night from another one; None of a suite."""
    return (int(data["seed"]), str(data["shard"]), str(data.get("digest", ""))) if "seed" in data else None


def _point(data: dict[str, Any]) -> Point:
    verdicts = {word.value: int(data["verdicts"][word.value]) for word in Word if word.value in data["verdicts"]}
    return Point(
        date=str(data["date"]),
        what=str(data.get("what", "night")),
        runs=max(0, int(data["plans"])),
        failed=len(data["failed"]),
        verdicts=verdicts,
        seconds=float(data.get("seconds") or 0.0),
    )
