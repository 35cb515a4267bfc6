"""From sections without mistakes to the nouns of `harness.scenario`; here the sugar of the four failures is opened."""

from __future__ import annotations

from typing import Any

from harness.load.meaning import Claim
from harness.load.reader import Section
from harness.scenario import (
    Do,
    Expect,
    Fault,
    Input,
    Order,
    Pipeline,
    Restart,
    Scenario,
    Sink,
    Step,
    Trigger,
    Victim,
    When,
    Window,
    Word,
)

OPENED = {Do.CRASH_MID_SINK: Do.CRASH_APPLICATION, Do.CRASH_BEFORE_OFFSET_COMMIT: Do.KILL_DRIVER}
"""What the sugar words do."""


def scenario(claim: Claim, *, path: str) -> Scenario:
    """The scenario, defaults of the header filled in."""
    top = claim.top
    setup = claim.owner("setup").section("setup").values
    return Scenario(
        pipeline=pipeline(claim),
        setup={"main" if key == "postgres" else "second": sql for key, sql in setup.items()},
        sinks=tuple(sink(each) for each in claim.sinks),
        input=given(claim.input),
        schedule=tuple(step(each) for each in top.sections("schedule")),
        restart=Restart(**named(top.section("restart"), {"after": "delay_s", "at most": "times"})),
        expect=expect(top.section("expect")),
        tags=tuple(top.get("tags", ())),
        path=path,
        **named(top, {"name": "name", "why": "why", "guarantee": "guarantee", "within": "within_s", "seed": "seed"}),
        **{name: claim.get(key) for key, name in LAYERED.items() if claim.get(key) is not None},
    )


LAYERED = {"together": "together", "settle": "settle_s"}


def named(section: Section, names: dict[str, str]) -> dict[str, Any]:
    """The values that a section has, under the nouns' own names; the nouns know the defaults of the rest."""
    return {name: section.values[key] for key, name in names.items() if key in section.values}


def pipeline(claim: Claim) -> Pipeline:
    """The program under test."""
    known = {key: claim.get(key) for key in ("env", "conf", "executors", "frontier") if claim.get(key) is not None}
    args = tuple(claim.get("args", ()))
    return Pipeline(entry=claim.pipeline.get("entry"), args=args, interval_s=claim.get("interval"), **known)


def sink(section: Section) -> Sink:
    """One sink."""
    if not section.has("postgres"):
        return Sink(backend="console", target="console")
    order = section.section("order").values
    return Sink(
        backend="postgres",
        target=section.get("postgres"),
        database=str(section.get("database", "main")),
        effect=section.get("effect"),
        key=tuple(section.get("key")),
        order=Order(by=order["by"], follows=order["follows"], per=tuple(order["per"])) if order else None,
        query=section.get("query"),
        folds=section.has("view"),
    )


def given(section: Section) -> Input:
    """The input. A replay without a number sends the whole file, which is written as 0 records."""
    names = {key: key for key in ("replay", "records", "keys", "partitions", "skew", "key")}
    values = named(section, names | {"rate": "rate_per_s"})
    if section.has("replay"):
        return Input(workload="replay", **({"records": 0} | values))
    return Input(workload=str(section.get("workload", Input().workload)), **values)


def step(section: Section) -> Step:
    """One step: `name` keeps the words of the file, trigger and fault are what they stand for."""
    do: Do = section.get("do")
    victim = section.get("victim", Victim.TREE)
    fault = Fault(
        kind=OPENED.get(do, do), victim=victim, which=str(section.get("which", "one")), for_s=section.get("for")
    )
    name = do.value if victim is Victim.TREE else f"{do.value} ({victim.value})"
    return Step(when=trigger(section.section("when")), do=fault, name=name)


def trigger(when: Section) -> Trigger:
    """The trigger. A batch alone is the sugar of `crash before offset commit`."""
    batch, query = when.get("batch"), when.get("query")
    if when.has("failpoint"):
        return Trigger(kind=When.FAILPOINT, failpoint=when.get("failpoint"), batch=batch)
    if when.has("elapsed"):
        return Trigger(kind=When.ELAPSED, elapsed_s=when.get("elapsed"), batch=batch, query=query)
    for kind in (When.RECORDS, When.ROWS):
        if when.has(kind.value):
            return Trigger(kind=kind, count=when.get(kind.value), batch=batch, query=query)
    return Trigger(kind=When.WINDOW, window=when.get("window", Window.SINK_COMMITTED), batch=batch, query=query)


def expect(section: Section) -> Expect:
    """What the verdict should be."""
    if section.has("violated"):
        kinds = tuple(section.get("violated"))
        return Expect(word=Word.VIOLATED, kinds=kinds, unhurt=bool(section.get("unhurt")))
    return Expect(word=section.get("word", Word.HELD))
