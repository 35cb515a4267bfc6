"""The answer of a sweep: one sentence, the grid, the exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from harness.scenario import Expect, Word
from harness.sweep.cells import Cell
from harness.sweep.results import Result

COUNTING = (Word.HELD, Word.VIOLATED)
WIDTH = 80
FIRST, LATER = "first batch", "later batch"


def sentence(name: str, cells: Sequence[Cell], results: Sequence[Result]) -> str:
    """Return what is known of the pipeline, in one sentence."""
    tried = [each for each in results if each.word in COUNTING]
    broken = [each for each in results if each.word is Word.VIOLATED]
    left = len(cells) - len(tried)
    rest = f"; {left} say nothing" if left else ""
    if broken:
        kinds = Counter(kind for each in broken for kind in each.kinds)
        told = ", ".join(kinds) or "violated"
        return f"{name}: breaks at {len(broken)} of {len(tried)} cells ({told}){rest}"
    if tried:
        return f"{name}: held at all {len(tried)} cells tried{rest}"
    return f"{name}: untested: none of {len(cells)} cells exposed anything"


def code(expect: Expect, results: Sequence[Result]) -> int:
    """Return the exit code: 0 where it came out as the scenario expects, 1 where the guarantee is disproved, or a
    violation was expected and none was found, 3 where nothing was tested, 4 where the harness or the pipeline
    failed."""
    words = Counter(each.word for each in results)
    if expect.word is Word.VIOLATED:
        kinds = {kind for each in results for kind in each.kinds}
        return 0 if kinds and kinds == {*expect.kinds} else 1
    if words[Word.VIOLATED]:
        return 1
    if words[Word.ERROR]:
        return 4
    return 0 if words[Word.HELD] and not words[Word.INCONCLUSIVE] else 3


def mark(result: Result | None) -> str:
    """Return one cell of the grid: the word, and how many records were exposed."""
    if result is None:
        return "not tried"
    if result.word is Word.VIOLATED:
        return ", ".join(result.kinds).upper() or "VIOLATED"
    if result.word is Word.HELD:
        return f"held ({result.records})"
    return str(result.word)


def grid(cells: Sequence[Cell], results: Sequence[Result]) -> list[str]:
    """Return the grid in lines of at most 80 columns: a row for each place and fault, a column for each kind of
    batch."""
    known = {each.cell: each for each in results}
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for place, cell in enumerate(cells):
        head = (cell.when.place if cell.when.query is None else f"{cell.when.place}, {cell.when.query}", str(cell.do))
        rows.setdefault(head, {})[cell.batch] = mark(known.get(place))
    columns = [each for each in (FIRST, LATER) if any(each in row for row in rows.values())]
    lines = [("crash point", "fault", *columns)]
    lines += [(point, fault, *(row.get(each, "") for each in columns)) for (point, fault), row in rows.items()]
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    widths[0] = min(widths[0], max(12, WIDTH - 2 * (len(widths) - 1) - sum(widths[1:])))
    return [
        "  ".join(text[:width].ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


def untold(cells: Sequence[Cell], results: Sequence[Result]) -> list[str]:
    """Return a line for each cell that says nothing, with the reason."""
    out = []
    for each in sorted(results, key=lambda each: each.cell):
        if each.word not in COUNTING:
            cell = cells[each.cell]
            out.append(f"{each.word}: {cell.do} {cell.when.place}, {cell.batch}: {each.why}")
    return out
