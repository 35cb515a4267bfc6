"""The stack `yarn`: the components as child processes, and a YARN of our own that runs the drivers in cluster mode."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from harness.component import AsProcesses
from harness.components.yarn import policy
from harness.fields.shape import Shape
from harness.kinds import About
from harness.scenario import Scenario
from harness.stack import Means, Stack
from harness.stacks.addresses import Where


class OnYarn:
    """Its processes are one machine's, on one network; of a program that ended well YARN starts no other attempt. The
    NodeManager is held still while the harness reads a dead attempt's state, so there is one run at a time."""

    about = About(
        name="yarn",
        summary="the components run as child processes, the drivers in cluster mode on a YARN of our own",
        example="onceproof run scenarios/yarn --stack yarn",
        options=Shape,
    )
    means = frozenset(Means) - {Means.CUT_NETWORK, Means.RESTART_ENDED}
    has = AsProcesses
    one_at_a_time = True

    def open(self, logs: Path, *, needs: Collection[str], where: Where | None) -> Stack:
        """Return one of it, not yet up."""
        from harness.components.yarn.yarn_stack import YarnStack

        return YarnStack(logs, needs=needs)

    def refusals(self, scenario: Scenario) -> Iterator[str]:
        """YARN restarts drivers by its own policy."""
        return policy.unsupported(scenario)


KIND = OnYarn()
