"""A scenario as a file again.

What a header block could say is always written out, so the file means the same whatever the pipeline's header says
by then. Times are kept to a microsecond.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString, SingleQuotedScalarString

from harness.faults import FAULTS
from harness.fields import values as v
from harness.kinds import About
from harness.load.models import annotated, implicit, own
from harness.scenario import Expected, Input, Known, Pipeline, Restart, Scenario, Sink, Step, Trigger
from harness.scenario.watermark import OutputMode, Watermark
from harness.sinks import SINKS
from harness.sources import SOURCES
from harness.triggers import TRIGGERS
from harness.workloads import WORKLOADS

HARMLESS = re.compile(r"-{0,2}[A-Za-z0-9_./]([A-Za-z0-9_ ./()=<>*+,;'-]*[A-Za-z0-9_./()=<>*;'])?")


def dump(scenario: Scenario) -> str:
    """YAML that `load` reads back as the same scenario, but for its `path`."""
    s, default = scenario, Scenario(name="", pipeline=Pipeline(entry=""))
    document = block(
        name=s.name,
        why=s.why if s.why != default.why else None,
        pipeline=pipeline(s.pipeline),
        guarantee=s.guarantee.value,
        setup=block(s.setup),
        sink=CommentedSeq(sink(each) for each in s.sinks),
        together=s.together,
        input=given(s.input),
        schedule=CommentedSeq(step(each) for each in s.schedule) if s.schedule or not s.crash_points else None,
        crash_points=crash_points(s.crash_points),
        restart=restart(s.restart),
        verdict=expected(s.verdict),
        timeout=lasting(s.timeout_s),
        quiet_period=lasting(s.quiet_period_s),
        tags=flows(s.tags),
        seed=s.seed,
        known=s.known and known(s.known),
    )
    return yaml_text(document)


def yaml_text(document: CommentedMap) -> str:
    """Return a document as a file has it."""
    yaml = YAML(typ="rt", pure=True)
    yaml.width = 1_000_000  # folding would change what the lines of a query look like
    yaml.indent(mapping=2, sequence=4, offset=2)
    out = io.StringIO()
    yaml.dump(document, out)
    return out.getvalue()


def block(mapping: Mapping[str, Any] | None = None, /, **more: Any) -> CommentedMap:
    """Return a mapping, one key a line, without the keys that are None."""
    found = {**(mapping or {}), **more}
    return CommentedMap({text(key): text(value) for key, value in found.items() if value is not None})


def restart(given: Restart) -> CommentedMap:
    """Return what the supervisor does after a death of the driver."""
    return flow({"after": lasting(given.delay_s), "max_restarts": given.max_restarts, "spark": given.spark or None})


def flow(mapping: Mapping[str, Any]) -> CommentedMap:
    """Return the same on one line."""
    out = CommentedMap({key: quoted(value) for key, value in mapping.items() if value is not None})
    out.fa.set_flow_style()
    return out


def flows(values: Iterable[Any]) -> CommentedSeq:
    """Return a list on one line."""
    out = CommentedSeq(quoted(value) for value in values)
    out.fa.set_flow_style()
    return out


def text(value: Any) -> Any:
    """Return a text of several lines as a literal block where that keeps every character, else in quotes if need be;
    texts by name on one line."""
    if isinstance(value, dict) and not isinstance(value, CommentedMap):
        return flow(value)
    lines = value.split("\n") if isinstance(value, str) else []
    plain = len(lines) > 1 and all(line.isprintable() and line == line.rstrip() for line in lines)
    if plain and lines[0] and lines[0] == lines[0].lstrip():
        return LiteralScalarString(value)
    return quoted(value)


def quoted(value: Any) -> Any:
    """In quotes what has more than harmless characters: ruamel writes `? x` bare, and that reads as a mapping."""
    if not isinstance(value, str) or HARMLESS.fullmatch(value):
        return value
    return SingleQuotedScalarString(value) if value.isprintable() else DoubleQuotedScalarString(value)


def lasting(seconds: float | None) -> str | None:
    """Return a length of time with its unit."""
    return None if seconds is None else v.lasting(seconds)


def pipeline(p: Pipeline) -> CommentedMap:
    """Return the program under test."""
    return block(
        entry=p.entry,
        args=flows(p.args),
        env=block(p.env),
        conf=block(p.conf),
        executors=p.executors,
        progress=p.progress,
        progress_in=p.progress_in or None,
        checkpoint=p.checkpoint or None,
        interval=lasting(p.interval_s),
        spark=p.spark or None,
    )


def sink(s: Sink) -> CommentedMap:
    """Return one sink."""
    kind = SINKS[s.kind]
    where = {s.kind: s.target or True, **extras(kind.about, s.options)}
    if kind.unread:
        return flow(where)
    order = s.order and flow({"by": s.order.by, "follows": s.order.follows, "per": flows(s.order.per)})
    view = "deduplicated" if s.folds else "complete" if s.complete else None
    closing = s.watermark and watermark(s.watermark)
    more = {"part": s.part or None, "query": s.query, "watermark": closing, "view": view}
    return block(where, expected=s.expected, key=flows(s.key), order=order, **more)


def watermark(w: Watermark) -> CommentedMap:
    """Return what closes the windows of a sink."""
    mode = None if w.mode is OutputMode.APPEND else str(w.mode)
    return block(of=w.of, closes=w.closes, delay=lasting(w.delay_s or None), mode=mode)


def given(i: Input) -> CommentedMap:
    """Return the input."""
    kind = WORKLOADS[i.workload].about
    values = {
        "workload": None if implicit(kind) else i.workload,
        "source": i.source,
        **extras(kind, i.options),
        **extras(SOURCES[i.source].about, i.source_options),
        "records": i.records or None,
        "rate": None if i.rate_per_s is None else f"{v.short(Decimal(repr(i.rate_per_s)))}/s",
    }
    return flow(values)


def extras(kind: About, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is said of a kind, by the keys of the file."""
    fields = kind.options.model_fields
    return {
        key: v.written(annotated(fields[name]), options[name]) for key, name in own(kind).items() if name in options
    }


def step(s: Step) -> CommentedMap:
    """Return one step, in the words that the file had."""
    return flow({"when": flow(when(s.when)), "do": s.do.kind} | extras(FAULTS[s.do.kind].about, s.do.options))


def when(t: Trigger) -> dict[str, Any]:
    """Return a trigger; one that the fault implies is its batch alone."""
    value = {} if t.implied else {t.kind: v.written(TRIGGERS[t.kind].about.options, t.value)}
    return {**value, **t.options, "batch": t.batch, "query": t.query}


def known(k: Known) -> CommentedMap:
    """Return the failure that is being worked on."""
    # A kind is more than the text that YAML writes.
    kinds = flows(map(str, k.violated)) if k.violated else None
    return flow({"issue": k.issue, "until": k.until, "violated": kinds})


def crash_points(names: Sequence[str]) -> str | CommentedSeq | None:
    """Return the crash points of a sweep."""
    return None if not names else v.ALL if names == (v.ALL,) else flows(names)


def expected(e: Expected) -> str | CommentedMap:
    """Return what the verdict should be."""
    kinds = flows(kind.value for kind in e.kinds) if e.kinds else None
    if e.at:
        return block({name: expected(each) for name, each in e.at.items()})
    return flow({"violated": kinds, "without_faults": e.without_faults or None}) if kinds else e.word.value
