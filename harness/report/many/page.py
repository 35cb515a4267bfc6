"""The page of many runs as plain texts; the template places them and decides nothing.

A `Shown` says how much of each part is there, so that the page stays under `budget.MOST_BYTES`; what is left out is
counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from harness.report.causes.sentences import sentences
from harness.report.escape import plural, visible
from harness.report.many.coverage import grid
from harness.report.many.durations import durations
from harness.report.many.hunted import Hunted
from harness.report.many.matrix import MARKS, Link, Most, matrix
from harness.report.many.seen import EXPECTED, Seen
from harness.report.many.trend import Point, trend
from harness.report.many.versions import versions
from harness.report.summary import WORST_FIRST
from harness.scenario import Word


@dataclass(frozen=True, kw_only=True)
class Shown:
    """How much is shown at most."""

    rows: int
    heads: int
    entries: int
    links: int
    grid: int
    listed: int
    bars: int
    points: int
    text: int


FULL = Shown(rows=600, heads=16, entries=24, links=24, grid=300, listed=200, bars=600, points=60, text=300)
LEAN = Shown(rows=400, heads=12, entries=8, links=8, grid=120, listed=80, bars=120, points=30, text=200)
# The matrix is what a team came for, so its pipelines are cut last.
TIGHT = Shown(rows=600, heads=12, entries=4, links=6, grid=100, listed=60, bars=25, points=20, text=150)
BARE = Shown(rows=120, heads=10, entries=1, links=3, grid=60, listed=30, bars=20, points=12, text=90)
LEAST = Shown(rows=40, heads=6, entries=1, links=1, grid=30, listed=20, bars=15, points=8, text=60)
EVERY = (FULL, LEAN, TIGHT, BARE, LEAST)


@dataclass(frozen=True, kw_only=True)
class Many:
    """What the page is made from."""

    seen: Sequence[Seen]
    damaged: Sequence[tuple[str, str]] = ()
    points: Sequence[Point] = ()
    hunted: Sequence[Hunted] = ()


LISTS = {
    "damaged": ("damaged folder", "in the list of what was not read"),
    "wrong": ("run", "in the list of those that are not as expected"),
    "known": ("run", "in the list of those that are known to fail"),
    "hunted": ("pipeline", "in the table of those that are expected to break"),
    "blank": ("run", "in the list of drawn plans that are untested"),
    "mute": ("run", "in the list of those without an answer"),
}
"""What the page lists, and how it says what does not fit."""


def build(many: Many, link: Link, shown: Shown = FULL) -> dict[str, Any]:
    """Return every text of the page, by the name that its template has for it; `link` gives the address of a run's
    page, None where there is none."""
    runs = sorted(many.seen, key=lambda seen: (seen.about.started, seen.scenario, str(seen.folder)))
    worst = sorted(runs, key=lambda seen: WORST_FIRST.index(seen.word))
    lists: dict[str, Sequence[Any]] = {
        "damaged": many.damaged,
        "wrong": [seen for seen in worst if seen.wrong],
        "known": [seen for seen in worst if not (seen.as_expected or seen.wrong or seen.blank)],
        # Those that were not found first: they are what is left to do.
        "hunted": sorted(many.hunted, key=lambda each: (bool(each.plan), each.every)),
        "blank": [seen for seen in worst if seen.blank],
        "mute": [seen for seen in worst if seen.as_expected and seen.mute and not seen.blank],
    }
    pipelines = matrix(runs, link, Most(rows=shown.rows, heads=shown.heads, entries=shown.entries, links=shown.links))
    by_version, points = versions(runs, rows=shown.grid), grid(runs, rows=shown.grid, heads=shown.heads)
    took, course = durations(runs, most=shown.bars), trend(many.points, shown.points)
    left = [
        *((len(every) - shown.listed, *LISTS[name]) for name, every in lists.items()),
        (pipelines.left, "pipeline", "in the matrix"),
        (pipelines.places_left, "place", "in the matrix: its cells count them"),
        (by_version.left, "scenario", "in the table of versions"),
        (points.left_lines, "crash point", "in the grid"),
        (points.left_heads, "fault", "in the grid"),
        (took.left, "run", "among the durations: shorter ones"),
        (course.left, "suite or night", "in the trend: earlier ones"),
    ]
    return {
        "tally": tally(runs),
        "period": _period(runs),
        "figures": _figures(runs, many.damaged),
        **{name: every[: shown.listed] for name, every in lists.items()},
        "matrix": pipelines,
        "versions": by_version,
        "grid": points,
        "durations": took,
        "trend": course,
        "left": [
            *(f"Left out: {plural(count, noun)} {where}." for count, noun, where in left if count > 0),
            *_gone(runs),
        ],
        "why": why,
        "EXPECTED": EXPECTED,
        "link": link,
    }


def _gone(runs: Sequence[Seen]) -> Iterator[str]:
    if removed := sum(seen.removed for seen in runs):
        yield (
            f"The folders of {plural(removed, 'run')} of these were removed, to stay within the disk bound. What they "
            "came to is counted here; their pages, records and evidence are gone."
        )


def tally(runs: Sequence[Seen]) -> str:
    """`18 runs: 14 as expected, 2 not (1 violated, 1 untested), 1 known to fail, 1 drawn and untested`. Of a plan
    that a night played again the first run counts, as in the trend."""
    first = [seen for seen in runs if not seen.again]
    wrong = [seen.word for seen in first if seen.wrong]
    blank = sum(seen.blank for seen in first)
    known = sum(not (seen.as_expected or seen.wrong or seen.blank) for seen in first)
    good = f"{plural(len(first), 'run')}: {len(first) - len(wrong) - known - blank} as expected"
    counted = ", ".join(f"{wrong.count(word)} {word}" for word in Word if word in wrong)
    parts = [
        good,
        *([f"{len(wrong)} not ({counted})"] if wrong else []),
        *([f"{known} known to fail"] if known else []),
        *([f"{blank} drawn and untested"] if blank else []),
        *([f"and {plural(again, 'run')} again"] if (again := len(runs) - len(first)) else []),
    ]
    return ", ".join(parts)


def _period(runs: Sequence[Seen]) -> str:
    times = sorted(seen.about.started for seen in runs if seen.about.started)
    stacks = ", ".join(sorted({seen.stack for seen in runs if seen.stack}))
    when = (
        f"begun {times[0]} to {times[-1]}" if times and times[0] != times[-1] else f"begun {times[0]}" if times else ""
    )
    return "; ".join(part for part in (when, f"stack {stacks}" if stacks else "") if part)


def _figures(runs: Sequence[Seen], damaged: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    words = [(str(count), f"{MARKS[word]} {word.value}") for word in Word if (count := _count(runs, word))]
    out = [*words, (str(len({seen.about.pipeline for seen in runs} - {""})), "pipelines")]
    return [*out, (str(len(damaged)), "not read")] if damaged else out


def _count(runs: Sequence[Seen], word: Word) -> int:
    return sum(seen.word is word and not seen.again for seen in runs)


def why(seen: Seen) -> str:
    """Return what a run found, and the first of its reasons."""
    found = ", ".join(f"{count:,} {visible(kind, 60)}" for kind, count in seen.kinds.items())
    reason = sentences(seen.reasons[0])[:2] if seen.reasons else []
    return " ".join([*([f"Findings: {found}."] if found else []), *reason]) or "The run says no reason."
