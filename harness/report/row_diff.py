"""Puts what is expected and what the sink holds beside each other, cell by cell.

Pure. The failure text and the page both draw what this gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.report.escape import CELL, cell, cells, plural
from harness.scenario import Finding, Kind

Row = Mapping[str, str | None]
MARK = "!"
NO_ROW = ""


@dataclass(frozen=True)
class Line:
    """One column of the rows: `mark` is `!` if cells differ; `cells` go with the heads of `RowDiff`."""

    mark: str
    column: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class RowDiff:
    """Rows of the ledger and the sink, turned on their side. `more` counts the pairs of rows left out."""

    heads: tuple[str, ...]
    lines: tuple[Line, ...]
    more: int


def row_diff(finding: Finding, *, pairs: int = 2, limit: int = CELL) -> RowDiff:
    """Return the rows of a finding: equal ones meet first, the rest in order; at most `pairs` pairs are drawn."""
    matched = _pairs(finding.expected, finding.found)
    if finding.kind is Kind.DUPLICATED and all(row in finding.expected for row in finding.found):
        # Further copies of a row look like the first: its head counts them.
        matched = [pair for pair in matched if pair[0] is not None and pair[1] is not None]
    drawn = matched[:pairs]
    columns = dict.fromkeys(column for pair in drawn for row in pair if row is not None for column in row)
    heads = [head for pair in drawn for head in _heads(pair, bool(finding.expected), _copies(finding, pair))]
    lines = [_line(column, drawn, limit) for column in columns]
    return RowDiff(tuple(heads), tuple(lines), len(matched) - len(drawn))


Pair = tuple[Row | None, Row | None]


def _copies(finding: Finding, pair: Pair) -> int:
    """Return how many rows are too many that equal the pair's: of a duplicate both sides look alike. `found` has
    surplus rows alone, and not all of many."""
    if finding.kind is not Kind.DUPLICATED or pair[0] is None or pair[0] != pair[1]:
        return 0
    alike = sum(row == pair[1] for row in finding.found)
    return finding.copies if alike == len(finding.found) else alike


def _pairs(expected: Sequence[Row], found: Sequence[Row]) -> list[Pair]:
    left, equal = list(found), list[Pair]()
    alone = []
    for row in expected:
        if row in left:
            left.remove(row)
            equal.append((row, row))
        else:
            alone.append(row)
    both = list(zip(alone, left, strict=False))
    missing: list[Pair] = [(row, None) for row in alone[len(both) :]]
    surplus: list[Pair] = [(None, row) for row in left[len(both) :]]
    # What is wrong comes first, except that a surplus row is read best after the row that it repeats.
    return [*both, *missing, *equal[:1], *surplus, *equal[1:]]


def _heads(pair: Pair, in_ledger: bool, copies: int) -> tuple[str, str] | tuple[str]:
    """`copies`: how many rows like the sink's are too many, 0 where that is not known."""
    ledger, sink = pair
    if ledger is None:
        return ("sink, again",) if in_ledger else ("expected: no row", "sink")
    if sink is None:
        return ("expected", "sink: no row")
    return ("expected", f"sink: {plural(copies, 'row')} too many" if copies else "sink")


def _line(column: str, drawn: Sequence[Pair], limit: int) -> Line:
    known = next((ledger for ledger, _ in drawn if ledger is not None), None)
    marks, out = False, list[str]()
    for ledger, sink in drawn:
        if ledger is not None and sink is not None:
            differ = (column in ledger, ledger.get(column)) != (column in sink, sink.get(column))
            marks = marks or differ
            out += _both(ledger, sink, column, limit)
        elif sink is None:
            out += [_one(ledger, column, limit), NO_ROW]
        else:
            marks = marks or (known is not None and known.get(column) != sink.get(column))
            out += [_one(sink, column, limit)] if known is not None else [NO_ROW, _one(sink, column, limit)]
    return Line(MARK if marks else " ", column, tuple(out))


def _both(ledger: Row, sink: Row, column: str, limit: int) -> tuple[str, str]:
    if column in ledger and column in sink:
        return cells(ledger[column], sink[column], limit)
    return _one(ledger, column, limit), _one(sink, column, limit)


def _one(row: Row | None, column: str, limit: int) -> str:
    return NO_ROW if row is None or column not in row else cell(row[column], limit)
