"""Which harms a finding cannot do without, under a guarantee that allows one of the two, and what nobody can tell.

A sum is no witness: one record lost and another counted twice may come to any total. Only what holds for every way in
which records can be lost or repeated is said. In a column that is the sum of what each record gives to it, none of them
negative, a total that is too low lost something, one that is too high counted something again, and one that is lower
than without all that hits had at stake lost something else. A row is a witness if it is there for each of its records,
or for any of them: one that is too much may stand for another that is missing, where several records give the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import localcontext

from harness.checkers.cells import Row
from harness.checkers.compare import Key
from harness.checkers.offset_ranges import Cut, Spans, joined
from harness.checkers.wrong_total import EXACT, decimal, single
from harness.judge.stakes.scale import Scale
from harness.judge.stakes.sink_state import RowsByKey, named_by, whole
from harness.judge.stakes.weighed import Weighed
from harness.scenario import Finding, Harm, Kind

ROWS = (Kind.LOST, Kind.DUPLICATED, Kind.CORRUPTED, Kind.UNEXPECTED, Kind.WRONG_AGGREGATE)


def certainly(scale: Scale, findings: Sequence[Finding], weighed: Sequence[Weighed]) -> list[Finding]:
    """The findings of one sink: wrong totals with their harms, and whether they miss more than was at stake; rows with
    whether anybody can tell what they hide."""
    if scale.allows is None or not findings:
        return list(findings)
    if not keyed(scale):
        return [replace(each, vague=each.kind in ROWS) for each in findings]
    with localcontext(EXACT):
        totals = _Totals.of(scale, joined(*(each.open for each in weighed)))
        rows, distinct = _Rows.of(scale), scale.effects.distinct(scale.sql)

        def told(each: Finding) -> Finding:
            if each.kind is not Kind.WRONG_AGGREGATE:
                return rows.told(each)
            # No record gives such a row, however often each of them comes.
            return replace(each, altered=True) if distinct else totals.told(each)

        return [told(each) for each in findings]


def keyed(scale: Scale) -> bool:
    """Is each row of the effect there for each of its records, or for any of them?"""
    return scale.effects.keyed(scale.sql, scale.case.key)


@dataclass(frozen=True)
class _Rows:
    """What the sink should hold, and what it holds, by key."""

    scale: Scale
    right: RowsByKey
    end: RowsByKey

    @classmethod
    def of(cls, scale: Scale) -> _Rows:
        """The rows of the judged case."""
        return cls(scale, *(whole(scale.case, rows) for rows in (scale.case.expected, scale.case.found)))

    def told(self, finding: Finding) -> Finding:
        """Of a row that several records give, what is too much or missing is only the sum of what happened to them."""
        key = tuple(finding.key.values()) if named_by(self.scale.case) else ()
        right, end = self.right[key], self.end[key]
        if finding.kind is Kind.LOST:
            return replace(finding, vague=self.scale.allows is Harm.LOSS and any(end[row] for row in right - end))
        if finding.kind is Kind.DUPLICATED:
            more = (right[row] > 1 for row in end - right)
            return replace(finding, vague=self.scale.allows is Harm.REPETITION and any(more))
        return finding


@dataclass(frozen=True)
class _Totals:
    """What tells of wrong totals: by key, what they should be, and what they are without all that was at stake; the
    places of the counts, and of the sums of exact numbers."""

    scale: Scale
    right: dict[Key, Row]
    least: dict[Key, Row]
    columns: tuple[int, ...]

    @classmethod
    def of(cls, scale: Scale, open_: Spans) -> _Totals:
        """`open_` was at stake."""
        exact = scale.least.families
        columns = tuple(place for place, counts in scale.growing.items() if counts or exact[place] == "number")
        both = (scale.case.expected, scale.rows(Cut(without=open_)))
        right, least = (single(rows, scale.case.key_places()) for rows in both)
        return cls(scale, right, least, columns)

    def told(self, finding: Finding) -> Finding:
        """A wrong total with its harms."""
        case, key = self.scale.case, tuple(finding.key.values())
        if key not in self.right:
            # The key is no total's own: which of its rows took the place of which, nobody knows.
            return replace(finding, vague=True)
        harms, beyond = set[Harm](), False
        for place in self.columns:
            name = case.columns[place]
            found, expected = (decimal(row[0][name]) for row in (finding.found, finding.expected))
            if found is None or expected is None or found == expected or not self.scale.grows(key, place):
                continue
            harms.add(Harm.LOSS if found < expected else Harm.REPETITION)
            beyond = beyond or found < (decimal(self.least[key][place]) or 0 if key in self.least else 0)
        return replace(finding, harms=tuple(sorted(harms)), staked=finding.staked if beyond else True)
