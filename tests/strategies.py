"""Hypothesis strategies for scenarios: every one drawn is valid in the project that `project` writes."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from harness.component import needs
from harness.faults import FAULTS, fault
from harness.faults.base import implied
from harness.fields.values import ALL
from harness.load.models import BATCH_MAX, VerdictShape
from harness.machine import spark_versions
from harness.operation import Side
from harness.scenario import (
    MISFITS,
    CrashPoint,
    Expected,
    Guarantee,
    Input,
    Kind,
    Known,
    Order,
    Pipeline,
    Restart,
    Scenario,
    Sink,
    Step,
    Trigger,
    Victim,
    Word,
)
from harness.triggers import trigger
from harness.triggers.base import Planned
from harness.triggers.op import OPERATIONS

ENTRY = "pipelines/pay.py"
DATA = "data/orders.jsonl"
PROGRESS = ("checkpoint", "group", "select partition, next_offset from progress where topic = '{topic}'")
SPARK = "{spark.home}/examples/wordcount.py"


def project(root: Path) -> Path:
    """A folder in which the drawn scenarios are valid; its `scenarios` folder."""
    for name in (ENTRY, DATA):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("", encoding="utf-8")
    (root / "scenarios").mkdir()
    return root / "scenarios"


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
odd = st.sampled_from(
    ["{topic}", "a{{b}}{postgres.second.dsn}", "", "no", "017", "null", "~", "1e3", "-", "? x", "a: b", "#", "\u2028"]
)


def escaped(text: str) -> str:
    """With its braces doubled."""
    return text.replace("{", "{{").replace("}", "}}")


templates = texts.map(escaped) | odd
set_ups = templates.map("select {}".format)
lines = st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), min_size=1, max_size=40).filter(
    lambda text: bool(text.strip()) and text.isprintable()
)
SMALL = "abcdefghijklmnopqrstuvwxyz0123456789_"


def named(first: str, rest: str, size: int) -> st.SearchStrategy[str]:
    """A name: one character of `first`, then at most `size` of `rest`."""
    return st.builds(str.__add__, st.sampled_from(first), st.text(st.sampled_from(rest), max_size=size))


identifiers = named("abcxyz_", SMALL, 20)
columns = named("aBcXyZ_", SMALL + "ABC", 10)
tables = identifiers | st.builds("{}.{}".format, identifiers, identifiers)
labels = named("az09", SMALL + ".-", 20)
settings_of_spark = named("aZ0", "aZ09_.-", 9).map("spark.{}".format)
tags = named("az", SMALL, 9)
folders = named("aZ0_", SMALL + "AZ.=-", 20)
times = st.integers(1, 7 * 24 * 3600 * 1000).map(lambda ms: ms / 1000) | st.integers(1, 999_999).map(
    lambda us: us / 1e6
)


def queries(names: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    """A query that has these columns, with any text after it, over one line or several."""
    head = f"select {', '.join(names) or '*'}"
    tail = st.sampled_from(["", " from ledger", "\n  from ledger\n", "\nfrom ledger -- all \n\n"]) | texts
    return tail.map(lambda more: f"{head} {more}")


@st.composite
def sinks(draw: st.DrawFn) -> Sink:
    """A sink in Postgres, or now and then a console."""
    if draw(st.integers(0, 9)) == 0:
        return Sink(kind="console", target="")
    key = tuple(draw(st.lists(columns, min_size=1, max_size=3, unique=True)))
    by = draw(columns)
    order = Order(by=by, follows=draw(columns), per=tuple(draw(st.lists(columns, max_size=2))))
    target = draw(tables | queries((*key, by)))
    return Sink(
        kind="postgres",
        target=target,
        part=draw(st.sampled_from(["", "second"])),
        expected=draw(queries(key)) + " -- ledger",
        key=key,
        order=draw(st.none() | st.just(order)),
        query=draw(st.none() | folders),
        folds=target.startswith("select ") and draw(st.booleans()),
    )


# Another version cannot do all that is drawn.
sparks = st.sampled_from(("", spark_versions.own()))


@st.composite
def pipelines(draw: st.DrawFn) -> Pipeline:
    """A program with settings of every kind."""
    return Pipeline(
        entry=draw(st.sampled_from([ENTRY, SPARK])),
        args=tuple(draw(st.lists(templates, max_size=4))),
        env=draw(st.dictionaries(columns, templates, max_size=3)),
        conf=draw(st.dictionaries(settings_of_spark, templates, max_size=3)),
        executors=draw(st.integers(1, 64)),
        progress=(progress := draw(st.sampled_from(PROGRESS))),
        progress_in=draw(st.sampled_from(("", "postgres.second"))) if progress.startswith("select") else "",
        interval_s=draw(times),
        spark=draw(sparks),
    )


@st.composite
def inputs(draw: st.DrawFn) -> Input:
    """A workload or a replayed file."""
    rate = draw(st.none() | st.integers(1, 10**8).map(lambda n: n / 100))
    place = draw(st.fixed_dictionaries({}, optional={"partitions": st.integers(1, 1000).filter(lambda n: n != 3)}))
    if draw(st.booleans()):
        key = draw(st.none() | columns)
        records = draw(st.integers(0, 10_000_000))
        options = {"replay": DATA} if key is None else {"replay": DATA, "key": key}
        return Input(workload="replay", records=records, rate_per_s=rate, options=options, source_options=place)
    return Input(
        workload=draw(st.sampled_from(["transactions", "access_logs"])),
        records=draw(st.integers(1, 10_000_000)),
        source_options=place,
        rate_per_s=rate,
        options=draw(
            st.fixed_dictionaries(
                {},
                optional={
                    "keys": st.integers(1, 10_000_000).filter(lambda n: n != 50),
                    "skew": st.integers(1, 1000).map(lambda n: n / 100),
                },
            )
        ),
    )


@st.composite
def triggers(draw: st.DrawFn, *, progress: str, rows: bool, records: int, within_s: float) -> Trigger:
    """A trigger that can come in such a run."""
    seen = progress == "checkpoint"
    last = min(2 * records - 1, BATCH_MAX)
    batch = draw(st.none() | st.integers(0, last)) if seen else None
    choices = ["failpoint", *["rows"] * rows]
    choices += ["records", "point", "op", *["elapsed"] * (within_s > 0.001)] * seen
    kind = draw(st.sampled_from(choices))
    if kind == "point":
        query = draw(st.none() | folders)
        of_queries = st.sampled_from([CrashPoint.BATCH_PLANNED, CrashPoint.SINK_COMMITTED, CrashPoint.BATCH_COMMITTED])
        return trigger(kind, draw(of_queries), batch=draw(st.integers(0, min(99, last))), query=query)
    if kind == "op":
        path = draw(st.sampled_from(["offsets", "commits", "state", "state/0/1"]))
        when, asked = draw(st.sampled_from(Side)), draw(st.sampled_from(OPERATIONS))
        return trigger(
            kind,
            asked,
            batch=draw(st.integers(0, min(99, last))),
            query=draw(st.none() | folders),
            path=path,
            when=when,
        )
    if kind == "failpoint":
        return trigger(kind, draw(labels), batch=draw(st.none() | st.integers(0, 99)))
    if kind == "elapsed":
        return trigger(kind, 0.001, batch=batch)
    low, high = (1, records) if kind == "records" else (0, 1000)
    return trigger(kind, draw(st.integers(low, high)), batch=batch)


@st.composite
def steps(draw: st.DrawFn, /, **world: Any) -> Step:
    """A step that can strike something in such a run. What strikes nothing is a mistake: the loader's own tests have
    it."""
    when = draw(triggers(**world))
    planned = Planned(
        records=world["records"],
        timeout_s=world["within_s"],
        countable=["sink"] if world["rows"] else [],
        checkpoint=world["progress"] == "checkpoint",
    )
    options = st.fixed_dictionaries(
        {},
        optional={
            "victim": st.sampled_from([victim.value for victim in Victim]),
            "which": st.sampled_from(["one", "all"]),
            "for_s": times.map(lambda s: s if 0.1 <= s < world["within_s"] else 0.1),
        },
    )
    given = draw(options)
    found = []
    for kind in FAULTS:
        if {"opensearch", "hdfs", "minidfs", "eventhubs"} & {*needs(kind)}:
            continue  # no drawn scenario has anything there
        own = {name: value for name, value in given.items() if name in kind.about.options.model_fields}
        for at in (when, implied(kind, when.batch, when.query)):
            if isinstance(at, Trigger) and not any(kind.refusals(fault(kind.about.name, **own), at, planned)):
                found.append(Step(when=at, do=fault(kind.about.name, **own)))
    return draw(st.sampled_from(found))


@st.composite
def expectations(draw: st.DrawFn, *, guarantee: Guarantee, ordered: bool) -> Expected:
    """What can be expected under a guarantee."""
    legal = {Kind.RECOVERED, *([] if ordered else [Kind.MISORDERED])}
    legal |= {Kind.DUPLICATED} if guarantee is Guarantee.AT_LEAST_ONCE else set()
    kinds = draw(st.lists(st.sampled_from([kind for kind in Kind if kind not in legal]), max_size=3, unique=True))
    if kinds:
        always = MISFITS.isdisjoint(kinds) and draw(st.booleans())
        return Expected(word=Word.VIOLATED, kinds=tuple(kinds), without_faults=always)
    return Expected(word=draw(st.sampled_from([Word.HELD, Word.INCONCLUSIVE, Word.UNTESTED])))


@st.composite
def swept(draw: st.DrawFn, scenario: Scenario) -> Scenario:
    """The scenario, or one for a sweep of the same pipeline."""
    names = draw(st.just(()) | st.just((ALL,)) | st.lists(lines, min_size=1, max_size=3).map(tuple))
    if not names:
        return scenario
    plain = expectations(guarantee=scenario.guarantee, ordered=any(sink.order for sink in scenario.sinks))
    each = plain.map(lambda found: replace(found, without_faults=False))
    at = draw(st.dictionaries(lines.filter(lambda name: name not in VerdictShape.model_fields), each, max_size=3))
    # A sweep is never expected to be inconclusive, and a pipeline that is wrong without faults is not swept.
    kinds = () if scenario.verdict.without_faults else scenario.verdict.kinds
    expected = Expected(at=at) if at else Expected(word=Word.VIOLATED, kinds=kinds) if kinds else Expected()
    return replace(scenario, schedule=(), crash_points=names, verdict=expected)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Any valid scenario, `path` empty."""
    pipeline, given = draw(pipelines()), draw(inputs())
    shown = tuple(draw(st.lists(sinks(), min_size=1, max_size=3)))
    if pipeline.progress.startswith("select") and all(sink.kind != "postgres" for sink in shown):
        # Nothing else says which component answers the query.
        pipeline = replace(pipeline, progress_in="postgres.second")
    # What is prepared has to be named elsewhere.
    second = pipeline.progress_in or any(sink.part for sink in shown)
    own = ["postgres", "postgres.second"] if second else ["postgres"]
    rows = any(sink.kind == "postgres" and sink.target.isidentifier() for sink in shown)
    within_s = draw(times)
    if given.records / (given.rate_per_s or math.inf) >= within_s:
        given = replace(given, rate_per_s=None)
    guarantee = draw(st.sampled_from(Guarantee))
    world = {"progress": pipeline.progress, "rows": rows, "records": given.records or 999, "within_s": within_s}
    scenario = Scenario(
        name=draw(lines),
        why=draw(texts),
        pipeline=pipeline,
        guarantee=guarantee,
        setup=draw(st.dictionaries(st.sampled_from(own), queries().map(escaped) | set_ups, max_size=2)),
        sinks=shown,
        together=len(shown) > 1 and len({sink.key for sink in shown}) == 1 and draw(st.booleans()),
        input=given,
        schedule=tuple(draw(st.lists(steps(**world), max_size=4))),
        restart=Restart(
            delay_s=draw(st.just(0.0) | times), max_restarts=draw(st.integers(0, 1000)), spark=draw(sparks)
        ),
        verdict=draw(expectations(guarantee=guarantee, ordered=any(sink.order for sink in shown))),
        timeout_s=within_s,
        quiet_period_s=draw(times),
        tags=tuple(draw(st.lists(tags, max_size=3))),
        seed=draw(st.integers(0, 2**63 - 1)),
        known=draw(st.none() | st.builds(Known, issue=lines, until=st.dates().map(str))),
    )
    return draw(swept(scenario))
