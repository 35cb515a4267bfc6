"""What the trigger and the fault of one step mean together: asked of their kinds, and put where the file says it."""

from __future__ import annotations

from harness.faults import FAULTS
from harness.kinds import Refusal, Refusals
from harness.load import build
from harness.load.models import keys, own
from harness.load.reader import Section
from harness.scenario import Fault, Trigger
from harness.triggers import TRIGGERS
from harness.triggers.base import Planned, Trait, has, most_batches


def check_step(step: Section, planned: Planned) -> None:
    """Add the mistakes of a step whose `do` could be read."""
    when, do = step.section("when"), build.fault(step)
    kind = FAULTS[do.kind]
    for key, words in keys(FAULTS).items():
        if key not in own(kind.about) and step.has(key):
            step.wrong(f"{step.path}.{key} means nothing for {do.kind}: {words[:1].lower()}{words[1:]}", key)
    trigger = triggered(step, when, do)
    for each in TRIGGERS:
        for key in each.about.beside.model_fields if each.about.beside else ():
            if when.has(key) and (trigger is None or trigger.kind != each.about.name):
                when.wrong(f"{when.path}.{key} means nothing without `{each.about.name}`", key)
    for refusal in kind.refusals(do, trigger, planned):
        (step if refusal.key in own(kind.about) else when).refuse(refusal)
    if trigger is not None and not trigger.implied:
        for refusal in TRIGGERS[trigger.kind].refusals(trigger, planned):
            when.refuse(refusal)
    if trigger is not None:
        for refusal in beyond(trigger, planned):
            when.refuse(refusal)


def beyond(trigger: Trigger, planned: Planned) -> Refusals:
    """There are not so many batches. Three cases are left out: batches of DStreams, which come by time; a program's
    own, which it counts as it likes; a query that is named, which may read more records than are sent."""
    if planned.by_time or trigger.query is not None or has(TRIGGERS[trigger.kind], Trait.IN_PROGRAM):
        return
    most = most_batches(planned.records)
    if trigger.batch is not None and trigger.batch >= most:
        yield Refusal("batch", f"never comes: {planned.records:g} records make batches 0 to {most - 1:g} at the most")


def triggered(step: Section, when: Section, do: Fault) -> Trigger | None:
    """Return the trigger of a step; None, with the mistake, where the file says none, or says it wrongly."""
    given = [key for key in when.node.items or () if key in TRIGGERS.all()]
    if len(given) > 1:
        when.wrong(f"{when.path} holds {' and '.join(given)}: one step has one trigger", given[1])
    if "when" not in step.values or len(given) > 1 or any(key not in when.values for key in given):
        return None
    found = build.trigger(when, do)
    if found is None:
        when.refuse(Refusal("", f"{{path}} is one of {', '.join(TRIGGERS.all())}", whole=True))
    elif isinstance(found, str) and ("batch" in when.values or not when.has("batch")):
        when.refuse(Refusal("", found, whole=True))
    return found if isinstance(found, Trigger) else None
