"""The judge: from the history of a run, its sinks and its baseline runs to a verdict, by seven rules.

1. Interrupted. A step interrupts the batch that a query had planned and not committed when it struck; of a program
   that saves its own offsets, what it had begun to write.
2. Reprocessed, skipped. An interrupted batch is reprocessed if its offsets ran again: in the next attempt, or in the
   same one as tasks were tried again or the query was started again. It is skipped if they never did though the query
   went on beyond them.
3. A step counts where a naive pipeline would have been caught. Reprocessed records count on two conditions: the
   interrupted execution may have left something in the sink; a pipeline that added its rows or amounts again would
   differ from the expected rows. Interrupted records that were not whole in the sink count for a loss if the expected
   rows differ without them. Whether they ran again does not matter there. A repetition that the sink's reader removes
   counts only if the reader kept what it removed, and removed all of it after the fault. Where a repetition cannot
   change the expected rows, as of a latest row per key, it counts, with a note: rows that were appended would lie there
   twice.
4. Cause. Let rows(m) be the expected rows if record r takes effect m(r) times. A finding is explained by multiplicities
   that differ from 1 only for records that a step interrupted. One step explains it and no other does: cause. Several:
   candidates. None: where baseline runs are clean, it is attributed to the only step, or to those that touched it.
5. Baseline. Up to three runs without faults; what they show alike is "also without faults". No violated without one.
6. The guarantee is read once: at-least-once drops reprocessing, at-most-once drops loss, exactly-once none.
7. The word. The worst of all sinks: violated, error, untested, inconclusive, held. A run is a test where a step counts
   in one of them, or caused a violation; a note names the others. An error of one sink never hides a violation of
   another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from harness.judge import word as words
from harness.judge.attribution import AfterBaseline, Attributed, against, attributed
from harness.judge.baseline import Baseline, Shown
from harness.judge.baseline_runs import read_baseline_runs, signature
from harness.judge.examine import FINDINGS_MAX, Examined, hidden
from harness.judge.exposure import EARLY, PLANNED, SAFE, WRITING, WRITTEN
from harness.judge.injections import Readings, readings
from harness.judge.late_log import declared, undeclared
from harness.judge.producer import Producer, examine_producer
from harness.judge.ran_again import in_the_driver
from harness.judge.read_folder import Run, read_run
from harness.judge.sinks import Compared, compared
from harness.judge.stalled import Stall, stalled
from harness.scenario import Attribution, Exposure, Finding, Kind, Verdict

LATE = (Kind.LOST, Kind.WRONG_AGGREGATE, Kind.CORRUPTED, Kind.UNEXPECTED)
"""What a sink that shows its rows late, or their last version, can look like for a while."""


@dataclass(frozen=True)
class Judged:
    """A verdict, and how many baseline runs in all it needs: more than there are, or 0."""

    verdict: Verdict
    baseline_runs_needed: int = 0


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the word rests on."""

    run: Run
    producer: Producer
    sinks: Sequence[Compared]
    findings: Sequence[Attributed]
    labels: Mapping[int, str]
    """What findings call the steps, by number."""
    strange: Mapping[int, str]
    """By place, the sinks that hold no expected key, without faults neither: their findings count for nothing."""
    after_baseline: AfterBaseline
    stall: Stall
    log_gap: str
    """Why the offset log does not say what was in flight."""
    late: str
    """The same, where the scenario declares it."""

    @cached_property
    def exposures(self) -> tuple[Exposure, ...]:
        """What the steps exposed."""
        known = not (self.late or self.log_gap)
        return tuple(exposure for sink in self.sinks for step in sink.exposed for exposure in step.exposures if known)

    @cached_property
    def evident(self) -> bool:
        """It is known of each step what it exposed."""
        return not any(step.unknown for sink in self.sinks for step in sink.exposed)

    @cached_property
    def violating(self) -> list[Finding]:
        """The findings that break the guarantee; none where the input is not known, or the run failed."""
        stalled = () if self.stall.baseline_runs_needed else self.stall.findings
        return [] if self.own_errors else [*stalled, *self.after_baseline.violating]

    @property
    def own_errors(self) -> list[str]:
        """What makes any finding worthless: the producer's errors, and the run's own."""
        return [*self.producer.error, *filter(None, [self.run.outcome.error])]

    @cached_property
    def planted(self) -> dict[str, bool]:
        """By planted error, whether the comparison found it in every sink."""
        out: dict[str, bool] = {}
        for test in (test for sink in self.sinks for test in sink.examined.self_tests):
            out[test.name] = out.get(test.name, True) and test.found
        return out

    @cached_property
    def counts(self) -> dict[str, int]:
        """Rows and records compared."""
        examined = [sink.examined for sink in self.sinks]
        sent = self.producer.counts
        kinds = sum((each.counts.kinds for each in examined), Counter({Kind.RECOVERED: sent["recovered"]}))
        return {
            **{name: count for name, count in sent.items() if name != "recovered"},
            "expected_rows": sum(each.counts.expected for each in examined),
            "sink_rows": sum(each.counts.found for each in examined),
            "unseen": sum(each.counts.unseen for each in examined),
            **{kind.value: count for kind, count in sorted(kinds.items()) if count > FINDINGS_MAX},
        }


def judged(folder: Path) -> Judged:
    """Return the verdict on the run in `folder`. Raises UsageError for a folder that holds no whole run, or expected
    rows that are no query; HarnessError for damage."""
    run, producer = _read(folder)
    read = readings(run)
    injections, sinks = read.steps, compared(run, read)
    marks = frozenset(signature(finding) for sink in sinks for finding in sink.examined.findings)
    baseline = Baseline(runs=read_baseline_runs(run, _findings), marks=marks)
    labels = {injection.number: injection.label for injection in injections}
    findings = [each for sink in sinks for each in attributed(sink, baseline, run.scenario.guarantee, labels)]
    examined = [sink.examined for sink in sinks]
    strange = {sink.position: sink.name for sink in examined if _never_matches(sink, examined, findings)}
    facts = Facts(
        run=run,
        producer=producer,
        sinks=sinks,
        findings=findings,
        labels=labels,
        strange=strange,
        after_baseline=against(baseline, [each for each in findings if each.finding.position not in strange]),
        stall=stalled(run, injections, baseline.runs),
        log_gap=undeclared(run, injections),
        late=declared(run),
    )
    needed = [] if facts.own_errors else [each.finding for each in findings if each.needs_baseline]
    return Judged(_verdict(facts), max(facts.stall.baseline_runs_needed, baseline.wanted(needed)))


def _read(folder: Path) -> tuple[Run, Producer]:
    """Return the run in `folder`, and how its producer did: what that lost the pipeline may have taken."""
    run = read_run(folder)
    producer = examine_producer(run)
    return replace(run, short=run.short or producer.short), producer


def _verdict(facts: Facts) -> Verdict:
    run, reasons, violating = facts.run, _reasons(facts), facts.violating
    found = words.word(violating, reasons)
    meant = all(each.meant for each in reasons.untested)
    sound = meant and facts.evident and not (reasons.inconclusive and _readable(run))
    amiss = words.unexpected(found, violating, reasons, run.scenario.verdict, sound=sound)
    mismatch = [amiss] if amiss and found is run.scenario.verdict.word else []
    left = [each.finding for each in facts.findings if each.finding.position in facts.strange]
    shown = (
        *facts.stall.findings,
        *facts.after_baseline.confirmed,
        *facts.producer.recovered,
        *facts.after_baseline.doubtful,
        *left,
    )
    return Verdict(
        word=found,
        as_expected=not amiss,
        expected=str(run.scenario.verdict),
        reasons=(*reasons.error, *(each.words for each in reasons.untested), *reasons.inconclusive, *mismatch),
        findings=shown,
        steps=run.steps,
        self_tests=facts.planted,
        counts=facts.counts,
        exposures=facts.exposures,
        untried=tuple(_untried(run, facts.sinks)),
        attribution=_attribution(facts),
        notes=tuple(_notes(facts)),
    )


def _attribution(facts: Facts) -> Attribution:
    """Return what each step did, as data."""
    numbers = {label: number for number, label in facts.labels.items()}
    found = ((each.kind, tuple(numbers[label] for label in each.faults or each.fits)) for each in facts.violating)
    steps = [step for sink in facts.sinks for step in sink.exposed]
    return Attribution(
        causes=tuple(dict.fromkeys(found)),
        unknown=tuple(sorted({step.injection.number for step in steps if step.unknown})),
        idle={step.injection.number: step.why for step in steps if step.why and not step.unknown},
        cut=any(count > FINDINGS_MAX for sink in facts.sinks for count in sink.examined.counts.kinds.values()),
        labels=facts.labels,
    )


def _reasons(facts: Facts) -> words.Reasons:
    """Return why the word is no better than it is."""
    run, sinks, stall = facts.run, [sink.examined for sink in facts.sinks], facts.stall
    unclear = [
        *facts.after_baseline.inconclusive,
        *filter(None, (hidden(sink, run.scenario.guarantee) for sink in sinks)),
    ]
    unready = [each.note for each in stall.findings if stall.baseline_runs_needed]
    moved = run.outcome.grew or run.outcome.unsettled
    return words.Reasons(
        error=[
            *facts.own_errors,
            *(why for sink in sinks for why in sink.reasons.error),
            *stall.error,
            *facts.after_baseline.error,
        ],
        untested=tuple(_untested(facts)),
        inconclusive=[*_open(run, facts.sinks), *stall.unknown, *unready, *unclear, *run.outcome.reasons],
        gone=stall.gone and not (unclear or moved or any(sink.reasons.unknown for sink in sinks)),
    )


def _untested(facts: Facts) -> Iterator[words.Untested]:
    """Yield why the run is no test."""
    run, examined = facts.run, [sink.examined for sink in facts.sinks]
    lost = any(finding.kind is Kind.LOST for finding in facts.violating)
    yield from (words.Untested(why, meant=True) for sink in examined for why in sink.reasons.unread)
    yield from map(
        words.Untested, (*facts.producer.untested, *(why for sink in examined for why in sink.reasons.untested))
    )
    for name in facts.strange.values():
        yield words.Untested(f"{name} holds not one of the keys expected of it: is it the right table?")
    if facts.log_gap:
        yield words.Untested(facts.log_gap)
    if facts.late:
        yield words.Untested(facts.late, partial=True)
    yield from words.missed(run.steps, len(run.scenario.schedule))
    # A step that caused a violation was a test, where what it exposed is known.
    caused = facts.evident and any(finding.faults for finding in facts.violating)
    yield from [] if facts.late or caused else _nothing_counts(run, facts.sinks, facts.exposures)
    yield from words.uncompared(facts.counts, facts.planted, compared=_readable(run), lost=lost)


def _readable(run: Run) -> bool:
    return any(sink.expected for sink in run.scenario.sinks)


def _never_matches(sink: Examined, sinks: Sequence[Examined], findings: Sequence[Attributed]) -> bool:
    """Return whether a sink holds nothing expected, and is so without faults too, as far as is known: it may be another
    table. One that is empty beside a sink that holds expected rows has lost its own."""
    comparison = sink.comparison
    if comparison is None or not comparison.unmatched:
        return False
    others = (each.comparison for each in sinks if each.comparison is not None)
    if not comparison.holds and any(not each.unmatched and each.holds for each in others):
        return False
    mine = [each.shown for each in findings if each.finding.position == sink.position]
    return all(shown in (Shown.ALIKE, Shown.NONE) for shown in mine)


def completed(folder: Path) -> bool:
    """Return whether the baseline run in `folder` got done, and all its sinks could be compared. Raises as `judged`."""
    return _findings(read_run(folder)) is not None


def without_faults(folder: Path) -> tuple[Kind, ...]:
    """Return the kinds of what the baseline run in `folder` shows to be wrong. Raises as `judged`."""
    return tuple(dict.fromkeys(finding.kind for finding in _findings(read_run(folder)) or ()))


def _findings(run: Run) -> list[Finding] | None:
    """Return the findings of a baseline run; None if it did not get done, or not every sink could be compared."""
    sinks = [sink.examined for sink in compared(run, Readings(), baseline=True)]
    if not all(sink.caught_up and (sink.case is not None or sink.sink.expected is None) for sink in sinks):
        return None
    return [finding for sink in sinks for finding in sink.findings]


def behind(folder: Path) -> bool:
    """Return whether a sink of the run in `folder` may be behind: rows are missing, or not those expected. Raises as
    `judged`."""
    run, _ = _read(folder)
    sinks = [sink.examined for sink in compared(run, Readings(), baseline=True)]
    return any(sink.counts.unseen or any(finding.kind in LATE for finding in sink.findings) for sink in sinks)


def _open(run: Run, sinks: Sequence[Compared]) -> list[str]:
    """Return why not all is committed by the pipeline, by the word of the run loop or by the ledger."""
    examined = [sink.examined for sink in sinks]
    caught_up = run.caught_up and all(each.caught_up for each in examined)
    open_ = [reason for each in examined for reason in (*each.reasons.waiting, *each.reasons.unknown)]
    if run.caught_up and not all(each.caught_up or each.behind for each in examined):
        open_.append("not caught up: not all records of the source are committed, though the run says otherwise")
    if not caught_up and not open_ and not run.outcome.reasons:
        open_.append("not caught up: records lie beyond what the pipeline has committed")
    return open_


def _nothing_counts(run: Run, sinks: Sequence[Compared], exposures: Sequence[Exposure]) -> Iterator[words.Untested]:
    """Yield why no step counts; nothing if one does."""
    if not run.scenario.schedule or any(exposure.counts for exposure in exposures):
        return
    out: dict[str, None] = {}
    for sink in sinks:
        for step in sink.exposed:
            struck = f"step {step.injection.number} (`{step.injection.outcome.name}`)"
            head = f"{struck} does not count for {sink.examined.name}"
            for exposure in step.exposures:
                allowed = f": {run.scenario.guarantee} allows it" if exposure.allowed else ""
                out[f"{head}: {exposure.note}{allowed}"] = None
            if step.why:
                out[f"{head}: {step.why}"] = None
    yield from (words.Untested(why, meant=True) for why in out or ["no step is known to have exposed anything"])


def _untried(run: Run, sinks: Sequence[Compared]) -> Iterator[tuple[str, str]]:
    """Yield sink and crash point where a step could have counted, and none did."""
    safe = SAFE.get(run.scenario.guarantee.allows, ())
    for sink in sinks:
        counted = {step.point for step in sink.exposed if step.counting}
        own = any(step.progress and step.progress.own for step in sink.exposed)
        points = (*([EARLY] if own else []), PLANNED, WRITING, WRITTEN)
        left = (point for point in points if point not in safe and point not in counted)
        yield from ((sink.examined.name, point) for point in left if sink.examined.case)


def _notes(facts: Facts) -> Iterator[str]:
    yield from (note for sink in facts.sinks for note in sink.examined.reasons.notes)
    yield from facts.after_baseline.notes
    if in_the_driver(facts.run.executions):
        yield "tasks ran in the driver: its master is local, and no executor of the stack took part"
    read = [sink for sink in facts.sinks if sink.examined.case]
    empty = [sink.examined for sink in read if not sink.examined.holds and sink.examined.counts.expected]
    yield from (
        f"{each.name} holds no row: is it the right table?" for each in empty if each.position not in facts.strange
    )
    counting = {sink.examined.name: any(step.counting for step in sink.exposed) for sink in read}
    if any(counting.values()):
        broken = {finding.sink for finding in facts.violating if finding.faults}
        left = [name for name, counts in counting.items() if not counts and name not in broken]
        yield from (f"{name} was not put to the test: no step counts there" for name in left)
