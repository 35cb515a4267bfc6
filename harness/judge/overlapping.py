"""Whether a record is in several windows of `expected`.

Such a record may be late for one window and in time for another, and the end of one window answers for both. Only
`expected` knows its windows, so it is run over single records.
"""

from __future__ import annotations

from collections import Counter

from harness.checkers.cells import Row
from harness.checkers.closed_windows import WRITTEN
from harness.checkers.offset_ranges import Cut, OffsetRange
from harness.ledger import Ledger
from harness.scenario import Sink

ALONE, LEFT_OUT = 200, 20
"""How many records are asked for, spread over all that were written."""


def overlapping(written: Ledger, sink: Sink, name: str) -> list[str]:
    """Return a message if a record is in several windows; empty if no tried record is."""
    assert sink.expected is not None
    expected = _Expected(written, sink.expected)
    rows = expected.alone() or expected.first() or expected.left_out()
    why = f"one record is in {rows} rows of `expected` of {name}, and `closes` is the end of one window"
    return [f"{why}. Windows that overlap cannot be judged: give each record one"] if rows > 1 else []


class _Expected:
    """The most rows of `expected` that one of the tried records gives; 0 if none gives any."""

    def __init__(self, written: Ledger, expected: str) -> None:
        self._written, self._expected = written, expected
        self._end = written.size(cut=Cut(only=(OffsetRange(WRITTEN, 0, 2**62),)))
        # A total, or a list of all windows, has rows of no record.
        self._base = self._rows(0, 0)

    def alone(self) -> int:
        """By each record as the only one."""
        return max((self._added(at, at + 1) for at in self._spread(ALONE)), default=0)

    def first(self) -> int:
        """By the first record that adds a row, as the only one: a filter may leave out nearly all."""
        least, most = 0, self._end
        if not self._added(least, most):
            return 0
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (least, middle) if self._added(0, middle) else (middle, most)
        return self._added(least, most)

    def left_out(self) -> int:
        """By each record where it is left out of all: under HAVING one alone may add nothing."""
        whole, everything = self._rows(0, self._end), (OffsetRange(WRITTEN, 0, self._end),)
        without = (Cut(only=everything, without=(OffsetRange(WRITTEN, at, at + 1),)) for at in self._spread(LEFT_OUT))
        rows = (self._written.table(self._expected, cut=cut).rows for cut in without)
        return max(((whole - Counter(each)).total() for each in rows), default=0)

    def _added(self, start: int, end: int) -> int:
        return (self._rows(start, end) - self._base).total()

    def _rows(self, start: int, end: int) -> Counter[Row]:
        return Counter(self._written.table(self._expected, cut=Cut(only=(OffsetRange(WRITTEN, start, end),))).rows)

    def _spread(self, count: int) -> range:
        return range(0, self._end, max(1, self._end // count))
