"""The steps that are possible in one batch of a scenario: asked of every kind, and held against its refusals.

A kind of trigger that can draw itself says so (`harness.triggers.base.Draws`); of the others, those are taken
that scenarios of the same pipeline name. The options of a fault are drawn by the types of their fields.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import product
from math import inf
from random import Random
from typing import Any

from harness.component import needs
from harness.faults import FAULTS, fault
from harness.faults.base import FaultKind, implied
from harness.fields import values as v
from harness.load.models import annotated
from harness.scenario import CrashPoint, Fault, Scenario, Trigger, Victim
from harness.scenario.impact import ENDS_EXECUTOR
from harness.scenario.progress import ASYNC, DSTREAMS, IN_CHECKPOINT
from harness.sinks import SINKS, countable
from harness.sinks.base import CommitsByRename
from harness.sources import by_receiver
from harness.stack import Means
from harness.stacks.needed_parts import component_names, proxied
from harness.triggers import TRIGGERS
from harness.triggers.base import Draws, Planned, Trait, has

LASTS = (5, 40)
"""Tenths of a second that a fault lasts which heals by itself."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A pipeline under test: `base` is the scenario without its schedule; `own` are its scenarios as they are. `named`
    are the triggers that scenarios of the same pipeline name, for kinds that cannot be drawn. `counted` are the sinks
    that are known to be tables, None where no run has shown it."""

    base: Scenario
    named: tuple[Trigger, ...] = ()
    own: tuple[Scenario, ...] = ()
    counted: Sequence[str] | None = None

    @property
    def name(self) -> str:
        """What a report calls it."""
        return self.base.path or self.base.name


def planned(scenario: Scenario, counted: Sequence[str] | None = None) -> Planned:
    """Return what bears on the steps of a scenario. `counted` are the sinks that are known to be tables: where they are
    not, the first that may be one."""
    return Planned(
        records=scenario.input.records or inf,
        timeout_s=scenario.timeout_s,
        countable=list(countable(scenario.sinks).values())[:1] if counted is None else counted,
        checkpoint=scenario.pipeline.progress in IN_CHECKPOINT,
        late_log=scenario.pipeline.progress == ASYNC,
        by_time=scenario.pipeline.progress == DSTREAMS,
        receiver=by_receiver(scenario.input.source),
        sink_logs=[sink.query for sink in scenario.sinks if isinstance(SINKS[sink.kind], CommitsByRename)],
        sinks_in={SINKS[sink.kind].component for sink in scenario.sinks},
        proxied=proxied(scenario.pipeline.checkpoint),
    )


def triggers(random: Random, target: Target, scenario: Scenario, batch: int) -> Iterator[Trigger]:
    """Yield the triggers that can be met in a batch; `scenario` has the input that was drawn."""
    seen, there = planned(scenario, target.counted), set(component_names(replace(scenario, schedule=())))
    for kind in TRIGGERS:
        if not set(needs(kind)) <= there:
            continue
        if isinstance(kind, Draws):
            found = list(kind.draws(random, seen, batch))
        else:
            own = [each for each in target.named if each.kind == kind.about.name]
            found = [each if each.batch is None else replace(each, batch=batch) for each in own]
        yield from (each for each in found if not any(kind.refusals(each, seen)))
    for does in FAULTS:
        when = implied(does, batch, None)
        plain = Fault(kind=does.about.name, impact=does.impact)
        if isinstance(when, Trigger) and not any(does.refusals(plain, when, seen)):
            yield when


def faults(
    random: Random, scenario: Scenario, when: Trigger, means: Collection[Means], *, in_task: bool = False
) -> Iterator[Fault]:
    """Yield what can be done at a trigger, on a stack with these means. `in_task`: a task is known to come to it."""
    seen, there = planned(scenario), set(component_names(replace(scenario, schedule=())))
    for kind in FAULTS:
        if not kind.needs <= set(means) or not set(needs(kind)) <= there:
            continue
        if when.implied and implied(kind, when.batch, when.query) != when:
            continue
        for options in variants(random, kind):
            do = fault(kind.about.name, **options)
            if not any(kind.refusals(do, when, seen)) and telling(do, when, in_task=in_task):
                yield do


def telling(do: Fault, when: Trigger, *, in_task: bool = False) -> bool:
    """Return whether it can be seen that the fault struck. A fault that most likely comes too late, or finds no process
    at work, would waste its run. `in_task`: a task of Spark's is known to come to the trigger."""
    victim = do.options.get("victim", Victim.TREE)
    if victim == Victim.JVM and has(TRIGGERS[when.kind], Trait.IN_PROGRAM):
        # The Python program stands still there, and would outlive its JVM.
        return False
    if victim == Victim.PYTHON and when.point is not CrashPoint.BATCH_PLANNED:
        # Later on the JVM would commit the batch before it notices.
        return False
    if do.impact in ENDS_EXECUTOR:
        return (in_task or has(TRIGGERS[when.kind], Trait.COUNTS_ROWS)) and when.batch is not None
    return True


def variants(random: Random, kind: FaultKind) -> Iterator[Mapping[str, Any]]:
    """Yield the options of a fault, each way that they can be said; none where one is needed that cannot be drawn."""
    fields = getattr(kind.about.options, "model_fields", {})
    ways = {name: _values(random, annotated(info), needed=info.is_required()) for name, info in fields.items()}
    chosen = {name: values for name, values in ways.items() if values is not None}
    for values in product(*chosen.values()):
        yield dict(zip(chosen, values, strict=True))


def _values(random: Random, annotation: Any, *, needed: bool) -> list[Any] | None:
    """Return the values of a field; None to leave it out."""
    plain = getattr(annotation, "__origin__", annotation)
    if isinstance(plain, type) and issubclass(plain, Enum):
        return list(plain)
    if v.form(annotation) is v.form(v.Duration):
        return [random.randint(*LASTS) / 10]
    return [] if needed else None


def exposes(when: Trigger) -> bool:
    """Return whether it can expose anything. Between two batches nothing is in flight, until the next one is
    planned."""
    return when.point not in (CrashPoint.BATCH_COMMITTED, CrashPoint.BATCH_PLANNING)


def inside(when: Trigger) -> bool:
    """Return whether it is certain to come while a batch is in flight. The time or the records sent do not say."""
    return exposes(when) and (when.batch is not None or has(TRIGGERS[when.kind], Trait.COUNTS_ROWS))


def place(when: Trigger) -> str:
    """Return where in the protocol, without numbers: a crash point, a failpoint by name, or the kind of trigger."""
    if when.point is not None:
        return when.point.value
    return f"{when.kind} {when.value}" if isinstance(when.value, str) else f"{when.kind} {when.sink}".strip()
