"""What `onceproof kinds` shows: every trigger and fault that there is here, as their registries have them."""

from __future__ import annotations

from collections.abc import Iterator

from harness.faults import FAULTS
from harness.stack.means import MEANS
from harness.triggers import TRIGGERS


def lines() -> Iterator[str]:
    """One block a kind: its name, what it does, an example, what may stand beside it, which stacks have it."""
    yield "triggers: under `when`, one a step"
    for trigger in TRIGGERS:
        yield from ("", f"  {trigger.about.name}", f"    {trigger.about.summary}", f"    e.g. {trigger.about.example}")
    yield from ("", "faults: after `do`")
    for fault in FAULTS:
        yield from ("", f"  {fault.about.name}", f"    {fault.about.summary}", f"    e.g. {fault.about.example}")
        if keys := [info.alias or name for name, info in fault.about.options.model_fields.items()]:
            yield f"    takes {', '.join(keys)}"
        needs = ", ".join(sorted(fault.needs)) or "nothing"
        stacks = ", ".join(name for name, means in MEANS.items() if fault.needs <= means) or "none"
        yield f"    needs a stack that can {needs}: {stacks}"
