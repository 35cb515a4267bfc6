"""One sink: its rows compared with the expected ones, what each step exposed there, and what explains each finding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from harness.checkers.compare import by_column, key_of
from harness.checkers.origin import attribute, explanations, together
from harness.checkers.wrong_total import Option
from harness.errors import UsageError
from harness.judge.cause import Causes, Explained, Repaired, repaired
from harness.judge.certain import certainly, keyed
from harness.judge.examine import Examined, examine
from harness.judge.exposure import Exposed, exposed
from harness.judge.injections import Injection, Readings, numbered
from harness.judge.mismatch import mismatched
from harness.judge.overlapping import overlapping
from harness.judge.progress_at_injection import feeders, query_progress, taken
from harness.judge.read_folder import Run
from harness.judge.readings.in_flight import feeding
from harness.judge.readings.read_at import state_at
from harness.judge.readings.scale import Scale
from harness.judge.windows import by_writing, unclear
from harness.ledger import Ledger, Source
from harness.scenario import Finding, Kind
from harness.sinks.names import sink_names
from harness.sinks.table import load

VAGUE = (
    "a row of {} does not tell what became of one record: a record that comes again, or not at all, may change rows of "
    "others. Let the expected rows be one SELECT from `ledger`, with at most a GROUP BY"
)


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What may have made a finding. `ways` are the steps that explain it, `candidates` those that may have done it,
    `options` the whole batches that come to the same total."""

    ways: Sequence[Explained] = ()
    candidates: Sequence[Exposed] = ()
    options: Sequence[Option] = ()


@dataclass(kw_only=True)
class Compared:
    """One sink. `exposed` is what each step exposed there, `ended` what it held after attempts that no step had ended,
    as steps that struck nothing. `explanations` are by the place of a finding."""

    examined: Examined
    exposed: list[Exposed] = field(default_factory=list)
    ended: list[Exposed] = field(default_factory=list)
    explanations: dict[int, Explanation] = field(default_factory=dict)


def compared(run: Run, readings: Readings, *, baseline: bool = False) -> list[Compared]:
    """Return each sink compared. Of a `baseline` run only the findings are wanted. Raises UsageError for expected rows
    that are no query, HarnessError for damage."""
    with Ledger(run.ledger, where=f"scenario `{run.scenario.name}`") as ledger:
        caught_up = run.caught_up and run.reached and ledger.size(committed=True) == ledger.size()
        out = [
            _sink(run, readings, ledger, place, caught_up=caught_up)
            if sink.watermark is None
            else _windows(run, readings, run.ledger, place, caught_up=caught_up, baseline=baseline)
            for place, sink in enumerate(run.scenario.sinks)
        ]
    if run.scenario.together:
        holders, names = {each.examined.position: each.examined.holds for each in out}, sink_names(run.scenario.sinks)
        for each in out:
            each.examined.findings = together(each.examined.findings, holders, names=names)
    return out


def _sink(run: Run, readings: Readings, ledger: Ledger, place: int, *, caught_up: bool) -> Compared:
    name, numbering = sink_names(run.scenario.sinks)[place], numbered(run.progressed)
    sink, table = run.scenario.sinks[place], load(run.folder, place)
    examined = examine(ledger, sink, table, caught_up=caught_up, short=run.short, position=place, name=name)
    clues = examined.clues(ledger)
    options = explanations(examined.findings, clues.totals)
    found = attribute(examined.findings, clues, options)
    examined.findings = [replace(each, checkpoint=numbering) if each.batches else each for each in found]
    by_place = {place: Explanation(options=found) for place, found in enumerate(options)}
    return _exposed(run, Compared(examined=examined, explanations=by_place), ledger, readings)


def _windows(run: Run, readings: Readings, source: Source, place: int, *, caught_up: bool, baseline: bool) -> Compared:
    """Return a sink of windows, by the batches that wrote them."""
    sink, name = run.scenario.sinks[place], sink_names(run.scenario.sinks)[place]
    if why := unclear(run, sink):
        untested = Examined(sink=sink, name=name, position=place, caught_up=caught_up)
        untested.reasons.untested.append(why)
        return Compared(examined=untested)
    order = by_writing(run, readings, source, place)
    with Ledger(order.source, where=f"scenario `{run.scenario.name}`") as written:
        # What a batch has yet to write may be missing, or be there already: that is no finding.
        known = caught_up and not order.unknown
        out = _sink(order.run, order.readings, written, place, caught_up=known)
        # A baseline run has the same expected rows, and to ask again takes as long as the rest.
        out.examined.reasons.error += [] if baseline else overlapping(written, sink, name)
    out.examined.behind = caught_up and not out.examined.caught_up
    out.examined.reasons.unknown += order.unknown
    out.examined.reasons.error += order.error
    out.examined.reasons.notes += order.notes
    out.examined.findings += [each for each in order.findings if out.examined.counted(each.kind)]
    return out


def _exposed(run: Run, out: Compared, ledger: Ledger, readings: Readings) -> Compared:
    examined, injections = out.examined, readings.steps
    if examined.case is None or examined.table is None or not injections:
        return out
    read = taken(run.progressed, examined.sink) or [[(batch, ranges) for batch, ranges in ledger.ranges()]]
    scale = Scale(
        ledger=ledger,
        sink=examined.sink,
        position=examined.position,
        case=examined.case,
        table=examined.table,
        allows=run.scenario.guarantee.allows,
        queries=[[each for each in query if each[1]] for query in read],
        late_s=run.scenario.quiet_period_s,
    )
    out.exposed = _steps(run, scale, injections, writes_first=False)
    if any(step.wrote_first for step in out.exposed):
        out.exposed = _steps(run, scale, injections, writes_first=True)
    try:
        out.ended = [*_ended(run, scale, readings.ended)]
        _explained(out, scale)
        examined.reasons.unknown += _odd_totals(scale, [*out.exposed, *out.ended])
    except UsageError as failure:
        examined.reasons.unknown.append(scale.refused(failure))
    return out


def _steps(run: Run, scale: Scale, injections: Sequence[Injection], *, writes_first: bool) -> list[Exposed]:
    """Return what each step exposed. `writes_first`: a reading shows that the program saves its offsets after it has
    written; what one reading shows of the program holds for all."""
    out, many = [], feeders(run.progressed, scale.sink)
    for place, (injection, until) in enumerate(zip(injections, [*injections[1:], None], strict=True)):
        found = (
            query_progress(injection, run.progressed, scale.sink, later=injections[place + 1 :])
            if injection.at is not None
            else []
        )
        step = exposed(
            scale, injection, found, many=many, until=until, executions=run.executions, writes_first=writes_first
        )
        out.append(step)
    return out


def _ended(run: Run, scale: Scale, ended: Sequence[Injection]) -> Iterator[Exposed]:
    """Yield the readings after attempts that no step had ended, of which it is known how far the sink's query was."""
    many = feeders(run.progressed, scale.sink)
    for injection in ended:
        at = state_at(scale, injection.at) if injection.at else None
        found = query_progress(injection, run.progressed, scale.sink)
        if at is not None and (progress := feeding(scale, found, many, at)) is not None:
            yield Exposed(injection=injection, progress=progress, at_fault=at, before_restart=at)


def _explained(out: Compared, scale: Scale) -> None:
    examined = out.examined
    examined.findings = certainly(scale, examined.findings)
    if any(each.vague for each in examined.findings) and not keyed(scale):
        examined.reasons.notes.append(VAGUE.format(examined.name))
    causes, unexplained = Causes(scale, out.exposed, examined.findings), 0
    for place, finding in enumerate(examined.findings):
        known = out.explanations.get(place, Explanation())
        out.explanations[place] = replace(known, ways=causes.explained(finding), candidates=causes.touching(finding))
    first = out.exposed[0].injection.number
    later = [step for step in causes.steps if step.injection.number > first]
    for each in repaired(scale, causes, [*later, *out.ended]):
        unexplained += not each.ways
        if each.ways and examined.counted(each.kind):
            place = len(examined.findings)
            out.explanations[place] = Explanation(ways=each.ways, candidates=causes.before(each.reading))
            examined.findings.append(_finding(scale, each))
    if unexplained:
        # Baseline runs are compared at their end alone: they do not show a habit that is gone by then.
        words = f"{unexplained} keys of {examined.name} had too many or too few rows at a reading"
        examined.reasons.unknown.append(f"{words}, and are right in the end: no step explains them")


def _finding(scale: Scale, seen: Repaired) -> Finding:
    case, key = scale.case, seen.key
    rows = tuple(by_column(case.columns, row) for row in case.expected if key_of(row, case.key_places()) == key)
    then, now = ("there", "gone") if seen.kind is Kind.DUPLICATED else ("missing", "there")
    return Finding(
        kind=seen.kind,
        sink=case.sink,
        position=case.position,
        key=by_column(case.key or case.columns, key),
        expected=rows,
        copies=seen.copies,
        note=f"{then} {seen.reading.injection.read_at}, and {now} in the end",
    )


def _odd_totals(scale: Scale, readings: Sequence[Exposed]) -> Iterator[str]:
    """Yield words for totals that were wrong at a reading, and are right in the end."""
    for reading in readings:
        if count := mismatched(scale, reading):
            words = f"{reading.injection.read_at}, {count} totals of {scale.case.sink} were not those of the committed"
            late = "" if scale.late else "the sink shows them late (then say `quiet_period`), or "
            yield f"{words} batches: {late}two errors cancel"
