"""Which harms a finding cannot be without, under a guarantee that allows one of the two.

A total alone proves little: one record lost and another counted twice may come to any total. What holds for every
multiplicity is returned. Some columns sum what each record gives, none of it negative. There a total that is too low
lost something, and one that is too high counted something again. A row that several records give may be there for
another one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import localcontext

from harness.checkers.cells import Row
from harness.checkers.compare import Key
from harness.checkers.wrong_total import EXACT, decimal, single
from harness.judge.readings.scale import Scale
from harness.judge.readings.sink_state import RowsByKey, row_key_places, whole
from harness.scenario import Finding, Harm, Kind

ROWS = (Kind.LOST, Kind.DUPLICATED, Kind.CORRUPTED, Kind.UNEXPECTED, Kind.WRONG_AGGREGATE)


def certainly(scale: Scale, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings of one sink: wrong totals with their harms, rows with whether they hide another harm."""
    if scale.allows is None or not findings:
        return list(findings)
    if not keyed(scale):
        return [replace(each, vague=each.kind in ROWS) for each in findings]
    with localcontext(EXACT):
        totals, rows, distinct = _Totals.of(scale), _Rows.of(scale), scale.ledger.distinct(scale.sql)

        def classified(each: Finding) -> Finding:
            if each.kind is not Kind.WRONG_AGGREGATE:
                return rows.classified(each)
            # No record gives such a row, however often each of them comes.
            return replace(each, altered=True) if distinct else totals.classified(each)

        return [classified(each) for each in findings]


def keyed(scale: Scale) -> bool:
    """Return whether each row of `expected` is there for each of its records, or for any of them."""
    return scale.ledger.keyed(scale.sql, scale.case.key)


@dataclass(frozen=True)
class _Rows:
    """What the sink should hold, and what it holds, by key."""

    scale: Scale
    right: RowsByKey
    end: RowsByKey

    @classmethod
    def of(cls, scale: Scale) -> _Rows:
        """Return the rows of the judged case."""
        return cls(scale, *(whole(scale.case, rows) for rows in (scale.case.expected, scale.case.found)))

    def classified(self, finding: Finding) -> Finding:
        """Return the finding, with whether it may hide another harm. Of a row that several records give, the surplus is
        only the sum of what happened to each of them."""
        key = tuple(finding.key.values()) if row_key_places(self.scale.case) else ()
        right, end = self.right[key], self.end[key]
        if finding.kind is Kind.LOST:
            return replace(finding, vague=self.scale.allows is Harm.LOSS and any(end[row] for row in right - end))
        if finding.kind is Kind.DUPLICATED:
            more = (right[row] > 1 for row in end - right)
            return replace(finding, vague=self.scale.allows is Harm.REPETITION and any(more))
        return finding


@dataclass(frozen=True)
class _Totals:
    """What the totals should be, by key; the places of the counts, and of the sums of exact numbers."""

    scale: Scale
    right: dict[Key, Row]
    columns: tuple[int, ...]

    @classmethod
    def of(cls, scale: Scale) -> _Totals:
        """Return those of the judged case."""
        exact = scale.least.families
        columns = tuple(place for place, counts in scale.growing.items() if counts or exact[place] == "number")
        return cls(scale, single(scale.case.expected, scale.case.key_places()), columns)

    def classified(self, finding: Finding) -> Finding:
        """Return a wrong total with its harms."""
        case, key = self.scale.case, tuple(finding.key.values())
        if key not in self.right:
            # The key is not the total's own, so its rows cannot be distinguished.
            return replace(finding, vague=True)
        harms = set[Harm]()
        for place in self.columns:
            name = case.columns[place]
            found, expected = (decimal(row[0][name]) for row in (finding.found, finding.expected))
            if found is not None and expected is not None and found != expected and self.scale.grows(key, place):
                harms.add(Harm.LOSS if found < expected else Harm.REPETITION)
        return replace(finding, harms=tuple(sorted(harms)))
