"""Which harms a finding cannot be without, under a guarantee that allows one of the two.

A total alone proves little: one record lost and another counted twice may come to any total. What holds for every
multiplicity is returned. A column may sum what each record gives, none of it negative. Then a total that is too low
lost something, and one that is too high counted something again. A row that several records give may be there for
another one of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from decimal import localcontext

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
    right, end = (whole(scale.case, rows) for rows in (scale.case.expected, scale.case.found))
    known, distinct = single(scale.case.expected, scale.case.key_places()), scale.ledger.distinct(scale.sql)
    exact = scale.least.families
    columns = [place for place, counts in scale.growing.items() if counts or exact[place] == "number"]

    def classified(finding: Finding) -> Finding:
        if finding.kind is not Kind.WRONG_AGGREGATE:
            return _row(scale, finding, right, end)
        # No record gives such a row, however often each of them comes.
        return replace(finding, altered=True) if distinct else _total(scale, finding, known, columns)

    with localcontext(EXACT):
        return [classified(each) for each in findings]


def keyed(scale: Scale) -> bool:
    """Return whether each row of `expected` is there for each of its records, or for any of them."""
    return scale.ledger.keyed(scale.sql, scale.case.key)


def _row(scale: Scale, finding: Finding, rights: RowsByKey, ends: RowsByKey) -> Finding:
    """Return the finding, with whether it may hide another harm. Of a row that several records give, the surplus is
    only the sum of what happened to each of them."""
    key = tuple(finding.key.values()) if row_key_places(scale.case) else ()
    right, end = rights[key], ends[key]
    if finding.kind is Kind.LOST:
        return replace(finding, vague=scale.allows is Harm.LOSS and any(end[row] for row in right - end))
    if finding.kind is Kind.DUPLICATED:
        more = (right[row] > 1 for row in end - right)
        return replace(finding, vague=scale.allows is Harm.REPETITION and any(more))
    return finding


def _total(scale: Scale, finding: Finding, known: Collection[Key], columns: Sequence[int]) -> Finding:
    """Return a wrong total with its harms, by the counts and the sums of exact numbers in these columns."""
    case, key, harms = scale.case, tuple(finding.key.values()), set[Harm]()
    if key not in known:
        # The key is not the total's own, so its rows cannot be distinguished.
        return replace(finding, vague=True)
    for place in columns:
        found, expected = (decimal(row[0][case.columns[place]]) for row in (finding.found, finding.expected))
        if found is not None and expected is not None and found != expected and scale.grows(key, place):
            harms.add(Harm.LOSS if found < expected else Harm.REPETITION)
    return replace(finding, harms=tuple(sorted(harms)))
