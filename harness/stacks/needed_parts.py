"""What a scenario needs of the components: the parts that its source, its sinks, its setup, its program and its
schedule's kinds name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.component import COMPONENTS, AnswersQueries, KeepsGroups, ShowsCommits, component, needs
from harness.errors import UsageError
from harness.faults import FAULTS
from harness.fields.paths import code_folders, project_root
from harness.fields.placeholders import label, used
from harness.fields.values import OWN_PROGRESS
from harness.remote.parts import CHECKPOINT
from harness.remote.proxy.proxies import PROXY
from harness.resources import Parts, component_of, components, labelled
from harness.scenario import Pipeline, Scenario
from harness.sinks import SINKS
from harness.sinks.base import CallsCode, MakesPart
from harness.sources import SOURCES
from harness.triggers import TRIGGERS
from harness.triggers.base import Trait, has


def parts(scenario: Scenario) -> Parts:
    """Return by label what each part has to provide: the source's first."""
    out = {**_source(scenario), **_made(scenario)}
    if kept := scenario.pipeline.checkpoint:
        holds = any(has(TRIGGERS[step.when.kind], Trait.HOLDS_REQUESTS) for step in scenario.schedule)
        out[kept] = {**out.get(kept, {}), CHECKPOINT: True, **({PROXY: True} if holds else {})}
    progress = [offsets_part(scenario)] if scenario.pipeline.progress not in OWN_PROGRESS else []
    for each in (*_named(scenario), *progress, *_scheduled(scenario)):
        out.setdefault(each, {})
    return out


def unnamed(scenario: Scenario) -> Iterator[tuple[str, Parts]]:
    """Yield the named parts that only `setup` names, each with the other parts of the scenario."""
    for part in scenario.setup:
        others = {each: text for each, text in scenario.setup.items() if each != part}
        try:
            named = parts(replace(scenario, setup=others))
        except UsageError:
            # The query for the pipeline's offsets can be put to no other one.
            continue
        if "." in part and part not in named:
            yield part, named


def only_checkpoint(scenario: Scenario) -> str:
    """Return the component that keeps the checkpoint, if it is neither the source's nor a sink's; else empty."""
    kept = components(filter(None, (scenario.pipeline.checkpoint,)))
    sinks = filter(None, (SINKS[sink.kind].component for sink in scenario.sinks))
    others = components((*_source(scenario), *_made(scenario), *sinks))
    return next((each for each in kept if each not in others), "")


def needed(scenarios: Iterable[Scenario]) -> Collection[str]:
    """Return the components that any of them needs."""
    return components(label for scenario in scenarios for label in parts(scenario))


def component_names(scenario: Scenario) -> Collection[str]:
    """Return the components that it needs, whatever is wrong with its code."""
    sinks = (SINKS[sink.kind].component for sink in scenario.sinks)
    return components((*_source(scenario), *_named(scenario), *filter(None, sinks), *_scheduled(scenario)))


def _source(scenario: Scenario) -> Parts:
    return SOURCES[scenario.input.source].requested_parts(scenario.input)


def _made(scenario: Scenario) -> Parts:
    out: dict[str, Mapping[str, Any]] = {}
    for sink in scenario.sinks:
        kind = SINKS[sink.kind]
        if isinstance(kind, MakesPart):
            out |= kind.requested_parts(sink)
        elif isinstance(kind, CallsCode):
            label = labelled(kind.component, sink.part)
            out[label] = {**out.get(label, {}), **kind.request(sink, folders(scenario))}
    return out


def folders(scenario: Scenario) -> tuple[Path, ...]:
    """Return the folders that are searched for the user's own code."""
    path = Path(scenario.path)
    return code_folders(path, scenario.pipeline.entry, project_root(path))


def code(scenario: Scenario) -> list[Path]:
    """Return the files of the user's own code that reads the sinks. Raises UsageError for one that is missing."""
    called = [(SINKS[sink.kind], sink.target) for sink in scenario.sinks]
    found = [path for kind, to in called if isinstance(kind, CallsCode) for path in kind.files(to, folders(scenario))]
    return list(dict.fromkeys(found))


def _named(scenario: Scenario) -> Iterator[str]:
    kinds = ((SINKS[sink.kind], sink.part) for sink in scenario.sinks)
    named = ((kind.component, part) for kind, part in kinds if kind.component and not isinstance(kind, MakesPart))
    yield from (labelled(component, part) for component, part in named)
    yield from scenario.setup
    yield from filter(None, (scenario.pipeline.checkpoint,))
    for text in (*_texts(scenario.pipeline), *scenario.setup.values()):
        yield from filter(None, (label(name) for name in used(text)))


def _scheduled(scenario: Scenario) -> Iterator[str]:
    for step in scenario.schedule:
        yield from (*needs(TRIGGERS[step.when.kind]), *needs(FAULTS[step.do.kind]))


def _texts(pipeline: Pipeline) -> Iterator[str]:
    yield from (pipeline.entry, pipeline.progress, *pipeline.args, *pipeline.env.values(), *pipeline.conf.values())


def offsets_part(scenario: Scenario) -> str:
    """Return the part that answers the query for the pipeline's own offsets: the one that the scenario names, otherwise
    the only one that answers queries, or the plain one of several of one component. Raises UsageError if there is none,
    or several."""
    if scenario.pipeline.progress_in:
        return scenario.pipeline.progress_in
    # What is installed decides nothing.
    own = dict.fromkeys((*_source(scenario), *_named(scenario)))
    meant = [part for part in own if isinstance(component(part), AnswersQueries)]
    plain = components(meant)
    if len(meant) != 1 and not (len(plain) == 1 and plain[0] in meant):
        saw = f"it may be put to {' or '.join(meant)}" if meant else "the scenario names no component that answers one"
        raise UsageError(f"asked for the pipeline's offsets by a query; {saw}. Name one under progress_in")
    return meant[0] if len(meant) == 1 else plain[0]


def proxied(label: str) -> bool:
    """Return whether requests can be held of the component that keeps the checkpoint; an empty label names none."""
    return isinstance(COMPONENTS.all().get(component_of(label)), ShowsCommits)


def grouped(scenario: Scenario) -> str:
    """Return the part of the source that keeps the pipeline's consumer group. Raises UsageError if none does."""
    found = next((each for each in _source(scenario) if isinstance(component(each), KeepsGroups)), None)
    if found is None:
        saw = f"the source {scenario.input.source} keeps none"
        raise UsageError(f"asked for the offsets of a consumer group; {saw}. Let a query give them")
    return found
