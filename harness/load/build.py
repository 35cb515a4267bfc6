"""From sections without mistakes to the nouns of `harness.scenario`."""

from __future__ import annotations

from typing import Any

from harness.faults import FAULTS
from harness.faults import fault as made
from harness.faults.base import implied
from harness.fields import values as v
from harness.kinds import About
from harness.load.models import View, implicit, own
from harness.load.reader import Section
from harness.load.with_header import Claim
from harness.scenario import (
    Expected,
    Fault,
    Input,
    Known,
    Order,
    Pipeline,
    Restart,
    Scenario,
    Sink,
    Step,
    Trigger,
    Word,
)
from harness.scenario.watermark import OutputMode, Watermark
from harness.sinks import SINKS
from harness.sources import SOURCES
from harness.triggers import TRIGGERS
from harness.workloads import WORKLOADS


def scenario(claim: Claim, *, path: str) -> Scenario:
    """Return the scenario, defaults of the header filled in."""
    top, wanted = claim.top, expected(claim.top.section("verdict"))
    crash_points = top.get("crash_points", ())
    return Scenario(
        pipeline=pipeline(claim),
        setup=dict(claim.get("setup", {})),
        sinks=tuple(sink(each) for each in claim.sinks),
        input=given(claim.input),
        schedule=tuple(step(each) for each in top.sections("schedule")),
        crash_points=tuple(wanted.at) if crash_points == (v.NAMED,) else crash_points,
        restart=restart(top.section("restart")),
        verdict=wanted,
        tags=tuple(top.get("tags", ())),
        known=known(top.section("known")),
        path=path,
        **named(top, {"name": "name", "why": "why", "guarantee": "guarantee", "timeout": "timeout_s", "seed": "seed"}),
        **{name: claim.get(key) for key, name in LAYERED.items() if claim.get(key) is not None},
    )


LAYERED = {"together": "together", "quiet_period": "quiet_period_s"}


def named(section: Section, names: dict[str, str]) -> dict[str, Any]:
    """Return the values that a section has, under the nouns' own names; the nouns know the defaults of the rest."""
    return {name: section.values[key] for key, name in names.items() if key in section.values}


def pipeline(claim: Claim) -> Pipeline:
    """Return the program under test."""
    keys = ("env", "conf", "executors", "progress", "progress_in", "checkpoint")
    known = {key: claim.get(key) for key in keys if claim.get(key) is not None}
    args = tuple(claim.get("args", ()))
    # No header says it: on which Spark a program is put to the test is no trait of the program.
    own = named(claim.pipeline, {"entry": "entry", "spark": "spark"})
    return Pipeline(args=args, interval_s=claim.get("interval"), **own, **known)


def sink(section: Section) -> Sink:
    """Return one sink."""
    kind = next(kind for kind in SINKS if section.has(kind.about.name))
    options, order = options_of(section, kind.about), section.section("order").values
    target = options.pop(own(kind.about)[kind.about.name])
    return Sink(
        kind=kind.about.name,
        # A flag says that it is there, and no more.
        target=target if isinstance(target, str) else "",
        options=options,
        expected=section.get("expected"),
        key=tuple(section.get("key", ())),
        order=Order(by=order["by"], follows=order["follows"], per=tuple(order["per"])) if order else None,
        part=section.get("part", ""),
        query=section.get("query"),
        folds=section.get("view") == View.DEDUPLICATED,
        complete=section.get("view") == View.COMPLETE,
        watermark=watermark(section),
    )


def watermark(section: Section) -> Watermark | None:
    """Return what closes the windows of a sink, if it has any."""
    values = section.section("watermark").values
    if not values:
        return None
    mode = OutputMode(values.get("mode", OutputMode.APPEND))
    return Watermark(of=values["of"], closes=values["closes"], delay_s=values.get("delay", 0.0), mode=mode)


def given(section: Section) -> Input:
    """Return the input."""
    kind, place = WORKLOADS[workload(section)], SOURCES[source(section)].about
    values = {"records": kind.records} | named(section, {"records": "records", "rate": "rate_per_s"})
    options, more = options_of(section, kind.about), options_of(section, place)
    return Input(workload=kind.about.name, source=place.name, options=options, source_options=more, **values)


def source(section: Section) -> str:
    """Return the kind of source."""
    return str(section.get("source", Input().source))


def workload(section: Section) -> str:
    """Return the kind of workload: the one whose name is a key of the section, or the one that is named."""
    unnamed = [kind.about.name for kind in WORKLOADS if implicit(kind.about) and section.has(kind.about.name)]
    return unnamed[0] if unnamed else str(section.get("workload", Input().workload))


def options_of(section: Section, kind: About) -> dict[str, Any]:
    """Return the valid values of a kind's own keys in a section, by the names that its model has."""
    return kind.normalised({name: section.get(key) for key, name in own(kind).items() if key in section.values})


def step(section: Section) -> Step:
    """Return one step."""
    do = fault(section)
    found = trigger(section.section("when"), do)
    assert isinstance(found, Trigger)
    return Step(when=found, do=do)


def fault(section: Section) -> Fault:
    """Return the fault of a step, with those of its options that the file says well."""
    kind = FAULTS[section.get("do")]
    return made(kind.about.name, **options_of(section, kind.about))


def trigger(when: Section, do: Fault) -> Trigger | str | None:
    """Return the trigger of a step: the one that `when` names, or the one that the fault implies; what that lacks; None
    if there is no trigger."""
    batch, query = when.get("batch"), when.get("query")
    given = [kind for kind in TRIGGERS if kind.about.name in when.values]
    if given:
        about = given[0].about
        return given[0].trigger(when.get(about.name), batch=batch, query=query, **beside(when, about))
    return implied(FAULTS[do.kind], batch, query)


def beside(when: Section, kind: About) -> dict[str, Any]:
    """Return what `when` says well of the keys that its trigger has beside its own, by the names that their model
    has."""
    fields = kind.beside.model_fields if kind.beside else ()
    return {name: when.get(name) for name in fields if name in when.values}


def restart(section: Section) -> Restart:
    """Return what the supervisor does after a death of the driver."""
    names = {"after": "delay_s", "max_restarts": "max_restarts", "spark": "spark"}
    return Restart(**named(section, names))


def known(section: Section) -> Known | None:
    """Return the failure that is being worked on, if there is one."""
    if not section.values:
        return None
    kinds = tuple(section.get("violated") or ())
    return Known(issue=section.get("issue"), until=section.get("until"), violated=kinds)


def expected(section: Section) -> Expected:
    """Return what the verdict should be."""
    at = {name: expected(each) for name, each in section.get("at", {}).items()}
    if section.has("violated"):
        kinds = tuple(section.get("violated"))
        return Expected(word=Word.VIOLATED, kinds=kinds, without_faults=bool(section.get("without_faults")), at=at)
    return Expected(word=section.get("word", Word.HELD), at=at)
