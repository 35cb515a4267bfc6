"""From a run folder alone to its verdict: the ledger, the effect, the sinks, the checkers.

`plan.json` says what was claimed and what the ledger's columns are, `run.json` what became of the schedule,
`history.jsonl` which batch took which offsets and where everything stood at each hit, `snapshots/` what the sinks held
then. For each sink the effect is run over the ledger, compared with the rows that were read back, and the self-tests
are planted; each hit is weighed by what it put at stake there. Findings that no snapshot explains are held against
`controls/`. While records are not committed by the pipeline nothing that is missing is called lost: it is `unseen`, and
the verdict is unknown.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from harness.checkers.origin import attribute, explanations, together
from harness.checkers.verdict import Facts, verdict, violates
from harness.effect import Effects, Source
from harness.errors import UsageError
from harness.judge.cause.causes import caused
from harness.judge.cause.certain import certainly, keyed
from harness.judge.cause.mismatch import mismatched
from harness.judge.control import Control, Decided, decide, read_controls
from harness.judge.examine import FINDINGS_MAX, Examined, examine, hidden
from harness.judge.injections import Injection, ended, numbered, read_injections
from harness.judge.late_log import declared, undeclared
from harness.judge.overlapping import overlapping
from harness.judge.producer import examine_producer
from harness.judge.progress_at_hit import feeders, reaches, taken
from harness.judge.read_folder import Run, read_run
from harness.judge.stakes.weigh import weigh_all
from harness.judge.stakes.weighed import EARLY, POINTS, SAFE
from harness.judge.stalled import stalled
from harness.judge.windows import by_writing, unclear
from harness.scenario import Finding, Kind, Verdict
from harness.scenario import Harm as Harm
from harness.sinks.names import sink_names
from harness.sinks.table import load


@dataclass(frozen=True)
class Judged:
    """A verdict, and how many control runs in all it asks for: more than there are, or 0."""

    verdict: Verdict
    wants: int = 0


def judge(folder: Path) -> Verdict:
    """The verdict on the run in `folder`. Raises UsageError for a folder that holds no whole run or an effect that
    is no query, HarnessError for damage."""
    return judged(folder).verdict


def wants(folder: Path) -> int:
    """How many control runs in all the verdict asks for: more than there are, or 0. Raises as `judge` does."""
    return judged(folder).wants


def judged(folder: Path) -> Judged:
    """The same, and whether control runs are needed for it."""
    run = read_run(folder)
    injections = read_injections(run)
    producer = examine_producer(run)
    run = replace(run, short=run.short or producer.short)
    examined = _examine(run, injections)
    drained, reasons = _drained(run, examined)
    controls = read_controls(run, _findings)
    hung = stalled(run, injections, controls)
    late, skips = declared(run), undeclared(run, injections)
    found = [f for sink in examined for f in sink.findings]
    unmatched = {sink.position: sink.name for sink in examined if sink.unmatched}
    asked = drained and not _of(examined, "error")
    held = _decided(run, found, controls, unmatched=set(unmatched), asked=asked)
    cut = _cut(run, examined)
    kinds = sum((sink.kinds for sink in examined), Counter({Kind.RECOVERED: producer.counts["recovered"]}))
    noted = [str(reason) for reason in run.outcome.get("reasons") or ()]
    facts = Facts(
        guarantee=run.scenario.guarantee,
        expect=run.scenario.expect,
        scheduled=tuple(step.name for step in run.scenario.schedule),
        steps=run.steps,
        drained=drained,
        self_tests=_self_tests(examined),
        counts={
            **{name: count for name, count in producer.counts.items() if name != "recovered"},
            "expected_rows": sum(sink.expected_rows for sink in examined),
            "sink_rows": sum(sink.sink_rows for sink in examined),
            "unseen": sum(sink.unseen for sink in examined),
            **{kind.value: count for kind, count in sorted(kinds.items()) if count > FINDINGS_MAX},
        },
        findings=(*hung.stand, *held.stand, *producer.recovered),
        doubtful=tuple(held.doubtful),
        void=(*producer.void, *_of(examined, "void"), *filter(None, [skips])),
        unplanned=late,
        unknown=(
            *reasons,
            *hung.unknown,
            *held.unknown,
            *cut,
            *noted,
        ),
        why_open=bool(noted) or bool(reasons),
        gone=hung.gone and not (held.unknown or _moved(run) or _of(examined, "unknown") or cut),
        error=(*producer.error, *_said(run), *_of(examined, "error"), *hung.error, *held.error),
        unmatched=unmatched,
        stakes=()
        if late or skips
        else tuple(stake for sink in examined for each in sink.weighed for stake in each.stakes),
        idle=_idle(run, examined),
        untried=_untried(run, examined),
        notes=(*_of(examined, "notes"), *held.notes, *_untested(examined)),
        unread=tuple(_of(examined, "unread")),
        compared=any(sink.effect is not None for sink in run.scenario.sinks),
        untold=any(each.untold for sink in examined for each in sink.weighed),
        writing=frozenset(injection.label for injection in injections if injection.writing),
    )
    return Judged(verdict(facts), max(hung.wants, held.wants))


def _moved(run: Run) -> bool:
    """Had the source, or a sink, not come to rest when it was read?"""
    return bool(run.outcome.get("grew") or run.outcome.get("unsettled"))


def _decided(run: Run, found: list[Finding], controls: list[Control], *, unmatched: set[int], asked: bool) -> Decided:
    """What stands of the findings. Nothing is asked of controls for a sink that is another one, before the drain, or
    where an effect is wrong by itself."""
    told = [(f, violates(f, run.scenario.guarantee)) for f in found if f.position not in unmatched]
    # A loss that was at stake, or may have been: control runs tell whether it is there without faults too.
    violating = [f for f, answer in told if answer or (answer is None and f.kind is Kind.LOST and not f.vague)]
    acquitted = [f for f, answer in told if answer is False and f.to_confirm and f.kind is Kind.LOST]
    out = decide(found, violating, controls, acquitted)
    out.wants = out.wants if asked else 0
    return out


def _said(run: Run) -> list[str]:
    return [str(run.outcome["error"])] if run.outcome.get("error") else []


def _of(examined: list[Examined], what: str) -> list[str]:
    return [reason for sink in examined for reason in getattr(sink, what)]


def _cut(run: Run, examined: list[Examined]) -> list[str]:
    words = [hidden(sink, run.scenario.guarantee) for sink in examined]
    return [reason for reason in words if reason]


def _examine(run: Run, injections: tuple[Injection, ...], *, control: bool = False) -> list[Examined]:
    """Every sink on its own; then, where they must agree, side by side. Of a `control` only the findings are wanted."""
    source = run.ledger
    with Effects(source, where=f"scenario `{run.scenario.name}`") as effects:
        drained = run.drained and run.reached and effects.size(committed=True) == effects.size()
        out = [
            _sink(run, injections, effects, place, drained=drained)
            if sink.watermark is None
            else _windows(run, injections, source, place, drained=drained, control=control)
            for place, sink in enumerate(run.scenario.sinks)
        ]
    if run.scenario.together:
        holders, names = {sink.position: sink.holds for sink in out}, sink_names(run.scenario.sinks)
        for each in out:
            each.findings = together(each.findings, holders, names=names)
    return out


def _sink(run: Run, injections: tuple[Injection, ...], effects: Effects, place: int, *, drained: bool) -> Examined:
    """One sink, its findings and what hits put at stake in it."""
    name, numbering = sink_names(run.scenario.sinks)[place], numbered(run.progressed)
    table = load(run.folder, place)
    sink = run.scenario.sinks[place]
    out = examine(effects, sink, table, drained=drained, short=run.short, position=place, name=name)
    clues = out.clues(effects)
    found = attribute(out.findings, clues, explanations(out.findings, clues.totals))
    out.findings = [replace(each, checkpoint=numbering) if each.batches else each for each in found]
    _weighed(run, out, effects, injections)
    return out


def _windows(
    run: Run, injections: tuple[Injection, ...], source: Source, place: int, *, drained: bool, control: bool
) -> Examined:
    """One sink of windows, by what its batches wrote."""
    sink, name = run.scenario.sinks[place], sink_names(run.scenario.sinks)[place]
    if why := unclear(run, sink):
        return Examined(sink=sink, name=name, position=place, drained=drained, void=[why])
    told = by_writing(run, injections, source, place)
    with Effects(told.source, where=f"scenario `{run.scenario.name}`") as written:
        # What a batch has yet to write may be missing, or be there already: nobody is accused of it.
        out = _sink(told.run, told.injections, written, place, drained=drained and not told.unknown)
        # A control has the same effect, and asking takes as long as the rest.
        out.error += [] if control else overlapping(written, sink, name)
    out.behind, out.unknown = drained and not out.drained, [*out.unknown, *told.unknown]
    out.error += told.error
    out.notes += told.notes
    out.findings += [finding for finding in told.findings if out.counted(finding.kind)]
    return out


def _weighed(run: Run, sink: Examined, effects: Effects, injections: tuple[Injection, ...]) -> None:
    """What each hit put at stake in one sink, and which findings it caused."""
    read = taken(run.progressed, sink.sink) or [[(batch, spans) for batch, spans in effects.ranges()]]
    # Who says that the sink shows its rows late may find it behind, and never ahead.
    late = run.scenario.quiet_period_s is not None
    queries = [[each for each in query if each[1]] for query in read]
    scale = sink.scale(effects, run.scenario.guarantee.allows, queries, late=late, alone=bool(ended(run)))
    if scale is None:
        return
    after = [injections[number:] for number, _ in enumerate(injections, 1)]
    hits = [
        (each, reaches(each, run.progressed, sink.sink, later=later) if each.at is not None else [])
        for each, later in zip(injections, after, strict=True)
    ]
    sink.weighed += weigh_all(scale, hits, many=feeders(run.progressed, sink.sink))
    try:
        sink.findings = certainly(scale, caused(scale, sink.findings, sink.weighed), sink.weighed)
        counts = [mismatched(scale, weighed) for weighed in sink.weighed]
    except UsageError as failure:
        sink.unknown.append(scale.refused(failure))
        return
    if any(each.vague for each in sink.findings) and not keyed(scale):
        sink.notes.append(_VAGUE.format(run.scenario.guarantee, sink.name))
    for weighed, count in zip(sink.weighed, counts, strict=True):
        if count:
            words = f"{count} totals of {sink.name} were not those of the batches committed by then"
            why = _CANCEL if late else f"{_LATE}, or {_CANCEL}"
            sink.unknown.append(f"when step {weighed.injection.number} hit, {words}: {why}")


_VAGUE = (
    "under {}, nobody can tell what a wrong row of {} hides. A record that comes again, or not at all, may change or "
    "take away rows of others. Let the effect be one SELECT from `ledger`, with at most a GROUP BY"
)
_LATE = "shown late (then say `quiet_period`)"
_CANCEL = "one batch lost and another counted twice"


def completed(folder: Path) -> bool:
    """Was the control run in `folder` drained, and could all its sinks be compared? Raises as `judge` does."""
    return _findings(read_run(folder)) is not None


def _findings(run: Run) -> list[Finding] | None:
    """The findings of a control run; None if it was not drained, or not every sink could be compared."""
    examined = _examine(run, (), control=True)
    if not all(sink.drained and sink.case is not None for sink in examined):
        return None
    return [finding for sink in examined for finding in sink.findings]


def _idle(run: Run, examined: list[Examined]) -> tuple[str, ...]:
    """Why hits put nothing at stake that would have been seen to break the guarantee."""
    out: dict[str, None] = {}
    for sink in examined:
        for weighed in sink.weighed:
            hit = weighed.injection
            step = f"step {hit.number} (`{hit.outcome.name}`) was inconsequential for {sink.name}"
            notes = [
                f"{stake.note}: {run.scenario.guarantee} allows it" if stake.allowed else stake.note
                for stake in weighed.stakes
            ]
            for why in [weighed.why] if weighed.why else notes:
                out[f"{step}: {why}"] = None
    return tuple(out)


def _untested(examined: list[Examined]) -> list[str]:
    """Sinks beside one that was put to the test, in which no hit would have shown anything."""
    counting = [any(weighed.counting for weighed in sink.weighed) for sink in examined]
    left = [sink.name for sink, counts in zip(examined, counting, strict=True) if not counts and sink.case is not None]
    return [f"{name} was not put to the test: no hit would have shown anything there" for name in left if any(counting)]


def _untried(run: Run, examined: list[Examined]) -> tuple[tuple[str, str], ...]:
    """The crash points at which each sink could have shown that the guarantee is broken, and no fault hit with that at
    stake."""
    out = []
    safe = SAFE.get(run.scenario.guarantee.allows, ())
    for sink in examined:
        points_hit = {weighed.point for weighed in sink.weighed if weighed.counting}
        own = any(weighed.reach and weighed.reach.own for weighed in sink.weighed)
        points = [point for point in ((EARLY, *POINTS) if own else POINTS) if point not in safe]
        out += [(sink.name, point) for point in points if sink.case is not None and point not in points_hit]
    return tuple(out)


def _drained(run: Run, examined: list[Examined]) -> tuple[bool, list[str]]:
    """Whether all was drained, by the run loop's word and by the ledger; and what that leaves open."""
    reasons = [reason for sink in examined for reason in (*sink.waiting, *sink.unknown)]
    committed = all(sink.drained for sink in examined)
    if run.drained and not all(sink.drained or sink.behind for sink in examined):
        reasons.append(
            "not drained: the pipeline did not commit all records of the source, though the run says otherwise"
        )
    return run.drained and committed, reasons


def _self_tests(examined: list[Examined]) -> dict[str, bool]:
    """By planted fault, whether it was found in every sink."""
    out: dict[str, bool] = {}
    for sink in examined:
        for self_test in sink.self_tests:
            out[self_test.name] = out.get(self_test.name, True) and self_test.found
    return out
