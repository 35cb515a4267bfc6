"""The tracks of a timeline: phases, producer, driver, executors, batches of each query, and the servers of the run.

Pure. A track is a name, a remark and shapes; its own top is 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from harness.report.escape import plural, visible
from harness.report.timeline import shapes
from harness.report.timeline.from_history import Attempt, Happened, Work
from harness.report.timeline.shapes import Mark, Scale, Shape, Way
from harness.scenario import Impact
from harness.scenario.impact import ENDS_EXECUTOR

TOP, HEIGHT, TRACK = 18, 14, 40
BAR = (TOP, HEIGHT)
MIDDLE = TOP + HEIGHT // 2
BASE = TOP + HEIGHT - 3
"""Where the letters of a label in a bar stand."""
MOST_BATCHES = 150
"""Batches of one query that are drawn one by one; of more, those that were committed at once are a tick each."""
MOST_QUERIES = 6


@dataclass(frozen=True, kw_only=True)
class Track:
    """One track."""

    name: str
    remark: str = ""
    shapes: list[Shape] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What takes part, by plan and verdict: what each step's fault does to the driver, how many executors were asked
    for; the components of source and sinks (`kafka`, `postgres`); which batches findings name."""

    impacts: Mapping[int, Impact] = field(default_factory=dict)
    executors: int = 1
    servers: Sequence[tuple[str, str]] = ()
    """(component, what it is here: `source`, `sink`)."""
    batches: frozenset[int] = frozenset()
    saved: str = ""
    """What a pipeline that manages its own offsets saved, in place of batches."""


def tracks(run: Happened, setting: Setting, scale: Scale) -> Iterator[Track]:
    """Yield every track, from top to bottom."""
    yield _phases(run, scale)
    yield _producer(run, scale)
    yield _driver(run, setting, scale)
    yield _executors(run, setting, scale)
    for query in run.queries[:MOST_QUERIES]:
        several = f" of {visible(query, 40)}" if len(run.queries) > 1 else ""
        yield _batches(run, setting, scale, query, several)
    for component, role in setting.servers:
        yield _server(run, scale, component, role)


def _phases(run: Happened, scale: Scale) -> Track:
    out: list[Shape] = []
    for place, phase in enumerate(run.phases):
        kind = "phase odd" if place % 2 else "phase"
        title = f"{phase.name}: {phase.begin:.2f} to {phase.end:.2f} s"
        out.append(shapes.box(kind, scale, (phase.begin, phase.end), BAR, title))
        out += shapes.fitting(scale, (phase.begin, phase.end), BASE, phase.name)
    return Track(name="Phase of the run", shapes=out)


def _producer(run: Happened, scale: Scale) -> Track:
    if not run.sent:
        return Track(name="Producer", remark="no send was recorded")
    (begin, _), (end, count) = run.sent[0], run.sent[-1]
    title = f"{count:,} records sent; counted from {begin:.2f} to {end:.2f} s"
    out: list[Shape] = [shapes.box("producer", scale, (begin, end), BAR, title)]
    path = shapes.combs([seconds for seconds, _ in run.sent], scale, HEIGHT)
    out.append(Way(kind="tick", y=TOP, height=HEIGHT, d=path))
    return Track(name="Producer", remark=f"{count:,} records sent; a tick for each count", shapes=out)


def _driver(run: Happened, setting: Setting, scale: Scale) -> Track:
    out: list[Shape] = []
    for attempt in run.attempts:
        end = run.end if attempt.end is None else attempt.end
        title = f"attempt {attempt.number}: launched at {attempt.begin:.2f} s, {_ended(attempt)}"
        out.append(shapes.box("driver", scale, (attempt.begin, end), BAR, title))
        text = f"attempt {attempt.number}"
        whole = shapes.fitting(scale, (attempt.begin, end), BASE, text)
        out += whole or shapes.fitting(scale, (attempt.begin, end), BASE, str(attempt.number))
        if attempt.end is not None:
            out.append(Mark(kind="death", sign="cross", x=scale.x(attempt.end), y=MIDDLE, title=title))
    return Track(name="Driver", remark=_count(run.attempts), shapes=out)


def _ended(attempt: Attempt) -> str:
    if attempt.end is None:
        return "alive until the sinks were read"
    by = "by a fault" if attempt.scheduled else "by no fault"
    status = "" if attempt.status is None else f", exit status {attempt.status}"
    return f"dead at {attempt.end:.2f} s, {by}{status}"


def _count(attempts: Sequence[Attempt]) -> str:
    many = plural(len(attempts), "attempt")
    return f"{many}; a cross is a death" if any(each.end is not None for each in attempts) else many


def _executors(run: Happened, setting: Setting, scale: Scale) -> Track:
    out: list[Shape] = []
    for attempt in run.attempts:
        end = run.end if attempt.end is None else attempt.end
        out.append(shapes.level("unrecorded", scale, (attempt.begin, end), MIDDLE))
    injected = [
        fault for fault in run.faults if setting.impacts.get(fault.number) in ENDS_EXECUTOR and fault.step.injected
    ]
    for fault in injected:
        title = f"fault {fault.number}: {fault.step.name}"
        out.append(Mark(kind="death", sign="cross", x=scale.x(fault.begin), y=MIDDLE, title=title))
    return Track(
        name="Executors", remark=f"{plural(setting.executors, 'executor')} asked for; dotted: not recorded", shapes=out
    )


def _batches(run: Happened, setting: Setting, scale: Scale, query: str, several: str) -> Track:
    works = [work for work in run.works if work.query == query]
    begins = {attempt.number: attempt.begin for attempt in run.attempts}
    many = len(works) > MOST_BATCHES
    struck_batches = {fault.step.batch for fault in run.faults}
    shown = [
        work
        for work in works
        if not many or work.committed is None or work.batch in struck_batches or work.batch in setting.batches
    ][:MOST_BATCHES]
    out: list[Shape] = []
    if many:
        quiet = [work.committed for work in works if work.committed is not None]
        out.append(Way(kind="tick", y=TOP, height=HEIGHT, d=shapes.combs(quiet, scale, HEIGHT)))
    for work in shown:
        out += _work(work, begins.get(work.attempt, 0.0), run.end, scale)
    remark = "outlined: planned; filled: in the sink, being committed; cross: cut off by a death"
    if many:
        remark = f"{len(works):,} in all, a tick for each commit; {remark}"
    return Track(name=f"Micro-batches{several}", remark=remark, shapes=out)


def _work(work: Work, launched: float, last: float, scale: Scale) -> Iterator[Shape]:
    """Yield a batch from its plan to its commit, split at its crash points."""
    title = _title(work)
    end = next((each for each in (work.committed, work.ended) if each is not None), last)
    begin = work.planned
    if begin is None:
        begin = next((each for each in (work.in_sink, work.committed) if each is not None), end)
        yield shapes.level("unrecorded", scale, (min(launched, begin), begin), MIDDLE, title)
    split = end if work.in_sink is None else max(begin, work.in_sink)
    yield shapes.box("planned", scale, (begin, split), BAR, title)
    if work.in_sink is not None:
        yield shapes.box("sunk", scale, (split, end), BAR, title)
    if work.planned is None:
        yield from shapes.fitting(scale, (min(launched, begin), begin), BASE, f"{work.batch} again", kind="in over")
    if work.committed is not None:
        yield shapes.upright("commit", scale, work.committed, BAR, title)
    elif work.ended is not None:
        yield Mark(kind="death", sign="cross", x=scale.x(work.ended), y=MIDDLE, title=title)
    yield from shapes.fitting(scale, (begin, max(split, end)), BASE, str(work.batch))


def _title(work: Work) -> str:
    known = (("planned", work.planned), ("in the sink", work.in_sink), ("committed", work.committed))
    times = [f"{words} at {seconds:.2f} s" for words, seconds in known if seconds is not None]
    times += [f"cut off at {work.ended:.2f} s"] if work.ended is not None else []
    return f"batch {work.batch}, attempt {work.attempt}: {', '.join(times)}"


def _server(run: Happened, scale: Scale, component: str, role: str) -> Track:
    out: list[Shape] = [shapes.level("unrecorded", scale, (0.0, run.end), MIDDLE)]
    away = [fault for fault in run.faults if fault.step.injected and component in fault.step.evidence.signalled]
    for fault in away:
        title = f"fault {fault.number}: {fault.step.name}, {fault.begin:.2f} to {fault.end:.2f} s"
        out.append(shapes.box("away", scale, (fault.begin, fault.end), BAR, title))
    numbers = ", ".join(f"fault {fault.number}" for fault in away)
    remark = f"{role}; struck by {numbers}" if away else f"{role}; no fault struck it"
    return Track(name=visible(component, 40), remark=remark, shapes=out)
