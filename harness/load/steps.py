"""What the trigger and the fault of one step mean together: asked of their kinds, and put where the file says it."""

from __future__ import annotations

from harness.faults import FAULTS
from harness.kinds import Refusal, Refusals
from harness.load import build
from harness.load.models import keys, own
from harness.load.reader import Section
from harness.scenario import Fault, Trigger
from harness.triggers import TRIGGERS
from harness.triggers.base import Planned


def check_step(step: Section, planned: Planned) -> None:
    """Add the mistakes of a step whose `do` and `when` could be read."""
    when, do = step.section("when"), build.fault(step)
    for key, words in keys(FAULTS).items():
        if key not in own(FAULTS[do.kind].about) and step.has(key):
            step.wrong(f"{step.path}.{key} means nothing for {do.kind}: {words[:1].lower()}{words[1:]}", key)
    given = [kind.about.name for kind in TRIGGERS if when.has(kind.about.name)]
    bad = [name for name in given if name not in when.values]
    if len(given) > 1:
        when.wrong(f"{when.path} holds {' and '.join(given)}: one step has one trigger", given[1])
    elif not bad:
        for refusal in refusals(when, do, planned):
            put(step, when, refusal)


def refusals(when: Section, do: Fault, planned: Planned) -> Refusals:
    """Why the step cannot hurt anybody."""
    trigger = build.trigger(when, do)
    if trigger is None:
        yield Refusal("", f"{{path}} is one of {', '.join(kind.about.name for kind in TRIGGERS)}", whole=True)
    elif isinstance(trigger, str) and ("batch" in when.values or not when.has("batch")):
        yield Refusal("", trigger, whole=True)
    if isinstance(trigger, Trigger):
        if not trigger.implied:
            yield from TRIGGERS[trigger.kind].refusals(trigger, planned)
        yield from FAULTS[do.kind].refusals(do, trigger, planned)


def put(step: Section, when: Section, refusal: Refusal) -> None:
    """Add one mistake, unless its key was refused already."""
    section = step if refusal.key in keys(FAULTS) else when
    if section.has(refusal.key) and refusal.key not in section.values:
        return
    between = "" if refusal.words.startswith(":") else " "
    own = f"{section.path}.{refusal.key}{between}{refusal.words}"
    words = refusal.words.replace("{path}", when.path) if refusal.whole else own
    section.wrong(words, *([refusal.key] if section.has(refusal.key) else []))
