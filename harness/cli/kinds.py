"""What `onceproof kinds` shows: every component, source, workload, sink, trigger and fault that there is here."""

from __future__ import annotations

from collections.abc import Iterator

from harness.component import COMPONENTS, AsContainer, AsProcesses, AtAddress
from harness.faults import FAULTS
from harness.kinds import About
from harness.load.models import own
from harness.sinks import SINKS
from harness.sources import SOURCES
from harness.stack import MEANS
from harness.stacks.addresses import STACKS
from harness.triggers import TRIGGERS
from harness.workloads import WORKLOADS


def lines() -> Iterator[str]:
    """One block a kind: its name, what it does, an example, its own keys; of a fault also which stacks have it."""
    yield "components: by their placeholders, `setup`, sinks and sources"
    for component in COMPONENTS:
        yield from block(component.about)
        yield f"    gives {', '.join(f'{{{component.about.name}.{name}}}' for name in component.gives)}"
        abilities = zip(STACKS, (AsProcesses, AsContainer, AtAddress), strict=True)
        yield f"    on {', '.join(name for name, kind in abilities if isinstance(component, kind)) or 'no stack'}"
    yield from ("", "sources: what the pipeline reads")
    for source in SOURCES:
        yield from block(source.about)
    yield ""
    yield "workloads: under `input`"
    for workload in WORKLOADS:
        yield from block(workload.about, keys=list(own(workload.about)))
    yield from ("", "sinks: under `sink`")
    for sink in SINKS:
        yield from block(sink.about, keys=list(own(sink.about)))
    yield from ("", "triggers: under `when`, one a step")
    for trigger in TRIGGERS:
        yield from block(trigger.about)
    yield from ("", "faults: after `do`")
    for fault in FAULTS:
        yield from block(fault.about, keys=list(own(fault.about)))
        needs = ", ".join(sorted(fault.needs)) or "do nothing more"
        stacks = ", ".join(name for name, means in MEANS.items() if fault.needs <= means) or "none"
        yield f"    needs a stack that can {needs}: {stacks}"


def block(about: About, *, keys: list[str] | None = None) -> Iterator[str]:
    """What is said of any kind."""
    yield from ("", f"  {about.name}", f"    {about.summary}", f"    e.g. {about.example}")
    if keys:
        yield f"    takes {', '.join(keys)}"
