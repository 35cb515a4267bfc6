"""What no single value can tell: windows that cannot come, sinks that cannot be read, words that contradict another.

Each check reads good values only (a bad one was reported when it was read) and puts a mistake where the text is
that should change.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.load.places import missing
from harness.load.reader import Section
from harness.load.values import IDENTIFIER, QUERY
from harness.scenario import LASTING, Do, Guarantee, Input, Kind, Pipeline, Scenario, Victim, Window

KINDS = ("window", "failpoint", "records", "rows", "elapsed")
WITH_VICTIM = (Do.KILL_DRIVER, Do.CRASH_APPLICATION, Do.CRASH_MID_SINK, Do.CRASH_BEFORE_OFFSET_COMMIT)
FOR_CONSOLE = ("postgres", "database", "effect", "key", "order", "query", "view")
GENERATED_ONLY = ("workload", "keys", "skew")
SHORTEST_S = 0.1
WITHIN_S = Scenario(name="", pipeline=Pipeline(entry="")).within_s


@dataclass(frozen=True)
class Claim:
    """A scenario and the header of its pipeline: the scenario's own keys win, one by one."""

    top: Section
    header: Section

    @property
    def pipeline(self) -> Section:
        return self.top.section("pipeline")

    def owner(self, key: str) -> Section:
        """The section that says `key`: the pipeline, the scenario or the header; the scenario if none does."""
        return next((each for each in (self.pipeline, self.top, self.header) if each.has(key)), self.top)

    def get(self, key: str, default: Any = None) -> Any:
        """The value that counts, if it is good."""
        return self.owner(key).get(key, default)

    @property
    def input(self) -> Section:
        return self.owner("input").section("input")

    @property
    def sinks(self) -> list[Section]:
        return self.owner("sink").sections("sink")

    @property
    def sinks_are_known(self) -> bool:
        """False if a sink was refused: then nothing follows from the others."""
        return all("postgres" in s.values or s.get("console") for s in self.sinks) and self.owner("sink").has("sink")


def check(claim: Claim, *, root: Path) -> None:
    """Add every mistake of meaning to those of form."""
    sinks(claim)
    data(claim.input, root=root)
    pace(claim)
    outcome(claim)
    for step in claim.top.sections("schedule"):
        deed(step, lasting(claim))
        hurting(step)
        if isinstance(step.get("when"), Section) and step.get("do"):
            moment(step)
            possible(step.section("when"), step.get("do"), claim)


def sinks(claim: Claim) -> None:
    """There is something to compare, each sink by itself makes sense, and `together` has several."""
    owner = claim.owner("sink")
    if not owner.has("sink"):
        owner.wrong("sink is missing: name one here, or in the header block of the pipeline")
    elif owner.node.at(("sink",)).elements == []:
        owner.wrong("sink names none: there is nothing to compare", "sink")
    for sink in claim.sinks:
        if sink.has("postgres"):
            readable(sink)
        elif sink.has("console"):
            blind(sink)
        else:
            sink.wrong(f"{sink.path} names no place: add `postgres: TABLE` or `console: true`")
    if claim.get("together") and claim.sinks_are_known and len(claim.sinks) < 2:
        claim.owner("together").wrong("together: true needs two sinks or more", "together")
    elif claim.get("together") and len({tuple(sink.get("key", ())) for sink in claim.sinks if sink.has("key")}) > 1:
        claim.owner("together").wrong("together: true needs the same key in each sink", "together")


def blind(sink: Section) -> None:
    """A console takes no other key."""
    if sink.get("console") is False:
        sink.wrong(f"{sink.path}.console is true, or not there", "console")
    for key in FOR_CONSOLE:
        if sink.has(key):
            sink.wrong(f"{sink.path}.{key} means nothing for a console, which cannot be read back", key)


def readable(sink: Section) -> None:
    """A sink in Postgres names its rows, by columns that it and its effect have."""
    if sink.has("console"):
        sink.wrong(f"{sink.path} holds both postgres and console: make it two sinks", "console")
    if not sink.has("effect"):
        sink.wrong(f"{sink.path}.effect is missing: the SQL over `ledger` that gives the rows it should hold")
    elif (words := sink.get("effect")) and not re.search(r"\bledger\b", words, re.IGNORECASE):
        sink.wrong(f"{sink.path}.effect reads no `ledger`: then no record could be missed", "effect")
    if not sink.has("key") or sink.get("key") == []:
        one = ", and a single row has none: add one to both (`select 1 as one, ...`)" if sink.has("key") else ""
        sink.wrong(f"{sink.path}.key is missing: the columns that name a row{one}", *(["key"] if one else []))
    query, effect = names(sink.get("postgres")), names(sink.get("effect"))
    before: set[str] = set()
    for index, column in enumerate(sink.get("key", ())):
        if column in before:
            sink.wrong(f"{sink.path}.key names {column!r} twice", "key", index)
        elif effect and column.lower() not in effect:
            sink.wrong(f"{sink.path}.key {column!r} is no column of the effect", "key", index)
        elif query and column.lower() not in query:
            sink.wrong(f"{sink.path}.key {column!r} is no column of the query", "key", index)
        before.add(column)
    order = sink.section("order")
    if order.get("by") and query and order.get("by").lower() not in query:
        order.wrong(f"{order.path}.by {order.get('by')!r} is no column of the query", "by")
    if sink.get("view") and sink.get("postgres") and not QUERY.match(sink.get("postgres")):
        words = f"{sink.path}.view means nothing for a table: only a query can fold rows that are equal"
        sink.wrong(words, "view")


def names(query: str | None) -> set[str]:
    """Every word of a query: a column of it is one of them. Empty if nobody can tell (no query, or a `*` in it)."""
    if query is None or not QUERY.match(query) or "*" in query:
        return set()
    return set(re.findall(r"\w+", query.lower()))


def data(given: Section, *, root: Path) -> None:
    """The input is a workload or a file, and what it says fits."""
    if not given.has("replay"):
        if given.has("key"):
            given.wrong(f"{given.path}.key belongs to replay: a workload's own records have their key", "key")
        return
    for key in GENERATED_ONLY:
        if given.has(key):
            given.wrong(f"{given.path}.{key} means nothing beside replay: the file says what is sent", key)
    if given.get("replay") and (why := missing(given.get("replay"), root)):
        given.wrong(f"{given.path}.replay {why}", "replay")


def outcome(claim: Claim) -> None:
    """What is expected can be found."""
    expect = claim.top.section("expect")
    if expect.has("unhurt") and not expect.has("violated"):
        expect.wrong("expect.unhurt belongs to violated: {violated: [KIND], unhurt: true}", "unhurt")
    elif claim.top.get("expect") and not (expect.has("word") or expect.has("violated")):
        expect.wrong("expect says nothing: held, unknown, void or {violated: [KIND]}")
    kinds = expect.get("violated", ())
    if expect.get("violated") == []:
        expect.wrong("expect.violated names no kind of finding", "violated")
    allowed = {Guarantee.AT_LEAST_ONCE: Kind.DUPLICATED}
    if not claim.get("together"):
        allowed[Guarantee.AT_MOST_ONCE] = Kind.LOST
    guarantee = claim.top.get("guarantee", Guarantee.EXACTLY_ONCE)
    before: set[Kind] = set()
    for index, kind in enumerate(kinds):
        if kind in before:
            expect.wrong(f"expect.violated names {kind} twice", "violated", index)
        elif kind is allowed.get(guarantee) and (claim.top.get("guarantee") or not claim.top.has("guarantee")):
            expect.wrong(f"{kind} is no violation of {guarantee}", "violated", index)
        elif kind is Kind.MISORDERED and claim.sinks_are_known and not any(s.has("order") for s in claim.sinks):
            expect.wrong("misordered is never found: no sink has an order", "violated", index)
        before.add(kind)


def deed(step: Section, within: float) -> None:
    """The extras of a fault belong to it."""
    do = step.get("do")
    if do is None:
        return
    if step.has("victim") and do not in WITH_VICTIM:
        step.wrong(f"{step.path}.victim means nothing for {do}", "victim")
    if step.has("which") and do is not Do.KILL_EXECUTOR:
        step.wrong(f"{step.path}.which means nothing for {do}: it picks among executors", "which")
    if step.has("for") and do not in LASTING:
        step.wrong(f"{step.path}.for means nothing for {do}: only a pause or a cut lasts", "for")
    if do in LASTING and not step.has("for"):
        step.wrong(f"{step.path}.for is missing: how long it lasts, e.g. 3s")
    if do in LASTING and step.get("for", SHORTEST_S) < SHORTEST_S:
        step.wrong(f"{step.path}.for is too short to hurt anyone: {SHORTEST_S:g}s at least", "for")
    if do in LASTING and step.get("for", 0.0) >= within:
        step.wrong(f"{step.path}.for never ends: the run ends within {within:g}s", "for")


def moment(step: Section) -> None:
    """One kind of trigger, and the one that sugar asks for."""
    when, do = step.section("when"), step.get("do")
    given = [key for key in KINDS if when.has(key)]
    if do is Do.CRASH_MID_SINK and "rows" not in given:
        when.wrong(f"crash mid-sink needs {when.path}.rows: after how many rows of the sink")
    elif do is Do.CRASH_BEFORE_OFFSET_COMMIT and given not in ([], ["failpoint"]):
        bad = next(key for key in given if key != "failpoint")
        when.wrong(f"crash before offset commit takes a batch or a failpoint, not {bad}", bad)
    elif do is Do.CRASH_BEFORE_OFFSET_COMMIT and not given:
        if not when.has("batch"):
            when.wrong(f"crash before offset commit needs {when.path}.batch or {when.path}.failpoint")
    elif len(given) != 1:
        words = f"holds {' and '.join(given)}: one step has one trigger" if given else f"is one of {', '.join(KINDS)}"
        when.wrong(f"{when.path} {words}", *given[1:2])
    elif given == ["window"] and not when.has("batch"):
        when.wrong(f"{when.path}.batch is missing: the window of which batch?")
    other = next((key for key in given if key in ("failpoint", "rows")), "")
    if when.has("query") and other:
        words = f"{when.path}.query means nothing for {other}: the pipeline's own code, or the table, says whose it is"
        when.wrong(words, "query")


def hurting(step: Section) -> None:
    """The fault hurts somebody at that moment."""
    when, do = step.section("when"), step.get("do")
    window = Window.SINK_COMMITTED if do is Do.CRASH_BEFORE_OFFSET_COMMIT else when.get("window")
    if do is Do.KILL_EXECUTOR and window in (Window.SINK_COMMITTED, Window.OFFSETS_COMMITTED):
        when.wrong(f"at {window} no executor has anything in hand: kill it at rows", "window")
    if step.get("victim") is Victim.PYTHON and window is Window.SINK_COMMITTED:
        step.wrong(f"{step.path}.victim: the JVM lives on for a while and commits the offsets all the same", "victim")


def possible(when: Section, do: Do, claim: Claim) -> None:
    """The moment can come in this run."""
    if claim.owner("frontier").has("frontier"):
        watched(when, do, claim.get("frontier"))
    if (asked := when.get("records")) and asked > (records := limit(claim)):
        when.wrong(f"{when.path}.records never comes: only {records:g} records are sent", "records")
    within = lasting(claim)
    if (elapsed := when.get("elapsed")) and elapsed >= within:
        when.wrong(f"{when.path}.elapsed never comes: the run ends within {within:g}s", "elapsed")
    if when.has("rows") and claim.sinks_are_known and not tables(claim.sinks):
        when.wrong(f"{when.path}.rows cannot be counted: no sink is a Postgres table named without a schema", "rows")


def watched(when: Section, do: Do, frontier: str | None) -> None:
    """Batches and windows are seen in a checkpoint only."""
    if frontier in (None, "checkpoint"):
        return
    saw = "frontier is not checkpoint"
    if when.has("window"):
        when.wrong(f"{when.path}.window never comes: {saw}, so none is watched; use a failpoint or rows", "window")
    elif do is Do.CRASH_BEFORE_OFFSET_COMMIT and not when.has("failpoint"):
        words = f"crash before offset commit needs {when.path}.failpoint: {saw}, so only the pipeline's own code knows"
        when.wrong(words)
    elif (key := "records" if when.has("records") else "elapsed") and when.has(key):
        words = f"{when.path}.{key} may find nothing in hand: {saw}, so batches are not seen; use a failpoint or rows"
        when.wrong(words, key)
    elif when.has("batch") and not when.has("failpoint"):
        when.wrong(f"{when.path}.batch cannot be told: {saw}, so batches are not seen; leave it out", "batch")


def tables(sinks: Iterable[Section]) -> bool:
    """True if rows can be counted in one of these sinks."""
    return any(re.fullmatch(IDENTIFIER, sink.get("postgres", "")) for sink in sinks)


def lasting(claim: Claim) -> float:
    """The seconds that the run may take; infinity if the file says them wrongly."""
    return float(claim.top.get("within", math.inf if claim.top.has("within") else WITHIN_S))


def pace(claim: Claim) -> None:
    """All records can be sent within the run."""
    rate, within, records = claim.input.get("rate"), lasting(claim), limit(claim)
    if rate and math.isfinite(records) and records / rate >= within:
        words = f"{records:g} records take {records / rate:g}s, and the run ends within {within:g}s"
        claim.input.wrong(f"input.rate is too slow: {words}", "rate")


def limit(claim: Claim) -> float:
    """How many records are sent; infinity if the file does not say it, or says it wrongly."""
    owner = claim.owner("input")
    if claim.input.has("records") or claim.input.has("replay") or (owner.has("input") and "input" not in owner.values):
        return float(claim.input.get("records", math.inf))
    return Input().records
