"""The faults, each with evidence that it really happened. One module each; `harness.faults.base` says what
it has."""

from __future__ import annotations

from harness.faults.base import FaultKind, VariesImpact
from harness.kinds import Registry
from harness.scenario import Fault

__all__ = ["FAULTS", "fault"]

FAULTS: Registry[FaultKind] = Registry("fault", "harness.faults", FaultKind)


def fault(kind: str, **options: str | int | float) -> Fault:
    """Return a fault in code, as `do: kind` is in a file; `options` by the names that its model has, a time in seconds.
    Raises UsageError for one that it does not take."""
    known = FAULTS[kind]
    normalised = known.about.normalised(options)
    impact = known.impact_of(normalised) if isinstance(known, VariesImpact) else known.impact
    return Fault(kind=kind, impact=impact, options=normalised)
