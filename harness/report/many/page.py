"""The page of many runs as plain texts; the template places them and decides nothing.

A `Shown` says how much of each part is there, so that the page stays under `budget.MOST_BYTES`; what is left out is
counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness import __version__
from harness.report.causes.sentences import sentences
from harness.report.escape import plural, visible
from harness.report.many.coverage import Grid, grid
from harness.report.many.durations import Durations, durations
from harness.report.many.hunted import Hunted
from harness.report.many.matrix import MARKS, Link, Matrix, Most, matrix
from harness.report.many.seen import EXPECTED, Seen
from harness.report.many.trend import Point, Trend, trend
from harness.report.many.versions import Versions, versions
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
AGAIN = " (again)"
EVERY = (FULL, LEAN, TIGHT, BARE, LEAST)


@dataclass(frozen=True, kw_only=True)
class Item:
    """One run in a list, with why."""

    mark: str
    word: str
    name: str
    why: str
    expected: str
    known: str
    link: str | None


@dataclass(frozen=True, kw_only=True)
class ManyPage:
    """Every text of the page, in the order in which it is read."""

    tally: str
    period: str
    figures: list[tuple[str, str]]
    damaged: list[tuple[str, str]]
    damaged_left: int
    wrong: list[Item]
    wrong_left: int
    known: list[Item]
    known_left: int
    hunted: list[Hunted]
    hunted_left: int
    blank: list[Item]
    blank_left: int
    matrix: Matrix
    versions: Versions
    grid: Grid
    mute: list[Item]
    mute_left: int
    durations: Durations
    trend: Trend
    left: list[str]
    made_by: str = __version__


@dataclass(frozen=True, kw_only=True)
class Many:
    """What the page is made from."""

    seen: Sequence[Seen]
    damaged: Sequence[tuple[str, str]] = ()
    points: Sequence[Point] = ()
    hunted: Sequence[Hunted] = ()


def build(many: Many, link: Link, shown: Shown = FULL) -> ManyPage:
    """Return the page; `link` gives the address of a run's page, None where there is none."""
    runs = sorted(many.seen, key=lambda seen: (seen.about.started, seen.scenario, str(seen.folder)))
    worst = sorted(runs, key=lambda seen: WORST_FIRST.index(seen.word))
    wrong = [seen for seen in worst if seen.wrong]
    known = [seen for seen in worst if not (seen.as_expected or seen.wrong or seen.blank)]
    blank = [seen for seen in worst if seen.blank]
    mute = [seen for seen in worst if seen.as_expected and seen.mute and not seen.blank]
    page = ManyPage(
        tally=tally(runs),
        period=_period(runs),
        figures=_figures(runs, many.damaged),
        damaged=list(many.damaged[: shown.listed]),
        damaged_left=max(0, len(many.damaged) - shown.listed),
        wrong=[_item(seen, link) for seen in wrong[: shown.listed]],
        wrong_left=max(0, len(wrong) - shown.listed),
        known=[_item(seen, link) for seen in known[: shown.listed]],
        known_left=max(0, len(known) - shown.listed),
        # Those that were not found first: they are what is left to do.
        hunted=sorted(many.hunted, key=lambda each: (bool(each.plan), each.every))[: shown.listed],
        hunted_left=max(0, len(many.hunted) - shown.listed),
        blank=[_item(seen, link) for seen in blank[: shown.listed]],
        blank_left=max(0, len(blank) - shown.listed),
        matrix=matrix(runs, link, Most(rows=shown.rows, heads=shown.heads, entries=shown.entries, links=shown.links)),
        versions=versions(runs, link, rows=shown.grid),
        grid=grid(runs, rows=shown.grid, heads=shown.heads),
        mute=[_item(seen, link) for seen in mute[: shown.listed]],
        mute_left=max(0, len(mute) - shown.listed),
        durations=durations(runs, link, most=shown.bars),
        trend=trend(many.points, shown.points),
        left=[],
    )
    removed = sum(seen.removed for seen in runs)
    page.left.extend(_left(page))
    if removed:
        page.left.append(
            f"The folders of {plural(removed, 'run')} of these were removed, to stay within the disk bound. What they "
            "came to is counted here; their pages, records and evidence are gone."
        )
    return page


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


def _item(seen: Seen, link: Link) -> Item:
    why = " ".join(sentences(seen.reasons[0])[:2]) if seen.reasons else ""
    found = ", ".join(f"{count:,} {visible(kind, 60)}" for kind, count in seen.kinds.items())
    return Item(
        mark=MARKS[seen.word],
        word=seen.word.value,
        name=seen.scenario + (AGAIN if seen.again else ""),
        why=" ".join([*([f"Findings: {found}."] if found else []), why]).strip() or "The run says no reason.",
        expected=seen.expected if seen.wrong else "",
        known="The pipeline's own scenarios expect it." if seen.known == EXPECTED else seen.known,
        link=link(seen.folder),
    )


def _left(page: ManyPage) -> list[str]:
    """Return what does not fit, a sentence each."""
    counts = (
        (page.damaged_left, "damaged folder", "in the list of what was not read"),
        (page.wrong_left, "run", "in the list of those that are not as expected"),
        (page.known_left, "run", "in the list of those that are known to fail"),
        (page.hunted_left, "pipeline", "in the table of those that are expected to break"),
        (page.matrix.left, "pipeline", "in the matrix"),
        (page.matrix.places_left, "place", "in the matrix: its cells count them"),
        (page.versions.left, "scenario", "in the table of versions"),
        (page.grid.left_lines, "crash point", "in the grid"),
        (page.grid.left_heads, "fault", "in the grid"),
        (page.blank_left, "run", "in the list of drawn plans that are untested"),
        (page.mute_left, "run", "in the list of those without an answer"),
        (page.durations.left, "run", "among the durations: shorter ones"),
        (page.trend.left, "suite or night", "in the trend: earlier ones"),
    )
    return [f"Left out: {plural(count, noun)} {where}." for count, noun, where in counts if count]
