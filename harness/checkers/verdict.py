"""From facts to one word. Pure, and the only place that decides what a guarantee allows.

What violates:

    kind              exactly-once   at-least-once                        at-most-once
    lost              yes            yes                                  no if it was at stake in a hit that explains
                                                                          it, or no control run shows it; else yes;
                                                                          yes if a sink that must agree has it
    duplicated        yes            only with a different payload        yes
    wrong aggregate   yes            yes if it is too low                 yes if it is too high, or by more too low
                                                                          than what was at stake
                                     in a column that only grows; yes if it is no total (DISTINCT alone);
                                     else nobody can tell what it hides: unknown
    corrupted, unexpected, misordered, stalled: yes, always · recovered: never

Under a weaker guarantee nobody can tell what a finding hides (`vague`) if the effect is more than a selection or plain
grouping of records, or if several records give the same row: unknown.

Worst wins: error > violated > void > unknown > held. Never green by silence: whatever was not put to the test
makes a verdict void, and whatever could not be read to the end makes it unknown, with the reason in words. A run in
which no hit had a harm at stake that the guarantee forbids, and that would have shown, tested nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.scenario import (
    COMMITTING,
    CrashPoint,
    Evidence,
    Expect,
    Finding,
    Guarantee,
    Harm,
    Kind,
    Stake,
    StepOutcome,
    Verdict,
    Word,
)

IN_BATCH = (CrashPoint.BATCH_PLANNED, CrashPoint.SINK_COMMITTING, CrashPoint.SINK_COMMITTED)
"""The crash points at which a batch is planned and not committed."""
SEVERITY = (Word.ERROR, Word.VIOLATED, Word.VOID, Word.UNKNOWN, Word.HELD)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """All that a verdict rests on. `void`, `unknown` and `error` are reasons found on the way here; `scheduled` names
    the steps of the plan; `unmatched` has place and name of the sinks that hold nothing that was expected of them.

    `findings` stand, `doubtful` may be none of the faults' (what control runs left open). `stakes` is what the hits put
    at stake, `idle` why some put nothing there, `untried` and `notes` what the verdict says of both. `why_open`:
    `unknown` says why the run is not drained, if it is not. `unplanned` says why the pipeline's log does not tell what
    a hit had in flight, where the scenario declares it to be late. `writing` names the hits after which somebody who
    was at work could write on when the sinks were last read: what these did no snapshot shows. `unread` says which
    sinks cannot be read back, by the scenario's own word, `compared` that there are others, `untold` that nobody knows
    what some hit put at stake. `gone`: a fault took away for good what every program needs, and nothing else is
    open."""

    guarantee: Guarantee
    expect: Expect
    scheduled: tuple[str, ...]
    steps: tuple[StepOutcome, ...]
    drained: bool
    self_tests: Mapping[str, bool]
    counts: Mapping[str, int]
    findings: tuple[Finding, ...] = ()
    doubtful: tuple[Finding, ...] = ()
    void: tuple[str, ...] = ()
    unplanned: str = ""
    unknown: tuple[str, ...] = ()
    error: tuple[str, ...] = ()
    unmatched: Mapping[int, str] = field(default_factory=dict)
    stakes: tuple[Stake, ...] = ()
    idle: tuple[str, ...] = ()
    untried: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    why_open: bool = False
    writing: frozenset[str] = frozenset()
    unread: tuple[str, ...] = ()
    compared: bool = True
    untold: bool = False
    gone: bool = False


class Silence(NamedTuple):
    """Why a run may prove nothing. `meant`: the test was sound, and nothing was at stake in it, or the scenario says
    that there is nothing to test. `partial`: it never held, and what a hit broke shows all the same."""

    words: str
    meant: bool = False
    partial: bool = False


@dataclass(frozen=True)
class Doubt:
    """What the findings come to: those that violate, and how many could not be told."""

    violating: tuple[Finding, ...] = ()
    untold: int = 0

    @property
    def kinds(self) -> frozenset[Kind]:
        return frozenset(finding.kind for finding in self.violating)


def verdict(facts: Facts) -> Verdict:
    """The verdict on one run."""
    doubt = _doubt(facts)
    silences = tuple(_silences(facts))
    void = tuple(silence.words for silence in silences)
    unknown = (*facts.unknown, *_open_ends(facts, doubt))
    word = worst(
        [
            *([Word.ERROR] if facts.error else []),
            *([Word.VIOLATED] if doubt.violating else []),
            *([Word.VOID] if void else []),
            *([Word.UNKNOWN] if unknown else []),
        ]
    )
    sound = not facts.untold and all(silence.meant for silence in silences) and not (unknown and facts.compared)
    amiss = _amiss(facts, word, doubt, sound=sound) if facts.expect.word is word else ""
    return Verdict(
        word=word,
        as_expected=not amiss and _as_expected(word, doubt.kinds, facts.expect, silences),
        expect=str(facts.expect),
        reasons=(
            *facts.error,
            *void,
            *unknown,
            *filter(None, [amiss]),
        ),
        findings=(*facts.findings, *facts.doubtful),
        steps=facts.steps,
        self_tests=dict(facts.self_tests),
        counts=dict(facts.counts),
        stakes=facts.stakes,
        points_hit=tuple(dict.fromkeys((stake.sink, stake.point) for stake in facts.stakes if stake.counts)),
        untried=facts.untried,
        notes=facts.notes,
    )


def explained(violating: Iterable[Finding], expect: Expect, writing: frozenset[str]) -> bool:
    """Is one of the findings what was expected: done by a hit, or, where that is expected, there without faults too?
    Of what nothing shows a hit is enough in which its records were at stake, and after which somebody could write on
    (`writing`)."""
    if expect.without_faults:
        return any(finding.without_faults for finding in violating)
    return any(f.faults or (writing.intersection(f.near) and not f.without_faults) for f in violating)


def _amiss(facts: Facts, word: Word, doubt: Doubt, *, sound: bool) -> str:
    """Why the word is the expected one, and not for the expected cause; empty if it is, or has none of its own."""
    if word is Word.VIOLATED and not explained(doubt.violating, facts.expect, facts.writing):
        return _unblamed(facts.expect)
    if word is Word.UNKNOWN and (doubt.untold or not facts.gone):
        return _OPEN
    return _UNSOUND if word is Word.VOID and not sound else ""


_OPEN = "unknown was expected because a fault took away for good what every pipeline needs, and something else is open"
_UNSOUND = "void was expected because nothing was to be at stake, and something else is wrong with this test"


def _unblamed(expect: Expect) -> str:
    if expect.without_faults:
        return "expected without faults too; no control run shows it"
    return "nothing shows that a hit did it: the violation is not known to be the one that the schedule was to cause"


def worst(words: Iterable[Word]) -> Word:
    """The worst of several words; held if there are none."""
    return min(words, key=SEVERITY.index, default=Word.HELD)


def violates(finding: Finding, guarantee: Guarantee) -> bool | None:
    """Does the finding break the guarantee? None means that nobody can tell."""
    if finding.kind is Kind.RECOVERED:
        return False
    if guarantee is Guarantee.EXACTLY_ONCE:
        return True
    if finding.vague and not finding.torn:
        return None
    least = guarantee is Guarantee.AT_LEAST_ONCE
    if finding.kind is Kind.LOST:
        return True if least or finding.torn else _loss_violates(finding)
    if finding.kind is Kind.DUPLICATED:
        return not least or finding.altered
    if finding.kind is Kind.WRONG_AGGREGATE:
        return finding.altered or _aggregate_violates(finding, allowed=guarantee.allows)
    return True


def _loss_violates(finding: Finding) -> bool | None:
    """Under at-most-once: only what was at stake may be missing, and a snapshot or the control runs have to show that
    it is there without faults."""
    if finding.without_faults or finding.staked is False:
        return True
    return False if finding.staked and (finding.faults or finding.calm) else None


def _aggregate_violates(finding: Finding, *, allowed: Harm | None) -> bool | None:
    """By the harms that it cannot do without. A sum is no witness: what it may hide besides, nobody can tell."""
    forbidden = set(finding.harms) - {allowed}
    beyond = Harm.LOSS in finding.harms and finding.staked is False
    return True if forbidden or (allowed is Harm.LOSS and beyond) else None


def _doubt(facts: Facts) -> Doubt:
    answers = [(f, violates(f, facts.guarantee)) for f in facts.findings if f.position not in facts.unmatched]
    violating = tuple(finding for finding, answer in answers if answer)
    return Doubt(violating, sum(answer is None for _, answer in answers))


def _as_expected(word: Word, violating: frozenset[Kind], expect: Expect, silences: Iterable[Silence]) -> bool:
    """A violation counts as the expected one only if its kinds are the expected ones and the run was a valid test."""
    if word is not expect.word:
        return False
    valid = all(silence.partial for silence in silences)
    return word is not Word.VIOLATED or (violating == frozenset(expect.kinds) and valid)


def _silences(facts: Facts) -> Iterator[Silence]:
    """Why this run may prove nothing."""
    yield from (Silence(words, meant=True) for words in facts.unread)
    yield from map(Silence, facts.void)
    if facts.unplanned:
        yield Silence(facts.unplanned, partial=True)
    if not facts.scheduled:
        yield Silence("no fault in the schedule: nothing was tested", meant=True)
    if len(facts.steps) < len(facts.scheduled):
        yield Silence(f"only {len(facts.steps)} of {len(facts.scheduled)} steps of the schedule have an outcome")
    for step in facts.steps:
        if missed := _missed(step):
            yield Silence(f"step `{step.name}` {missed}", meant=step.evidence.unfelt and not step.hit)
    if facts.scheduled and not facts.unplanned and not any(stake.counts for stake in facts.stakes):
        for words in facts.idle or ("nothing shows that a hit had anything at stake",):
            yield Silence(words, meant=True)
    if not facts.counts.get("records"):
        yield Silence("the source holds no record")
    if not facts.counts.get("acknowledged"):
        yield Silence("no record was acknowledged")
    yield from _uncompared(facts)


def _uncompared(facts: Facts) -> Iterator[Silence]:
    """Why the comparison says nothing. Where the scenario has no sink that can be read, that is meant."""
    expected, found = facts.counts.get("expected_rows"), facts.counts.get("sink_rows")
    if not expected or not found:
        words = f"nothing to compare: {expected or 0} rows expected, {found or 0} found"
        yield Silence(words, meant=not facts.compared)
    for _, sink in sorted(facts.unmatched.items()):
        yield Silence(f"{sink} holds not one of the keys expected of it: is it the right table, and the right effect?")
    missing = [name for name, found in facts.self_tests.items() if not found]
    if missing:
        yield Silence(f"the comparison missed planted faults: {', '.join(missing)}")
    if not facts.self_tests:
        yield Silence("no error was planted to test the checker", meant=not facts.compared)


def _missed(step: StepOutcome) -> str:
    """Why a step proves nothing; empty if it hit and its evidence bears that out."""
    if not step.hit:
        return f"did not hit: {step.evidence.note}" if step.evidence.note else "did not hit"
    if step.evidence == Evidence():
        return "says that it hit and has no evidence"
    return misplaced(step)


def misplaced(step: StepOutcome) -> str:
    """Return why the checkpoint did not stand at the crash point of a step; empty if nothing says so."""
    logs = _stood(step.evidence)
    planned = step.batch in logs.get("offsets", ())
    if step.crash_point in (CrashPoint.BATCH_PLANNING, CrashPoint.BLOCK_RECEIVED) and planned:
        return f"came too late: batch {step.batch} is in the offset log"
    if step.batch is None or step.crash_point not in IN_BATCH:
        return ""
    if step.batch in logs.get("commits", ()):
        return f"came too late: batch {step.batch} is in the commit log"
    if "offsets" in logs and not planned:
        return f"came too early: batch {step.batch} is not in the offset log"
    if step.crash_point is CrashPoint.SINK_COMMITTING and step.batch not in logs.get(COMMITTING, ()):
        return f"came too late: the sink's commit of batch {step.batch} was no longer being written"
    return ""


def _stood(evidence: Evidence) -> Mapping[str, tuple[int, ...]]:
    """The checkpoint as the fault met it: afterwards if the driver was killed, for only such a one leaves it alone."""
    killed = evidence.driver_status is not None and not evidence.asked
    return evidence.checkpoint_after if killed else evidence.checkpoint_before


def _open_ends(facts: Facts, doubt: Doubt) -> Iterator[str]:
    """Why nobody can tell yet."""
    if not (facts.drained or facts.why_open):
        yield "not drained: records lie beyond what the pipeline has committed"
    if doubt.untold:
        count = f"{doubt.untold} finding{'s' if doubt.untold > 1 else ''}"
        many = f"{count}, and nothing shows which explanation is the right one"
        yield f"{many}: {facts.guarantee} may allow it"
