"""What a scenario needs of the components: the parts that its source, its sinks, its setup and its program name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from harness.component import COMPONENTS, AnswersQueries
from harness.errors import UsageError
from harness.fields.placeholders import label, used
from harness.fields.values import OWN_PROGRESS
from harness.resources import Parts, component_of, components, labelled
from harness.scenario import Pipeline, Scenario
from harness.sinks import SINKS
from harness.sources import SOURCES


def parts(scenario: Scenario) -> Parts:
    """By label, what is asked of each part: the source's first."""
    out: dict[str, Mapping[str, Any]] = dict(SOURCES[scenario.input.source].asks(scenario.input))
    for each in _labels(scenario):
        out.setdefault(each, {})
    return out


def needed(scenarios: Iterable[Scenario]) -> Collection[str]:
    """The components that any of them needs."""
    return components(label for scenario in scenarios for label in parts(scenario))


def _labels(scenario: Scenario) -> Iterator[str]:
    yield from _sinks(scenario)
    yield from scenario.setup
    if scenario.pipeline.progress not in OWN_PROGRESS:
        yield asked(scenario)
    for text in (*_texts(scenario.pipeline), *scenario.setup.values()):
        yield from filter(None, (label(name) for name in used(text)))


def _sinks(scenario: Scenario) -> list[str]:
    kinds = ((SINKS[sink.kind].component, sink.part) for sink in scenario.sinks)
    return [labelled(component, part) for component, part in kinds if component]


def _texts(pipeline: Pipeline) -> Iterator[str]:
    yield from (pipeline.entry, pipeline.progress, *pipeline.args, *pipeline.env.values(), *pipeline.conf.values())


def asked(scenario: Scenario) -> str:
    """The part that a query for the pipeline's own offsets is put to: the one that it names, else the plain one of the
    first sink's component that answers queries, or of any. Raises UsageError if there is none."""
    if scenario.pipeline.progress_in:
        return scenario.pipeline.progress_in
    names = (*map(component_of, _sinks(scenario)), *COMPONENTS.all())
    found = next((name for name in names if isinstance(COMPONENTS[name], AnswersQueries)), None)
    if found is None:
        raise UsageError("asked for the pipeline's offsets by a query; no component answers queries")
    return found
