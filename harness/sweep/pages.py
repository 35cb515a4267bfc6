"""The page of a sweep: the grid with links to the runs, where it breaks, what says nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.report import render
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

    def shown(place: int | None) -> dict[str, object] | None:
        if place is None:
            return None
        found = known.get(place)
        word = found.word if found else Word.UNTESTED
        return {
            "word": word,
            "mark": answer.mark(found),
            "link": render.link(page.parent, found.folder if found else None),
        }

    return render.sweep(
        page,
        name=pipeline,
        sentence=sentence,
        figures=[(sum(each.word is word for each in results), word) for word in Word if word is not Word.ERROR],
        columns=columns,
        rows=[
            {"place": point, "fault": fault, "cells": [shown(places.get(each)) for each in columns]}
            for (point, fault), places in rows.items()
        ],
        failing=[
            {"kinds": answer.mark(known[place]), "place": answer.place(cells[place]), "file": path}
            for place, path in failing.items()
        ],
        unanswered=answer.unanswered(cells, results),
    )
