"""What each stack has the power to do to a pipeline, known before one is started; who asks for more is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from harness.errors import UsageError
from harness.scenario import Do, Scenario


class Able(Protocol):
    """A stack, or the mere name of one. `powers` are the kinds of fault it can do (`harness.scenario.Do` values)."""

    @property
    def name(self) -> str:
        """As `--stack` takes it."""

    @property
    def powers(self) -> frozenset[str]:
        """The kinds of fault it can do."""


@dataclass(frozen=True)
class Powers:
    """A stack that need not be there."""

    name: str
    powers: frozenset[str]


POWERS: Mapping[str, Powers] = {
    each.name: each
    for each in (
        # The processes of one machine have one network.
        Powers("processes", frozenset(Do) - {Do.DISCONNECT_DRIVER}),
        Powers("containers", frozenset(Do)),
        Powers("external", frozenset({Do.KILL_DRIVER, Do.PAUSE_DRIVER, Do.STOP_DRIVER})),
    )
}


def refuse(scenarios: Sequence[Scenario], stack: Able) -> None:
    """Raise UsageError, before anything starts, with every fault that this stack has no power for."""
    lacking = [
        f"{scenario.path}: asked for `{name}`; the stack `{stack.name}` has no power for it{_who_has(scenario)}"
        for scenario in scenarios
        for name in beyond(scenario, stack)
    ]
    if lacking:
        raise UsageError("\n".join([*lacking, "leave these out (--able does), or take another stack"]))


def beyond(scenario: Scenario, stack: Able) -> list[str]:
    """The steps of a scenario that this stack has no power for."""
    return list(dict.fromkeys(step.name for step in scenario.schedule if step.do.kind not in stack.powers))


def _who_has(scenario: Scenario) -> str:
    able = [name for name, stack in POWERS.items() if not beyond(scenario, stack)]
    return f" ({' and '.join(able)} {'has' if len(able) == 1 else 'have'})" if able else ""
