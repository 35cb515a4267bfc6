"""The stack `containers`: the components and Spark each in a container, on a separate network.

stack   what runs it
"""

from __future__ import annotations

import importlib.util
from collections.abc import Collection, Iterator
from pathlib import Path

from harness.component import AsContainer, no_package
from harness.errors import StackError
from harness.fields.paths import SPARK_HOME
from harness.fields.shape import Shape
from harness.kinds import About
from harness.scenario import Scenario
from harness.stack import Means, Stack
from harness.stacks.addresses import Where

PACKAGES = ("docker", "testcontainers")


class Containers:
    """Each container has its own network, from which it can be disconnected."""

    about = About(
        name="containers",
        summary="Spark and the components run in containers of an engine such as Docker",
        example="onceproof run scenarios/proving --stack containers",
        options=Shape,
    )
    means = frozenset(Means) - {Means.RESTART_DAEMONS, Means.HOLD_REQUESTS}
    has = AsContainer

    def open(self, logs: Path, *, needs: Collection[str], where: Where | None) -> Stack:
        """Return one of it, not yet up. Raises StackError where a package is missing."""
        for package in PACKAGES:
            found = importlib.util.find_spec(package)
            # Any folder of that name on the path is found too, without an origin.
            if found is None or found.origin is None:
                lacking = no_package(f"the stack {self.about.name}", package, self.about.name)
                raise StackError(f"{lacking}; without it: --stack processes")
        from harness.stacks.containers.stack import ContainersStack

        return ContainersStack(logs, needs=needs)

    def refusals(self, scenario: Scenario) -> Iterator[str]:
        """A program of Spark's own is in an image there, where the harness cannot read it."""
        if scenario.pipeline.entry.startswith(SPARK_HOME):
            yield f"a program in {SPARK_HOME}"


KIND = Containers()
