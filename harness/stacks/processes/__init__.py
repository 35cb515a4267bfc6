"""The stack `processes`: the components and Spark as child processes of the harness. Needs no Docker and no root.

stack    what runs it
shared   the one that `onceproof up` left running
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from harness.component import AsProcesses
from harness.fields.shape import Shape
from harness.kinds import About
from harness.stack import Means, Stack
from harness.stacks.addresses import Where


class Processes:
    """The processes of one machine have one network."""

    about = About(
        name="processes",
        summary="Spark and the components run as child processes of the harness",
        example="onceproof run scenarios/proving",
        options=Shape,
    )
    means = frozenset(Means) - {Means.CUT_NETWORK, Means.RESTART_DAEMONS}
    has = AsProcesses
    has_spark_versions = True

    def open(self, logs: Path, *, needs: Collection[str], where: Where | None) -> Stack:
        """Return one of it, not yet up."""
        from harness.stacks.processes.stack import ProcessesStack

        return ProcessesStack(logs, needs=needs)

    def that_is_up(
        self, logs: Path, *, needs: Collection[str], own: Collection[str], notify: Callable[[str], object]
    ) -> Stack | None:
        """Return the one that `onceproof up` left running."""
        from harness.stacks.processes import shared

        return shared.that_is_up(logs, needs=needs, own=own, notify=notify)


KIND = Processes()
