"""Pipelines by faults: a section for each folder of programs, the rows of a pair together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness.report.escape import plural, visible
from harness.report.many import pairs
from harness.report.many.pairs import Row
from harness.report.many.seen import Seen
from harness.scenario import Guarantee, Input, Word

MARKS = {Word.HELD: "✓", Word.VIOLATED: "✗", Word.UNTESTED: "○", Word.INCONCLUSIVE: "?", Word.ERROR: "!"}
NO_FAULT = "no fault"
OTHERS = "other faults"
UNKNOWN = "pipelines that nothing names"
Link = Callable[[Path | None], str | None]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Runs of one pipeline under one fault at one place that came to the same. `links` has an address a run, None where
    there is no page; `more` counts the runs of which no link is shown."""

    word: str
    kinds: str
    wrong: str
    place: str
    links: list[str | None]
    more: int
    with_others: bool


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One pipeline under one fault. `left` says at how many places more, and what came out there; `places` counts
    them."""

    head: str
    entries: list[Entry]
    left: str
    places: int


@dataclass(frozen=True, kw_only=True)
class Line:
    """One pipeline. It has a cell for each head of the section."""

    name: str
    role: str
    about: list[str]
    cells: list[Cell]


@dataclass(frozen=True, kw_only=True)
class Section:
    """The programs of one folder. Each cluster is one pipeline, or a pair."""

    title: str
    heads: list[str]
    clusters: list[list[Line]]


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """All sections, how many pipelines are left out, and how many places in the cells of the others."""

    sections: list[Section]
    pairs: int
    left: int
    places_left: int


@dataclass(frozen=True, kw_only=True)
class Most:
    """How much is shown at most: rows, heads of a section, entries of a cell, links of an entry."""

    rows: int
    heads: int
    entries: int
    links: int


def matrix(runs: Sequence[Seen], link: Link, most: Most) -> Matrix:
    """What does not fit is counted. Clusters with a run that is not as expected come in first."""
    of_row: dict[Row, list[Seen]] = defaultdict(list)
    for seen in runs:
        of_row[pairs.row(seen) if seen.about.pipeline else Row("", seen.file or seen.scenario, "", ())].append(seen)
    found = pairs.find(runs)
    clusters = pairs.clusters(sorted(of_row), found)
    wrong = sorted(clusters, key=lambda own: not any(seen.wrong for row in own for seen in of_row[row]))
    kept: set[Row] = set()
    for own in wrong:
        if len(kept) + len(own) > most.rows:
            break
        kept.update(own)
    sections: dict[str, list[list[Row]]] = defaultdict(list)
    for own in clusters:
        if own[0] in kept:
            sections[_folder(own[0])].append(own)
    shown = [_section(title, own, of_row, found, link=link, most=most) for title, own in sorted(sections.items())]
    return Matrix(
        sections=shown,
        pairs=len(found),
        left=len(of_row) - len(kept),
        places_left=sum(
            cell.places for section in shown for own in section.clusters for line in own for cell in line.cells
        ),
    )


def _section(
    title: str,
    clusters: Sequence[Sequence[Row]],
    of_row: dict[Row, list[Seen]],
    found: Sequence[pairs.Pair],
    *,
    link: Link,
    most: Most,
) -> Section:
    every = Counter(fault for own in clusters for row in own for seen in of_row[row] for fault in _faults(seen))
    counted = sorted(every, key=lambda fault: (-every[fault], fault))
    shown = counted[: most.heads]
    titles = [*shown, *([OTHERS] if len(counted) > most.heads else [])]

    def line(row: Row) -> Line:
        cells: dict[str, list[tuple[Seen, str]]] = {head: [] for head in titles}
        for seen in of_row[row]:
            for fault, place in _faults(seen).items():
                cells[fault if fault in shown else OTHERS].append((seen, place))
        return Line(
            name=PurePosixPath(row.pipeline).name or row.guarantee,
            role=pairs.role(row, found),
            about=_claim(row),
            cells=[_cell(head, own, link, most) for head, own in cells.items()],
        )

    return Section(title=title, heads=titles, clusters=[[line(row) for row in own] for own in clusters])


def _faults(seen: Seen) -> dict[str, str]:
    """Return where each fault of a run was to strike: `sink-committed, batch 3`."""
    out: dict[str, list[str]] = defaultdict(list)
    for fault, place, batch in seen.steps:
        out[fault].append(f"{place}, batch {batch}" if batch else place)
    return {fault: "; ".join(places) for fault, places in out.items()} or {NO_FAULT: ""}


def _cell(head: str, own: Sequence[tuple[Seen, str]], link: Link, most: Most) -> Cell:
    """What came out as expected is cut first."""
    groups: dict[tuple[Word, bool, tuple[str, ...], str, str, bool], list[Seen]] = defaultdict(list)
    for seen, place in own:
        several = len(_faults(seen)) > 1
        groups[seen.word, not seen.wrong, tuple(seen.kinds), place, seen.expected, several].append(seen)
    order = sorted(groups.items(), key=lambda each: (each[0][1], each[0][3], list(Word).index(each[0][0])))
    shown, rest = order[: most.entries], order[most.entries :]
    places = len({place for (_, _, _, place, _, _), _ in rest} - {place for (_, _, _, place, _, _), _ in shown})
    return Cell(
        head=head,
        entries=[
            Entry(
                word=word.value,
                kinds=", ".join(kinds) if word is Word.VIOLATED else "",
                wrong="" if good else f"not as expected, which was {visible(expected, 60)}",
                place=place,
                links=[link(each.folder) for each in seen[: most.links]],
                more=max(0, len(seen) - most.links),
                with_others=several,
            )
            for (word, good, kinds, place, expected, several), seen in shown
        ],
        left=_left(places, [each for _, seen in rest for each in seen]),
        places=places,
    )


def _left(places: int, runs: Sequence[Seen]) -> str:
    """`and 12 more places: 9 held, 3 violated, of which 1 not as expected`; the figures count runs."""
    if not runs:
        return ""
    words, wrong = Counter(seen.word for seen in runs), sum(seen.wrong for seen in runs)
    counts = ", ".join(f"{words[word]:,} {word.value}" for word in Word if words[word])
    where = plural(places, "more place") if places else "more at these places"
    return f"and {where}: {counts}" + (f", of which {wrong:,} not as expected" if wrong else "")


def _claim(row: Row) -> list[str]:
    if not row.pipeline:
        return []
    claim = [] if row.guarantee == Guarantee.EXACTLY_ONCE else [row.guarantee]
    source = [] if row.source == Input.source else [f"source {row.source}"]
    return [each for each in (*claim, *source, *row.sinks) if each]


def _folder(row: Row) -> str:
    if not row.pipeline:
        return UNKNOWN
    return str(PurePosixPath(row.pipeline).parent)
