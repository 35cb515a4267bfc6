"""What no single value can tell: crash points that never come, sinks that cannot be read, words that contradict others.

Each check reads good values only: a bad one was reported when it was read. It puts a mistake where the text is that
should change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from harness.errors import Mistake, UsageError
from harness.fields.hints import did_you_mean, seen
from harness.fields.paths import code_folders
from harness.fields.values import NAMED, OWN_PROGRESS
from harness.load import build
from harness.load.cross_checks.no_record import check_queries
from harness.load.cross_checks.readable import readable
from harness.load.cross_checks.servers import check_servers
from harness.load.cross_checks.set_ups import check_set_ups
from harness.load.cross_checks.steps import check_step
from harness.load.cross_checks.topics import check_topics
from harness.load.cross_checks.watermarks import check_watermarks
from harness.load.models import ExpectedShape, View, implicit, keys, own
from harness.load.reader import RENAMED, Section, joined
from harness.load.with_header import Claim
from harness.machine import spark_versions
from harness.scenario import MISFITS, Guarantee, Kind, Pipeline, Scenario, Sink, Word
from harness.scenario.progress import ASYNC, DSTREAMS, IN_CHECKPOINT
from harness.sinks import SINKS, countable
from harness.sinks.base import CallsCode, CommitsByRename, DropsRows, MakesPart, Queries, SinkKind
from harness.sources import SOURCES, by_receiver
from harness.sources.base import ForDStreams, RefusesOptions
from harness.stacks import other_versions
from harness.stacks.needed_parts import grouped, offsets_part, proxied
from harness.triggers.base import Planned
from harness.workloads import WORKLOADS

TIMEOUT_S = Scenario(name="", pipeline=Pipeline(entry="")).timeout_s


def check(claim: Claim, *, root: Path, queries: bool) -> None:
    """Add every mistake of meaning to those of form; those of `queries` if they are asked for."""
    sinks(claim)
    code(claim, root=root)
    data(claim.input, root=root)
    query_of_component(claim)
    sent_in_time(claim)
    outcomes(claim)
    for step in claim.top.sections("schedule") if claim.whole else ():
        if step.get("do"):
            check_step(step, planned(claim))
    by_time(claim)
    check_set_ups(claim)
    if not claim.top.mistakes:
        offsets(claim)
        on_its_spark_version(claim)
        check_topics(claim, root=root)
        check_watermarks(claim, root=root)
    if not claim.top.mistakes:
        check_servers(claim)
    if queries:
        check_queries(claim, root=root)


def sinks(claim: Claim) -> None:
    """There is something to compare, each sink by itself makes sense, and `together` has several."""
    owner = claim.owner("sink")
    if not owner.has("sink") and claim.whole:
        owner.wrong("sink is missing: name one here, or in the header block of the pipeline")
    elif owner.node.at(("sink",)).elements == []:
        owner.wrong("sink names none: there is nothing to compare", "sink")
    for sink in claim.sinks:
        given = [key for key in sink.node.items or () if key in SINKS.all()]
        if not given and misspelt(sink):
            continue
        if not given:
            nowhere(sink)
        elif len(given) > 1:
            sink.wrong(f"{sink.path} holds {' and '.join(given)}: make it two sinks", given[1])
            both = [SINKS[key] for key in given if not SINKS[key].unread]
            placed(sink, both[0] if both else SINKS[given[0]], also=given)
        else:
            placed(sink, SINKS[given[0]])
    if claim.get("together") and claim.sinks_are_known and len(claim.sinks) < 2:
        claim.owner("together").wrong("together: true needs two sinks or more", "together")
    elif claim.get("together") and len({tuple(sink.get("key", ())) for sink in claim.sinks if sink.has("key")}) > 1:
        claim.owner("together").wrong("together: true needs the same key in each sink", "together")


def misspelt(sink: Section) -> bool:
    """Return whether a key of it, which was refused already, is the name of a place with a slip in it."""
    return any(did_you_mean(key, SINKS.all()) for key in unknown(sink))


def unknown(sink: Section) -> list[str]:
    """Return the keys of it that were refused already."""
    known = {*keys(SINKS), *ExpectedShape.model_fields}
    return [key for key in sink.node.items or () if key not in known]


def nowhere(sink: Section) -> None:
    """Add that it names no place; its one unknown key is meant for one, and that is said of it once."""
    there = ", ".join(SINKS.all())
    strange = [key for key in unknown(sink) if key not in RENAMED and not did_you_mean(key, ExpectedShape.model_fields)]
    if len(strange) != 1:
        sink.wrong(f"{sink.path} names no place: add one of {there}")
        return
    line, column = sink.node.keys[strange[0]]
    others = [each for each in sink.mistakes if (each.file, each.line, each.column) != (sink.file, line, column)]
    words = f"{sink.path} names no place that is known: {seen(strange[0])} is none of {there}"
    sink.mistakes[:] = [*others, Mistake(sink.file, line, column, words)]


def placed(sink: Section, kind: SinkKind, *, also: Sequence[str] = ()) -> None:
    """What a sink says belongs to its kind, and makes sense; that it is of others `also` was said."""
    mine, others = own(kind.about), keys(SINKS)
    for key in (*others, *ExpectedShape.model_fields):
        if key in mine or key in also or not sink.has(key):
            continue
        if kind.unread:
            sink.wrong(f"{sink.path}.{key} means nothing for a {kind.about.name}, which cannot be read back", key)
        elif key in others:
            sink.wrong(f"{sink.path}.{key} means nothing for {kind.about.name}", key)
    if isinstance(kind, MakesPart) and sink.has("part"):
        sink.wrong(f"{sink.path}.part means nothing for {kind.about.name}, whose own name is the part", "part")
    for refusal in kind.refusals(build.options_of(sink, kind.about)):
        sink.refuse(refusal)
    if not kind.unread:
        target = sink.get(kind.about.name)
        readable(sink, query=kind.query(target) if target and isinstance(kind, Queries) else None)
        viewed(sink, kind, target)


def code(claim: Claim, *, root: Path) -> None:
    """The user's own code that reads a sink is there."""
    entry = claim.pipeline.get("entry", "")
    for sink in claim.sinks:
        for kind in SINKS:
            target = sink.get(kind.about.name)
            if target and isinstance(kind, CallsCode):
                where = code_folders(Path(claim.top.file), entry, root)
                if words := kind.wrong_in(target, where):
                    sink.wrong(f"{sink.path}.{kind.about.name} {words}", kind.about.name)


def viewed(sink: Section, kind: SinkKind, target: str | None) -> None:
    """Note a mistake if a sink drops repeated rows and does not say so, or says so and cannot."""
    drops = isinstance(kind, DropsRows) and kind.folds(build.options_of(sink, kind.about))
    complete = sink.get("view") == View.COMPLETE
    if complete and not isinstance(kind, CallsCode):
        sink.wrong(f"{sink.path}.view: complete means nothing for {kind.about.name}: only own code is believed", "view")
    elif drops and not sink.has("view"):
        sink.wrong(f"{sink.path} drops rows that repeat others, so say so: add `view: deduplicated`")
    elif sink.get("view") and target and not drops and not isinstance(kind, Queries):
        # The name of a table may be that of a view.
        table = "a table: only a query, or a view, can fold rows that are equal"
        words = "a sink that drops no rows" if isinstance(kind, DropsRows) else table
        sink.wrong(f"{sink.path}.view means nothing for {words}", "view")


def data(given: Section, *, root: Path) -> None:
    """What the input says belongs to its workload or to its source, and fits."""
    name, place = build.workload(given), build.source(given)
    kind = WORKLOADS[name]
    mine = own(kind.about) | own(SOURCES[place].about)
    workloads = keys(WORKLOADS) | ({"workload": "the key says what is sent"} if implicit(kind.about) else {})
    for whose, others in ((name, workloads), (place, keys(SOURCES))):
        for key, words in others.items():
            if key not in mine and given.has(key):
                given.wrong(f"{given.path}.{key} means nothing for {whose}: {words[:1].lower()}{words[1:]}", key)
    for refusal in kind.refusals(build.options_of(given, kind.about), root=root):
        given.refuse(refusal)
    source = SOURCES[place]
    if isinstance(source, RefusesOptions):
        for refusal in source.refusals(build.options_of(given, source.about), given.get("records")):
            given.refuse(refusal)


def outcomes(claim: Claim) -> None:
    """What is expected can be found, also at single crash points."""
    top, expected = claim.top, claim.top.section("verdict")
    if top.has("crash_points") and top.has("schedule"):
        top.wrong("a scenario has crash_points or a schedule: leave out one of them", "schedule")
    named = [*(["default"] if expected.has("default") else []), *expected.get("at", {})]
    for name in named if not top.has("crash_points") else ():
        words = f"unknown key {joined('verdict', name)!r}: crash points are named for a sweep; add `crash_points: all`"
        expected.mistakes.append(Mistake(expected.file, *expected.node.keys[name], words))
    if top.get("crash_points") == (NAMED,) and not expected.get("at"):
        words = "crash_points are those that verdict names, and it names none: add {CRASH POINT: WORD}"
        top.wrong(words, "crash_points")
    if named and top.has("crash_points") and expected.has("violated"):
        expected.wrong("verdict names each crash point that is not held: leave out `violated`", "violated")
    if top.has("crash_points") and expected.get("word", Word.HELD) is not Word.HELD:
        words = f"{expected.get('word')} is for a schedule, or for single crash points: {{CRASH POINT: WORD}}"
        expected.wrong(f"{expected.path}: {words}", "word")
    if top.has("crash_points") and expected.get("without_faults"):
        expected.wrong(
            "a pipeline that is wrong without faults is not swept: leave out without_faults", "without_faults"
        )
    for each in (expected, *expected.get("at", {}).values()):
        outcome(claim, each)


def outcome(claim: Claim, expected: Section) -> None:
    """One outcome that is expected can be found."""
    path = expected.path or "verdict"
    if expected.has("without_faults") and not expected.has("violated"):
        expected.wrong(
            "verdict.without_faults belongs to violated: {violated: [KIND], without_faults: true}", "without_faults"
        )
    elif expected.path and not expected.node.items:
        expected.wrong(f"{path} says nothing: held, inconclusive, untested or {{violated: [KIND]}}")
    kinds = expected.get("violated", ())
    if expected.get("violated") == []:
        expected.wrong(f"{path}.violated names no kind of finding", "violated")
    # What at-most-once loses without faults too is a violation of it.
    allowed = {Guarantee.AT_LEAST_ONCE: Kind.DUPLICATED}
    guarantee = claim.top.get("guarantee", Guarantee.EXACTLY_ONCE)
    before: set[Kind] = set()
    for index, kind in enumerate(kinds):
        if kind in before:
            expected.wrong(f"{path}.violated names {kind} twice", "violated", index)
        elif kind is allowed.get(guarantee) and (claim.top.get("guarantee") or not claim.top.has("guarantee")):
            expected.wrong(f"{kind} is no violation of {guarantee}", "violated", index)
        elif kind in MISFITS and expected.get("without_faults"):
            words = "without faults too is an error, never violated: `expected` does not fit the pipeline"
            expected.wrong(f"{kind} {words}", "violated", index)
        elif kind is Kind.MISORDERED and claim.sinks_are_known and not any(s.has("order") for s in claim.sinks):
            expected.wrong("misordered is never found: no sink has an order", "violated", index)
        before.add(kind)


def planned(claim: Claim) -> Planned:
    """Return what the file says of the run that bears on its steps."""
    named = [(sink, kind) for sink in claim.sinks for kind in SINKS if sink.has(kind.about.name)]
    tables = [
        Sink(kind=kind.about.name, target=str(sink.get(kind.about.name, "")), part=str(sink.get("part", "")))
        for sink, kind in named
    ]
    logs = [sink.get("query") for sink, kind in named if isinstance(kind, CommitsByRename)]
    progress = claim.get("progress") if claim.owner("progress").has("progress") else None
    return Planned(
        records=limit(claim),
        timeout_s=lasting(claim),
        countable=[*countable(tables).values()] if claim.sinks_are_known else None,
        checkpoint=progress in (None, *IN_CHECKPOINT),
        late_log=progress == ASYNC,
        by_time=progress == DSTREAMS,
        receiver=by_receiver(build.source(claim.input)),
        sink_logs=logs if claim.sinks_are_known else None,
        sinks_in={kind.component for _, kind in named},
        proxied=proxied(claim.pipeline.get("checkpoint", "")) if claim.whole else None,
    )


def lasting(claim: Claim) -> float:
    """Return the seconds that the run may take; infinity if the file says them wrongly."""
    return float(claim.top.get("timeout", math.inf if claim.top.has("timeout") else TIMEOUT_S))


def query_of_component(claim: Claim) -> None:
    """Note a mistake if `progress_in` is named and `progress` is no query."""
    owner = claim.owner("progress_in")
    if owner.get("progress_in") and claim.whole and claim.get("progress", "checkpoint") in OWN_PROGRESS:
        path = ".".join(filter(None, (owner.path, "progress_in")))
        owner.wrong(f"{path} is for a query under progress, and there is none", "progress_in")


def offsets(claim: Claim) -> None:
    """One component alone may be asked for the offsets that the pipeline keeps itself."""
    scenario, owner = build.scenario(claim, path=""), claim.owner("progress")
    try:
        if scenario.pipeline.progress == "group":
            grouped(scenario)
        elif scenario.pipeline.progress not in OWN_PROGRESS:
            offsets_part(scenario)
    except UsageError as refused:
        path = ".".join(filter(None, (owner.path, "progress")))
        owner.wrong(f"{path}: {refused}", "progress")


def on_its_spark_version(claim: Claim) -> None:
    """Note a mistake for what a Spark version that the file names cannot do."""
    scenario = build.scenario(claim, path=claim.top.file)
    restart = claim.top.section("restart")
    owner = restart if spark_versions.is_other(scenario.restart.spark) else claim.pipeline
    # What the installed Spark does not do is no mistake of the file.
    for version, words in other_versions.refusals(scenario):
        if not spark_versions.is_other(version):
            continue
        owner.wrong(f"{'.'.join(filter(None, (owner.path, 'spark')))} is {version}, which has no {words}", "spark")


def by_time(claim: Claim) -> None:
    """DStreams read a source of which it is known what their files say."""
    if not claim.owner("progress").has("progress") or claim.get("progress") != DSTREAMS:
        return
    if claim.pipeline.get("checkpoint"):
        words = "pipeline.checkpoint: that of a program of DStreams is watched in the run's own folder alone"
        claim.pipeline.wrong(words, "checkpoint")
    name = build.source(claim.input)
    kind = SOURCES[name] if name in SOURCES.all() else None
    if isinstance(kind, ForDStreams):
        for refusal in kind.unread_by_time(build.options_of(claim.input, kind.about)):
            claim.input.refuse(refusal)
    elif kind is not None:
        known = ", ".join(each.about.name for each in SOURCES if isinstance(each, ForDStreams))
        claim.input.wrong(f"input.source is {name}, which PySpark's DStreams do not read; they read {known}", "source")


def sent_in_time(claim: Claim) -> None:
    """All records can be sent within the run."""
    rate, within, records = claim.input.get("rate"), lasting(claim), limit(claim)
    if rate and math.isfinite(records) and records / rate >= within:
        words = f"{records:g} records take {records / rate:g}s, and the run ends within {within:g}s"
        claim.input.wrong(f"input.rate is too slow: {words}", "rate")


def limit(claim: Claim) -> float:
    """Return how many records are sent; infinity if the file does not say it, or says it wrongly."""
    owner = claim.owner("input")
    wrong = "input" not in owner.values and (owner.has("input") or not claim.whole)
    sent = WORKLOADS[build.workload(claim.input)].records
    return float(claim.input.get("records", math.inf if wrong or claim.input.has("records") or not sent else sent))
