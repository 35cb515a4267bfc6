"""The page of a sweep: the grid with links to the runs, where it breaks, what says nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from harness.report import render
from harness.run_folder import store
from harness.scenario import Word
from harness.sweep import answer
from harness.sweep.cells import Cell
from harness.sweep.results import Result


def write(
    page: Path,
    pipeline: str,
    cells: Sequence[Cell],
    results: Sequence[Result],
    *,
    sentence: str,
    failing: Mapping[int, Path],
) -> Path:
    """Write the page under the answer in one sentence, and return it. `failing` has by the place of a cell the scenario
    that plays it alone. Raises HarnessError when the disk refuses."""
    known = {each.cell: each for each in results}
    rows, columns = answer.table(cells)
    text = render.filled(
        "sweep.html.j2",
        name=pipeline,
        sentence=sentence,
        figures=[(sum(each.word is word for each in results), word) for word in Word if word is not Word.ERROR],
        columns=columns,
        rows=rows,
        known=known,
        shown=answer.mark,
        link=partial(render.link, page.parent),
        failing=[(answer.mark(known[place]), answer.place(cells[place]), path) for place, path in failing.items()],
        unanswered=answer.unanswered(cells, results),
    )
    store.write(page, text)
    return page
