"""What a scenario needs of the components: the parts that its source, its sinks, its setup, its program and its
schedule's kinds name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from harness.component import COMPONENTS, AnswersQueries, KeepsGroups, component, needs
from harness.errors import UsageError
from harness.faults import FAULTS
from harness.fields.placeholders import label, used
from harness.fields.values import OWN_PROGRESS
from harness.resources import Parts, components, labelled
from harness.scenario import Pipeline, Scenario
from harness.sinks import SINKS
from harness.sources import SOURCES
from harness.triggers import TRIGGERS


def parts(scenario: Scenario) -> Parts:
    """By label, what is asked of each part: the source's first."""
    out = dict(_source(scenario))
    progress = [asked(scenario)] if scenario.pipeline.progress not in OWN_PROGRESS else []
    for each in (*_named(scenario), *progress, *_scheduled(scenario)):
        out.setdefault(each, {})
    return out


def needed(scenarios: Iterable[Scenario]) -> Collection[str]:
    """The components that any of them needs."""
    return components(label for scenario in scenarios for label in parts(scenario))


def _source(scenario: Scenario) -> Parts:
    return SOURCES[scenario.input.source].asks(scenario.input)


def _named(scenario: Scenario) -> Iterator[str]:
    kinds = ((SINKS[sink.kind].component, sink.part) for sink in scenario.sinks)
    yield from (labelled(component, part) for component, part in kinds if component)
    yield from scenario.setup
    for text in (*_texts(scenario.pipeline), *scenario.setup.values()):
        yield from filter(None, (label(name) for name in used(text)))


def _scheduled(scenario: Scenario) -> Iterator[str]:
    for step in scenario.schedule:
        yield from (*needs(TRIGGERS[step.when.kind]), *needs(FAULTS[step.do.kind]))


def _texts(pipeline: Pipeline) -> Iterator[str]:
    yield from (pipeline.entry, pipeline.progress, *pipeline.args, *pipeline.env.values(), *pipeline.conf.values())


def asked(scenario: Scenario) -> str:
    """The part that a query for the pipeline's own offsets is put to: the one that it names, else the plain one of the
    only component that may be meant. Raises UsageError if that is none, or several."""
    if scenario.pipeline.progress_in:
        return scenario.pipeline.progress_in
    # What is installed decides nothing: two that the scenario does not name are one too many.
    able = [kind.about.name for kind in COMPONENTS if isinstance(kind, AnswersQueries)]
    own = components((*_source(scenario), *_named(scenario)))
    meant = [name for name in able if name in own] or able
    if len(meant) != 1:
        saw = f"it may be put to {' or '.join(meant) or 'no component'}"
        raise UsageError(f"asked for the pipeline's offsets by a query; {saw}. Name one under progress_in")
    return meant[0]


def grouped(scenario: Scenario) -> str:
    """The part of the source that keeps the pipeline's consumer group. Raises UsageError if none does."""
    found = next((each for each in _source(scenario) if isinstance(component(each), KeepsGroups)), None)
    if found is None:
        saw = f"the source {scenario.input.source} keeps none"
        raise UsageError(f"asked for the offsets of a consumer group; {saw}. Let a query give them")
    return found
