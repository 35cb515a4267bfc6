"""Which faults a stack supports, asked before anything starts; who asks it for others is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from harness.errors import UsageError
from harness.faults import FAULTS
from harness.scenario import Scenario
from harness.stack import MEANS, Means


class Able(Protocol):
    """A stack, or the mere name of one."""

    @property
    def name(self) -> str:
        """As `--stack` takes it."""

    @property
    def means(self) -> frozenset[Means]:
        """What it can do to the processes of a run."""


@dataclass(frozen=True)
class Named:
    """A stack that need not be there."""

    name: str

    @property
    def means(self) -> frozenset[Means]:
        """What it can do to the processes of a run."""
        return MEANS[self.name]


def supported(stack: Able) -> list[str]:
    """The faults that a stack supports."""
    return [kind.about.name for kind in FAULTS if kind.needs <= stack.means]


def refuse(scenarios: Sequence[Scenario], stack: Able) -> None:
    """Raise UsageError, before anything starts, with every fault that this stack does not support."""
    lacking = [
        f"{scenario.path}: asked for `{name}`; the stack `{stack.name}` does not support it{_who_does(scenario)}"
        for scenario in scenarios
        for name in unsupported(scenario, stack)
    ]
    if lacking:
        raise UsageError("\n".join([*lacking, "leave these out (--skip-unsupported does), or take another stack"]))


def unsupported(scenario: Scenario, stack: Able) -> list[str]:
    """The steps of a scenario that this stack does not support."""
    lacking = [step.name for step in scenario.schedule if not FAULTS[step.do.kind].needs <= stack.means]
    return list(dict.fromkeys(lacking))


def _who_does(scenario: Scenario) -> str:
    able = [name for name in MEANS if not unsupported(scenario, Named(name))]
    return f" ({' and '.join(able)} {'does' if len(able) == 1 else 'do'})" if able else ""
