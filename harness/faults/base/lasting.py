"""What the faults that last for a while and then heal have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from harness.fields import values as v
from harness.fields.shape import Shape
from harness.kinds import Refusal, Refusals
from harness.scenario import Fault, Trigger
from harness.triggers.base import Planned

SHORTEST_S = 0.1
CURE = "shorten it, or raise timeout"


class For(Shape):
    """How long it lasts."""

    for_s: Annotated[v.Duration, Field(alias="for")]


def lasts_s(fault: Fault) -> float:
    """Return how long it lasts."""
    return float(fault.options["for_s"])


class Lasts:
    """A fault that lasts for a while, at any trigger."""

    def refusals(self, fault: Fault, trigger: Trigger | None, planned: Planned) -> Refusals:
        """The file says how long, and it ends before the run does."""
        if "for_s" not in fault.options:
            yield Refusal("for", "is missing: how long it lasts, e.g. 3s")
        else:
            yield from bounds("for", lasts_s(fault), planned)


def bounds(key: str, for_s: float, planned: Planned) -> Refusals:
    """The time that `key` says is long enough to strike anything, and over before the run is."""
    if for_s < SHORTEST_S:
        yield Refusal(key, f"is too short to strike anything: {SHORTEST_S:g}s at least")
    elif for_s >= planned.timeout_s:
        yield Refusal(key, f"is not over before the run ends, which is after {planned.timeout_s:g}s: {CURE}")
