"""The verdict in plain sentences: what is wrong with how many rows, what the fault did, what the next attempt did.

Pure. Each sentence rests on something in the run folder, named where it is made; where nothing shows the cause, a
sentence says so. No verdict depends on what stands here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from harness.judge.exposure import COMMITTED, EARLY, PLANNED, RECEIVED, WRITING, WRITTEN
from harness.report.causes.groups import Group, cut
from harness.report.causes.sentences import listed, sentences, short
from harness.report.causes.shares import shares, whole_or_none
from harness.report.escape import plural, visible
from harness.report.timeline.counts import Counts
from harness.scenario import Exposure, Guarantee, Harm, Impact, Kind, StepOutcome, Verdict, Word
from harness.snapshot import Progressed, Query

MOST_CAUSES = 3
"""Causes that the verdict names; the page lists the others below it."""
DONE = {
    Impact.DRIVER_KILLED: "the driver was killed",
    Impact.DRIVER_STOPPED: "the driver was asked to stop",
    Impact.DRIVER_PAUSED: "the driver was paused",
    Impact.DRIVER_CUT_OFF: "the driver was cut off from the network",
    Impact.EXECUTOR_KILLED: "an executor was killed",
    Impact.EXECUTORS_KILLED: "all executors were killed",
}
HELD = {
    Guarantee.EXACTLY_ONCE: "exactly once",
    Guarantee.AT_LEAST_ONCE: "at least once",
    Guarantee.AT_MOST_ONCE: "at most once",
}
WRONG = {
    Kind.CORRUPTED: "differ from what was sent",
    Kind.UNEXPECTED: "belong to no record",
    Kind.MISORDERED: "are out of order",
    Kind.WRONG_AGGREGATE: "are wrong",
    Kind.LOST: "are missing",
}
STOOD = {
    PLANNED: "{what} was planned, and nothing of it was in the sink, when {did} (fault {number}).",
    WRITING: "{what} was in the sink in part, its offsets not committed, when {did} (fault {number}).",
    WRITTEN: "{what} was in the sink; {did} before its offsets were committed (fault {number}).",
    RECEIVED: "what a receiver had was in no batch when {did} (fault {number}).",
    COMMITTED: "every planned batch was committed when {did} (fault {number}).",
    EARLY: "the offsets of {what} were saved, and the sink did not have it, when {did} (fault {number}).",
}
"""By what the snapshot showed."""
EXPOSED = {
    Harm.REPETITION: "After {}, records ran again: a pipeline that appends its rows would hold them twice.",
    Harm.LOSS: "At {}, records were not whole in the sink: a pipeline that skips them would have lost them.",
}
SHOWS = "{} did it: baseline runs do not show it."


@dataclass(frozen=True, kw_only=True)
class Case:
    """What the sentences are made from. `labels` has the number of the step that findings name so; a label that several
    steps share is left out."""

    verdict: Verdict
    groups: Sequence[Group]
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE
    impacts: Mapping[int, Impact] = field(default_factory=dict)
    labels: Mapping[str, int] = field(default_factory=dict)
    progressed: Progressed = field(default_factory=Progressed)
    counts: Counts | None = None


def labels(steps: Sequence[StepOutcome]) -> dict[str, int]:
    """Return how findings name each injection (as the judge's injections do), by number of its step."""
    out: dict[str, int] = {}
    twice: set[str] = set()
    for number, step in enumerate(steps, 1):
        batch = "" if step.batch is None else f" of batch {step.batch}"
        for of in dict.fromkeys(("", f" of {step.checkpoint}" if batch and step.checkpoint else "")):
            where = f" at {step.point}{batch}{of}" if step.point else f"{batch}{of}"
            label = f"{step.name}{where}" + (f", attempt {step.attempt}" if step.attempt else "")
            if label in out and out[label] != number:
                twice.add(label)
            out[label] = number
    return {label: number for label, number in out.items() if label not in twice}


def headline(case: Case) -> list[str]:
    """Return the verdict as sentences, without its word, which the page puts before the first one."""
    verdict = case.verdict
    if verdict.word is Word.HELD:
        return list(_held(case))
    shown = [group for group in case.groups if group.kind is not Kind.RECOVERED]
    if verdict.word is Word.VIOLATED and shown:
        return list(_violated(case, shown))
    why = [text for reason in verdict.reasons[:1] for text in sentences(reason)[:2]]
    return [OPEN.get(verdict.word, "The reasons are below."), *why]


OPEN = {
    Word.UNTESTED: "Nothing was tested.",
    Word.INCONCLUSIVE: "The run could not tell.",
    Word.ERROR: "The run reached no verdict.",
    Word.VIOLATED: "The guarantee is disproved.",
}


def _held(case: Case) -> Iterator[str]:
    verdict, count = case.verdict, case.verdict.counts.get("records")
    # Of records that `expected` leaves out no row is.
    which = f"Each row that is expected of the {count:,} records" if count else "Each expected row"
    yield f"{which} is in its sink {HELD[case.guarantee]}, in this one run."
    injected = [number for number, step in enumerate(verdict.steps, 1) if step.injected]
    if injected:
        did = (
            "fault was injected at its crash point"
            if len(injected) == 1
            else "faults were injected at their crash points"
        )
        yield f"{len(injected)} of {len(verdict.steps)} {did}."
    allowed = [group for group in case.groups if group.kind is not Kind.RECOVERED]
    for kind, sink in dict.fromkeys((group.kind, group.sink) for group in allowed):
        mine = [group for group in allowed if (group.kind, group.sink) == (kind, sink)]
        yield f"{_capital(_wrong(case, mine))}, which the guarantee allows."
    for harm in Harm:
        own = [exposure for exposure in verdict.exposures if exposure.harm is harm and exposure.counts]
        if shown := sorted({exposure.step for exposure in own if exposure.would_show}):
            yield EXPOSED[harm].format(_faults(shown[:8]))
        if came := sorted({exposure.step for exposure in own if exposure.came}):
            yield f"At {_faults(came[:8])}, {harm} happened, and the sink's reader dropped each row of it."


def _violated(case: Case, shown: Sequence[Group]) -> Iterator[str]:
    for kind, sink in dict.fromkeys((group.kind, group.sink) for group in shown):
        mine = [group for group in shown if (group.kind, group.sink) == (kind, sink)]
        yield f"{_capital(_wrong(case, mine))}."
        if kept := first_of(case, kind, mine[0].position):
            yield f"The first {kept:,} were traced to a cause; the others were only counted."
        for group in mine[:MOST_CAUSES]:
            first, *rest = cause(case, group)
            yield f"{len(group.findings):,} of them: {first}" if len(mine) > 1 else first
            yield from rest
        if len(mine) > MOST_CAUSES:
            yield f"{plural(len(mine) - MOST_CAUSES, 'more cause')} below."
    if set(case.verdict.kinds()) == {Kind.DUPLICATED.value} and case.progressed.end and case.progressed.caught_up:
        yield "No row is missing, and none is wrong."


def _wrong(case: Case, mine: Sequence[Group]) -> str:
    """`104 of 600 rows in postgres payments are there twice`; counts are the verdict's own."""
    kind, sink = mine[0].kind, short(mine[0].sink)
    kept = sum(len(group.findings) for group in mine)
    many, is_cut = _count(case, mine), first_of(case, kind, mine[0].position) > 0
    if kind in (Kind.LOST, Kind.UNEXPECTED) and not is_cut:
        many = sum(group.copies for group in mine)
    if kind is Kind.STALLED:
        return "the pipeline stalled"
    expected = case.verdict.counts.get("expected_rows") if len(_positions(case)) == 1 else None
    what = "total" if kind is Kind.WRONG_AGGREGATE else "row"
    if kind is Kind.DUPLICATED:
        copies = sum(group.copies for group in mine)
        ending = "there more than once" + ("" if is_cut else f", {plural(copies, 'row')} too many")
        single = all(finding.copies == len(finding.expected) == 1 for group in mine for finding in group.findings)
        ending = "there twice" if single and not is_cut else ending
        ending = f"{'is' if many == 1 else 'are'} {ending}"
    else:
        ending = _agreeing(WRONG.get(kind, f"are {kind.value}"), many)
    of = f" of {expected:,}" if expected and expected >= many and kind is not Kind.UNEXPECTED else ""
    noun = f"{what}{'' if (expected or many) == 1 and (not of or expected == 1) else 's'}"
    least = "at least " if is_cut and many == kept else ""
    return f"{least}{many:,}{of} {noun} in {sink} {ending}"


def _count(case: Case, mine: Sequence[Group]) -> int:
    """Return how many findings there are; of those beyond what a verdict keeps it has one count, over all sinks."""
    kept = sum(len(group.findings) for group in mine)
    alone = len(_kept(case, mine[0].kind)) == 1
    return case.verdict.kinds().get(mine[0].kind.value, kept) if alone else kept


def first_of(case: Case, kind: Kind, position: int) -> int:
    """Return how many findings of a kind in a sink the verdict keeps, where these may be only the first ones; else 0. A
    verdict keeps as many in each sink: so a sink that has fewer than another one has them all."""
    kept = _kept(case, kind)
    return kept[position] if kind in cut(case.verdict) and kept.get(position) == max(kept.values()) else 0


def _kept(case: Case, kind: Kind) -> dict[int, int]:
    """Return by sink, how many findings of a kind the verdict keeps."""
    out: dict[int, int] = {}
    for group in case.groups:
        if group.kind is kind:
            out[group.position] = out.get(group.position, 0) + len(group.findings)
    return out


def _positions(case: Case) -> set[int]:
    """Return the sinks that the verdict speaks of at all."""
    return {group.position for group in case.groups} | {exposure.position for exposure in case.verdict.exposures}


def _agreeing(words: str, count: int) -> str:
    singular = {"are": "is", "differ": "differs", "belong": "belongs"}
    first, _, rest = words.partition(" ")
    return f"{singular.get(first, first)} {rest}" if count == 1 else words


def cause(case: Case, group: Group) -> list[str]:
    """Return what is known of why, a sentence each."""
    if group.without_faults:
        return ["Every baseline run shows it too, so no fault caused it."]
    if group.kind is Kind.STALLED:
        return [text for finding in group.findings[:1] for text in sentences(finding.note)]
    numbers = [case.labels[fault] for fault in group.faults if fault in case.labels]
    if numbers and len(numbers) == len(group.faults):
        out = [text for number in numbers[:2] for text in _of_step(case, group, number)]
        if parts := whole_or_none(group, shares(case.verdict, group, case.progressed, case.counts)):
            out.append(parts)
        return [*out, SHOWS.format(_capital(_faults(numbers)))]
    if group.faults:
        return [f"What did it: {visible(group.faults[0], 120)}."]
    if group.fits:
        fits = [case.labels[fault] for fault in group.fits if fault in case.labels]
        which = _faults(fits[:4]).capitalize() if fits else "A fault"
        return [f"{which} may explain it; the evidence does not tell."]
    return ["Nothing in the run folder shows the cause."]


def _of_step(case: Case, group: Group, number: int) -> Iterator[str]:
    """Yield what the fault of a step did, and what came after."""
    step = case.verdict.steps[number - 1]
    did = DONE.get(case.impacts.get(number, Impact.NONE), f"“{visible(step.name, 60)}” was injected")
    mine = [s for s in case.verdict.exposures if s.step == number and s.position == group.position]
    points = {exposure.point for exposure in mine}
    batch = next((exposure.batch for exposure in mine if exposure.batch is not None), None)
    if len(points) == 1:
        # The point is what the snapshot of the sink and the checkpoint showed, not what was asked for.
        text = STOOD.get(points.pop(), "")
        what = "what was in flight" if batch is None else f"batch {batch}"
        if text:
            yield _capital(text.format(what=what, did=did, number=number))
            yield from _after(case, group, step, mine)
            return
    where = f" at {visible(step.point, 60)}" if step.point else ""
    of = "" if step.batch is None else f" of batch {step.batch}"
    yield f"{_capital(did)}{where}{of} (fault {number})."
    yield from _after(case, group, step, mine)


def _after(case: Case, group: Group, step: StepOutcome, exposures: Sequence[Exposure]) -> Iterator[str]:
    """Yield what the next attempt did with the batch, as the watch of the checkpoint saw it."""
    if any(exposure.harm is Harm.REPETITION and exposure.point == COMMITTED for exposure in exposures):
        yield "The next attempt began before records that were committed already."
        return
    query = _query(case, step)
    batch = next((exposure.batch for exposure in exposures if exposure.batch is not None), step.batch)
    if query is None or batch is None or not step.attempt:
        return
    workers = next((each.attempts for each in query.batches if each.batch == batch), ())
    again = [attempt for attempt in workers if attempt > step.attempt]
    later = [attempt for attempt in sorted(query.first) if attempt > step.attempt]
    if again and group.kind is Kind.DUPLICATED:
        yield f"Attempt {again[0]} ran batch {batch} again, and wrote it."
    elif again:
        yield f"Attempt {again[0]} ran batch {batch} again."
    elif later and query.first[later[0]] > batch:
        yield f"Attempt {later[0]} went on with batch {query.first[later[0]]}; none was seen at batch {batch} again."


def _query(case: Case, step: StepOutcome) -> Query | None:
    """Return the query that a step struck; None if its checkpoint was made again, so that batches have no one
    meaning."""
    known = [query for query in case.progressed.queries if query.checkpoint == step.checkpoint]
    return known[0] if len(known) == 1 else None


def _faults(numbers: Sequence[int]) -> str:
    """`fault 1`, `faults 1 and 2`."""
    return f"fault{'' if len(numbers) == 1 else 's'} {listed([str(number) for number in numbers])}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
