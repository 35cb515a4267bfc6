"""What a scenario expects at each cell: by the name of a crash point, the most exact one first."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from harness.fields.hints import did_you_mean
from harness.fields.values import ALL
from harness.scenario import Expected, Scenario, Step, Word
from harness.sweep.cells import Cell, called
from harness.sweep.results import Result

ANY = "held or untested"
"""What is expected of a cell of which the scenario says nothing."""
SHOWN = 12
"""Names that a message has at most."""


def crash_points(step: Step) -> tuple[str, ...]:
    """Return the names of where a step strikes, in any batch: the crash point as the grid has it, the same without its
    query, and the crash point of Spark's protocol; each with the fault before it, and without it."""
    point = step.when.point
    places = (called(step.when), step.when.place, *([point.value] if point else []))
    return tuple(dict.fromkeys(name for place in places for name in (f"{step.do} {place}", place)))


def names(step: Step, batch: str) -> tuple[str, ...]:
    """Return the names of where a step of a cell strikes, the most exact one first: each with the kind of batch, and
    without it."""
    return tuple(name for place in crash_points(step) for name in (f"{place} ({batch})", place))


def chosen(cells: Sequence[Cell], wanted: Collection[str]) -> list[Cell]:
    """Return the cells at these crash points; all of them where none is named, or `all` is."""
    if not wanted or ALL in wanted:
        return list(cells)
    named = {*wanted}
    return [cell for cell in cells if all(not named.isdisjoint(names(step, cell.batch)) for step in cell.steps)]


def unknown(scenario: Scenario, cells: Sequence[Cell]) -> str:
    """Return words for the first name in the scenario of which the pipeline has no crash point; empty if there is
    none."""
    for key, given, among in (
        ("crash_points", [name for name in scenario.crash_points if name != ALL], cells),
        ("verdict", scenario.verdict.at, chosen(cells, scenario.crash_points)),
    ):
        steps = [(step, cell.batch) for cell in among for step in cell.steps]
        shown = list(dict.fromkeys(name for step, _ in steps for name in reversed(crash_points(step))))
        known = [*shown, *(name for step, batch in steps for name in names(step, batch))]
        for name in given:
            if name not in known:
                there = ", ".join(shown[:SHOWN]) + (", …" if len(shown) > SHOWN else "")
                hint = did_you_mean(name, known)
                return f"{key} names {name!r}, which is no crash point that is tried{hint}: {there}"
    return ""


def at_step(expected: Expected, step: Step, batch: str) -> Expected | None:
    """Return what is expected where a step strikes; None where no name says it, so that it holds or is not exposed."""
    return next((expected.at[name] for name in names(step, batch) if name in expected.at), None)


def expected_at(expected: Expected, cell: Cell) -> list[Expected]:
    """Return what the scenario expects by name at the crash points of a cell."""
    return [each for step in cell.steps if (each := at_step(expected, step, cell.batch))]


def in_words(expected: Expected, cell: Cell) -> str:
    """Return what the scenario expects at a cell, in words."""
    named = expected_at(expected, cell)
    return str(named[0]) if named else str(expected) if expected.kinds else ANY


def as_expected(expected: Expected, cell: Cell, result: Result) -> bool:
    """Return whether a cell came out as it is expected. Of several crashes each may do what it does alone."""
    named = expected_at(expected, cell)
    kinds = {kind for each in named or [expected] for kind in each.kinds}
    if len(cell.steps) > 1 or not named:
        return result.word in (Word.HELD, Word.UNTESTED) or bool(result.kinds and {*result.kinds} <= kinds)
    return result.word is named[0].word and result.reached and {*result.kinds} == kinds


def amiss(expected: Expected, cells: Sequence[Cell], results: Sequence[Result]) -> Iterator[Result]:
    """Yield the results that are not as expected."""
    return (each for each in results if not as_expected(expected, cells[each.cell], each))
