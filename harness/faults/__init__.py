"""Ways to hurt the stack, each with evidence that it really happened. One module each; `harness.faults.base` says what
it has."""

from __future__ import annotations

from harness.errors import UsageError
from harness.faults.base import FaultKind
from harness.kinds import Registry
from harness.scenario import Fault

__all__ = ["FAULTS", "fault"]

FAULTS: Registry[FaultKind] = Registry("fault", "harness.faults")


def fault(kind: str, **options: str | int | float) -> Fault:
    """A fault in code, as `do: kind` is in a file; `options` by the names that its model has, a time in seconds. Raises
    UsageError for one that it does not take."""
    fields = FAULTS[kind].about.options.model_fields
    if unknown := options.keys() - fields.keys():
        raise UsageError(
            f"asked for the fault {kind!r} with {', '.join(sorted(unknown))}; it takes {', '.join(fields)}"
        )
    # A word of an enum is kept as the plain text that it is, and what goes without saying is left out.
    known = {name: str(value) if isinstance(value, str) else value for name, value in options.items()}
    said = {name: value for name, value in known.items() if value != fields[name].default}
    return Fault(kind=kind, impact=FAULTS[kind].impact, options=said)
