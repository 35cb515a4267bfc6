"""Rule 6: what the guarantee allows. At-least-once drops reprocessing, at-most-once drops loss, exactly-once none.

    finding           exactly-once   at-least-once                    at-most-once
    lost              violates       violates                         allowed where a fault did it
    duplicated        violates       allowed, but for altered rows    violates
    corrupted, wrong  violates       allowed if only reprocessing     allowed if only loss explains it
    aggregate                        explains it
    any other         violates       violates                         violates

A corrupted row or a wrong total that nothing explains violates if it cannot be without the harm that is not allowed.
Else it is inconclusive, as is a row that may hide such a harm: several records give the same, or the expected rows are
more than a selection or plain grouping.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from harness.checkers.wrong_total import Option
from harness.judge.baseline import Shown
from harness.scenario import Finding, Guarantee, Harm, Kind

EXPLAINED = (Kind.CORRUPTED, Kind.WRONG_AGGREGATE)


def violates(
    finding: Finding,
    guarantee: Guarantee,
    *,
    harms: Collection[Harm],
    options: Sequence[Option] = (),
    shown: Shown,
    struck: bool | None,
) -> bool | None:
    """Return whether a finding breaks the guarantee; None if the evidence does not tell. `harms` are those of the steps
    that explain it, or those that it cannot be without; `options` the whole batches that come to the same total.
    `struck`: a fault was injected that may have done it, None if its readings do not tell."""
    if finding.kind is Kind.RECOVERED:
        return False
    allowed = guarantee.allows
    if allowed is None or finding.torn:
        return True
    if finding.kind is Kind.LOST and allowed is Harm.REPETITION:
        return None if finding.vague else True
    if finding.vague and finding.kind is not Kind.LOST:
        return None
    if finding.kind is Kind.LOST:
        return _loss_violates(finding, shown, struck=struck)
    if finding.kind is Kind.DUPLICATED:
        return allowed is Harm.LOSS or finding.altered
    if finding.kind in EXPLAINED and not finding.altered:
        if {*harms} - {allowed}:
            return True
        if not harms:
            # No multiplicity of a plain record gives another row.
            return True if finding.kind is Kind.CORRUPTED else None
        signs = {sign for option in options for sign, _ in option}
        if (-1 if allowed is Harm.REPETITION else 1) in signs:
            return None
        return _loss_violates(finding, shown, struck=struck) if allowed is Harm.LOSS else False
    return True


def _loss_violates(finding: Finding, shown: Shown, *, struck: bool | None) -> bool | None:
    """Return whether at-most-once forbids a loss: one that baseline runs show too, or that no fault can have done."""
    if shown in (Shown.ALIKE, Shown.OTHERS) or struck is False:
        return True
    return False if shown is Shown.CLEAN and struck and not finding.vague else None
