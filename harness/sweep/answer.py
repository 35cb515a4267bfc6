"""The answer of a sweep: one sentence, the grid, the exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from harness.report.escape import aligned
from harness.scenario import Expected, Word
from harness.sweep.cells import FIRST, LATER, Cell
from harness.sweep.expected import amiss
from harness.sweep.results import Result

COUNTING = (Word.HELD, Word.VIOLATED)
WIDTH = 80
NOT_REACHED, NOT_EXPOSED = "not reached", "not exposed"
"""A step that was never injected, and one that was and exposed nothing."""


def sentence(name: str, cells: Sequence[Cell], results: Sequence[Result], *, left_out: int = 0) -> str:
    """Return what is known of the pipeline, in one sentence. `left_out` counts the cells at crash points that the
    scenario does not name."""
    counting = [each for each in results if each.word in COUNTING]
    broken = [each for each in results if each.word is Word.VIOLATED]
    left = Counter(mark(each) for each in results if each.word not in COUNTING)
    left["not tried"] = len(cells) - len(results)
    left["left out by crash_points"] = left_out
    rest = "".join(f"; {count} {word}" for word, count in left.items() if count)
    if broken:
        kinds = ", ".join(dict.fromkeys(kind for each in broken for kind in each.kinds))
        return f"{name}: breaks at {len(broken)} of {len(counting)} exposed cells ({kinds}){rest}"
    if counting:
        return f"{name}: held at all {len(counting)} exposed cells{rest}"
    return f"{name}: untested{rest}"


def code(expected: Expected, cells: Sequence[Cell], results: Sequence[Result], known: Collection[int] = ()) -> int:
    """Return the exit code: 0 where it came out as the scenario expects; 1 where the guarantee is disproved, or a
    violation was expected and not found; 3 where nothing was tested; 4 where the harness or the pipeline failed. The
    failures of the cells `known` are being worked on."""
    wrong = {each.word for each in amiss(expected, cells, results) if each.cell not in known}
    if Word.ERROR in wrong:
        return 4
    if not wrong.isdisjoint(COUNTING) or not {*expected.kinds} <= {kind for each in results for kind in each.kinds}:
        return 1
    return 3 if wrong or not any(each.word in COUNTING for each in results) else 0


def mark(result: Result | None) -> str:
    """Return one cell of the grid: the word, and how many records were exposed."""
    if result is None:
        return "not tried"
    if result.word is Word.VIOLATED:
        return ", ".join(result.kinds).upper() or "VIOLATED"
    if result.word is Word.HELD:
        return f"held ({result.records})"
    if result.word is Word.UNTESTED:
        return NOT_EXPOSED if result.reached else NOT_REACHED
    return str(result.word)


def table(cells: Sequence[Cell]) -> tuple[dict[tuple[str, str], dict[str, int]], list[str]]:
    """Return by crash point and fault the place of each cell, by its kind of batch; and the kinds of batches."""
    rows: dict[tuple[str, str], dict[str, int]] = {}
    for place, cell in enumerate(cells):
        rows.setdefault((cell.place, cell.fault), {})[cell.batch] = place
    return rows, [each for each in (FIRST, LATER) if any(each in row for row in rows.values())]


def grid(cells: Sequence[Cell], results: Sequence[Result]) -> list[str]:
    """Return the grid in lines of at most 80 columns: a row for each place and fault, a column for each kind of batch;
    below it, a line for the second crashes after each first one."""
    known = {each.cell: each for each in results}
    rows, columns = table(cells)
    lines = [("crash point", "fault", *columns)]
    for (point, fault), places in rows.items():
        if all(len(cells[each].steps) == 1 for each in places.values()):
            marks = (mark(known.get(places[each])) if each in places else "" for each in columns)
            lines.append((point, fault, *marks))
    others = [max(map(len, column)) for column in zip(*(line[1:] for line in lines), strict=True)]
    left = max(12, WIDTH - sum(2 + width for width in others))
    return [*aligned([(line[0][:left], *line[1:]) for line in lines]), *_pairs(cells, known)]


def _pairs(cells: Sequence[Cell], known: Mapping[int, Result]) -> list[str]:
    """Return a line for each place of a first crash, with what became of the second ones."""
    found: dict[str, Counter[str]] = {}
    for place, cell in enumerate(cells):
        if len(cell.steps) > 1:
            result = known.get(place)
            word = str(result.word) if result and result.word is Word.HELD else mark(result)
            found.setdefault(cell.steps[0].when.place, Counter())[word] += 1
    lines = [
        f"{place}, then another: {', '.join(f'{count} {word}' for word, count in counts.items())}"
        for place, counts in found.items()
    ]
    return ["", *lines] if lines else []


def place(cell: Cell) -> str:
    """Return a cell in words."""
    return f"{cell.fault} {cell.place} ({cell.batch})"


def unanswered(cells: Sequence[Cell], results: Sequence[Result]) -> list[str]:
    """Return a line for each reason why cells say nothing, with the places that it holds for."""
    out: dict[tuple[str, str], list[str]] = {}
    for each in sorted(results, key=lambda each: each.cell):
        if each.word not in COUNTING:
            cell = cells[each.cell]
            out.setdefault((mark(each), each.why), []).append(place(cell))
    return [f"{head}: {', '.join(places)}: {why}" for (head, why), places in out.items()]
