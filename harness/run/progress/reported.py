"""How far the pipeline says it is: by Spark's checkpoint, by a consumer group, or by a table that it keeps itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.checkpoint import Offsets, count
from harness.component import AnswersQueries, Followed, KeepsGroups, able
from harness.fields.placeholders import filled
from harness.resources import RunResources
from harness.run.progress.observer import Observer
from harness.scenario import Scenario
from harness.scenario.progress import CHECKPOINT, IN_CHECKPOINT
from harness.stacks.needed_parts import grouped, offsets_part


@dataclass(frozen=True)
class Progress:
    """`planned`: next offsets the pipeline has begun to work on; `committed`: those it calls done. `saving`: the
    statements of open transactions that have written where it says so."""

    kind: str
    planned: Callable[[], Offsets]
    committed: Callable[[], Offsets]
    close: Callable[[], None]
    saving: Callable[[], tuple[str, ...]] = lambda: ()

    def in_flight(self, acknowledged: int) -> str:
        """Return words for the records that the source has and the pipeline has not committed; empty if there are none.
        A batch may be planned before the answer for its last record is counted."""
        # Asked for first: what is committed meanwhile is not in flight. By hand, nothing tells the two apart.
        planned = self.planned() if self.kind == CHECKPOINT else {}
        done = self.committed()
        if (waiting := acknowledged - count(done)) > 0:
            return f"{waiting} records acknowledged and not yet committed"
        taken = sum(max(0, end - done.get(partition, 0)) for partition, end in planned.items())
        return f"{taken} records planned and not yet committed" if taken else ""


def progress(scenario: Scenario, own: RunResources, observer: Observer) -> Progress:
    """Return the progress that the scenario names. Raises StackError."""
    kind = scenario.pipeline.progress
    if kind in IN_CHECKPOINT:
        return Progress(CHECKPOINT, observer.planned, observer.committed, lambda: None)
    if kind == "group":
        label = grouped(scenario)
        found: Followed = able(label, KeepsGroups, "has no consumer groups").group(own.part(label))
    else:
        label, query = offsets_part(scenario), filled(kind, own.placeholders())
        found = able(label, AnswersQueries, "answers no queries").followed(own.part(label), query)
    name = kind if kind == "group" else "query"
    return Progress(name, found.offsets, found.offsets, found.close, found.saving)
