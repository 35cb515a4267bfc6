"""Which faults a stack supports and which components it has, asked before anything starts; who asks it for others is
refused."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from harness.component import COMPONENTS, AtAddress, Component, InSession
from harness.errors import UsageError
from harness.faults import FAULTS
from harness.scenario import Scenario, Step
from harness.stack import Means
from harness.stacks import other_versions
from harness.stacks.addresses import option
from harness.stacks.kind import AtAddresses, HasSparkVersions, Refuses
from harness.stacks.needed_parts import component_names
from harness.stacks.registry import STACKS, names
from harness.triggers import TRIGGERS
from harness.triggers.base import NeedsMeans

REASONS: Mapping[Means, str] = {
    Means.RESTART_ENDED: "a program that ends well on it is not started again there; take kill driver",
    Means.HOLD_OPERATIONS: "no agent in Spark holds an operation on the checkpoint",
    Means.HOLD_REQUESTS: "no request can be held on its way to the server that keeps the checkpoint",
}
"""What a fault that needs them would lead to on a stack without, where its name does not say it."""


def supported(stack: str) -> list[str]:
    """Return the faults that a stack supports."""
    return [kind.about.name for kind in FAULTS if kind.needs <= STACKS[stack].means]


def refuse(scenarios: Sequence[Scenario], stack: str) -> None:
    """Raise UsageError, before anything starts, with every fault and every component that is not to be had here."""
    lacking = [
        f"{scenario.path}: asked for `{name}`; the stack `{stack}` does not support it{_who_does(scenario)}"
        for scenario in scenarios
        for name in unsupported(scenario, stack)
    ]
    if lacking:
        other = "stack or Spark" if any(map(other_versions.of_attempts, scenarios)) else "stack"
        cure = f"leave these out (`run --skip-unsupported` does), or take another {other}"
        raise UsageError("\n".join([*lacking, cure]))


def unsupported(scenario: Scenario, stack: str) -> list[str]:
    """Return what a scenario asks for and this stack does not support: components, and steps of its schedule."""
    kind = STACKS.all().get(stack)
    means = kind.means if kind is not None else frozenset(Means)
    steps = [_named(step, lacking) for step in scenario.schedule if (lacking := _needs(step) - means)]
    # A component or a stack that is not registered is no question of the stack.
    known = COMPONENTS.all()
    named = [name for name in component_names(scenario) if name in known]
    servers = [name for name in named if kind is not None and not has(stack, known[name])]
    own = kind.refusals(scenario) if isinstance(kind, Refuses) else ()
    lines = [
        f"Spark {version}" for version in other_versions.of_attempts(scenario) if not isinstance(kind, HasSparkVersions)
    ]
    lines += [f"Spark {version}, which has no {words}" for version, words in other_versions.refusals(scenario)]
    return list(dict.fromkeys((*servers, *steps, *own, *lines)))


def without_address(scenario: Scenario, stack: str, at: Collection[str]) -> list[str]:
    """Of a scenario that is to run on the stack of that name, the components for which an address is missing: `at` are
    those that have one."""
    known = COMPONENTS.all()
    there = [known[name] for name in component_names(scenario) if name in known and name not in at]
    ours = [each for each in there if isinstance(each, AtAddress) and not isinstance(each, InSession)]
    return [each.about.name for each in ours] if isinstance(STACKS.all().get(stack), AtAddresses) else []


def not_run(path: str, lacking: Sequence[str]) -> str:
    """That a scenario is not run, for want of these addresses."""
    return f"not run without an address: {path}: {', '.join(map(option, lacking))}"


def _needs(step: Step) -> frozenset[Means]:
    when = TRIGGERS[step.when.kind]
    return FAULTS[step.do.kind].needs | (when.needs if isinstance(when, NeedsMeans) else frozenset())


def _named(step: Step, lacking: frozenset[Means]) -> str:
    return ": ".join([step.name, *(words for means, words in REASONS.items() if means in lacking)])


def has(stack: str, component: Component | None) -> bool:
    """Return whether there is such a component on the stack of that name."""
    return isinstance(component, (InSession, STACKS[stack].has))


def _who_does(scenario: Scenario) -> str:
    able = [name for name in names() if not unsupported(scenario, name)]
    if len(able) < 2:
        return f" ({able[0]} does)" if able else ""
    return f" ({', '.join(able[:-1])} and {able[-1]} do)"
