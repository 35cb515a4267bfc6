"""From facts to one word. Pure, and the only place that decides what a guarantee allows.

What violates:

    kind              exactly-once   at-least-once                        at-most-once
    lost              yes            yes                                  only if a sink that must agree has it
    duplicated        yes            only with a different payload        yes
    wrong aggregate   yes            if a batch is missing from it;       if a batch is in it twice;
                                     no if it only counts batches again;  no if it only misses batches;
                                     else nobody can tell: unknown        else nobody can tell: unknown
    corrupted, unexpected, misordered, stalled: yes, always · recovered: never

Worst wins: error > violated > void > unknown > held. Never green by silence: whatever was not put to the test
makes a verdict void, and whatever could not be read to the end makes it unknown, with the reason in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from harness.checkers.attribute import HOLDS
from harness.checkers.compare import ALTERED
from harness.checkers.explain import TOO_HIGH, TOO_LOW
from harness.scenario import Evidence, Expect, Finding, Guarantee, Kind, StepOutcome, Verdict, Window, Word

NOT_DRAINED = "not drained"
SEVERITY = (Word.ERROR, Word.VIOLATED, Word.VOID, Word.UNKNOWN, Word.HELD)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """All that a verdict rests on. `void`, `unknown` and `error` are reasons found on the way here;
    `scheduled` names the steps of the plan; `apart` has place and name of the sinks that hold nothing that was expected
    of them."""

    guarantee: Guarantee
    expect: Expect
    scheduled: tuple[str, ...]
    steps: tuple[StepOutcome, ...]
    drained: bool
    canaries: Mapping[str, bool]
    counts: Mapping[str, int]
    findings: tuple[Finding, ...] = ()
    void: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    error: tuple[str, ...] = ()
    apart: Mapping[int, str] = field(default_factory=dict)
    tier: str = "hard"


@dataclass(frozen=True)
class Doubt:
    """What the findings come to: the kinds that violate, and whether some could not be told."""

    violating: frozenset[Kind] = field(default_factory=frozenset)
    untold: int = 0


def verdict(facts: Facts) -> Verdict:
    """The verdict on one run."""
    doubt = _doubt(facts)
    void = (*facts.void, *_silences(facts))
    unknown = (*facts.unknown, *_open_ends(facts, doubt))
    word = worst(
        [
            *([Word.ERROR] if facts.error else []),
            *([Word.VIOLATED] if doubt.violating else []),
            *([Word.VOID] if void else []),
            *([Word.UNKNOWN] if unknown else []),
        ]
    )
    return Verdict(
        word=word,
        as_expected=_as_expected(word, doubt.violating, facts.expect, void),
        expect=str(facts.expect),
        reasons=(*facts.error, *void, *unknown),
        findings=facts.findings,
        steps=facts.steps,
        canaries=dict(facts.canaries),
        counts=dict(facts.counts),
        tier=facts.tier,
    )


def worst(words: Iterable[Word]) -> Word:
    """The worst of several words; held if there are none."""
    return min(words, key=SEVERITY.index, default=Word.HELD)


def violates(finding: Finding, guarantee: Guarantee) -> bool | None:
    """Does the finding break the guarantee? None means that nobody can tell."""
    exactly, least = guarantee is Guarantee.EXACTLY_ONCE, guarantee is Guarantee.AT_LEAST_ONCE
    if finding.kind is Kind.RECOVERED:
        return False
    if finding.kind is Kind.LOST:
        return exactly or least or HOLDS in finding.note
    if finding.kind is Kind.DUPLICATED:
        return not least or ALTERED in finding.note
    if finding.kind is Kind.WRONG_AGGREGATE and not exactly:
        return _aggregate_violates(finding.note, allowed=TOO_HIGH if least else TOO_LOW)
    return True


def _aggregate_violates(note: str, *, allowed: str) -> bool | None:
    """A total explained by whole batches is judged by them; one that is not explained, not at all."""
    high, low = note.startswith(TOO_HIGH), TOO_LOW in note
    if not high and not note.startswith(TOO_LOW):
        return None
    return low if allowed == TOO_HIGH else high


def _doubt(facts: Facts) -> Doubt:
    answers = [(f.kind, violates(f, facts.guarantee)) for f in facts.findings if f.position not in facts.apart]
    violating = frozenset(kind for kind, answer in answers if answer)
    return Doubt(violating, sum(answer is None for _, answer in answers))


def _as_expected(word: Word, violating: frozenset[Kind], expect: Expect, void: tuple[str, ...]) -> bool:
    """A violation counts as the expected one only if its kinds are the expected ones and the run was a valid test."""
    if word is not expect.word:
        return False
    return word is not Word.VIOLATED or (violating == frozenset(expect.kinds) and not void)


def _silences(facts: Facts) -> Iterator[str]:
    """Why this run may prove nothing."""
    counts = facts.counts
    if not facts.scheduled:
        yield "no fault in the schedule: nothing was hurt"
    if len(facts.steps) < len(facts.scheduled):
        yield f"only {len(facts.steps)} of {len(facts.scheduled)} steps of the schedule have an outcome"
    for step in facts.steps:
        missed = _missed(step)
        if missed:
            yield f"step `{step.name}` {missed}"
    if not counts.get("records"):
        yield "the source holds no record"
    if not counts.get("acknowledged"):
        yield "no record was acknowledged"
    if not counts.get("expected_rows") or not counts.get("sink_rows"):
        yield f"nothing to compare: {counts.get('expected_rows', 0)} rows expected, {counts.get('sink_rows', 0)} found"
    for _, sink in sorted(facts.apart.items()):
        yield f"{sink} holds not one of the keys expected of it: is it the right table, and the right effect?"
    missing = [name for name, found in facts.canaries.items() if not found]
    if missing:
        yield f"the comparison missed planted faults: {', '.join(missing)}"
    if not facts.canaries:
        yield "no canary was planted"


def _missed(step: StepOutcome) -> str:
    """Why a step proves nothing; empty if it hit and its evidence bears that out."""
    if not step.hit:
        return f"did not hit: {step.evidence.note}" if step.evidence.note else "did not hit"
    if step.evidence == Evidence():
        return "says that it hit and has no evidence"
    logs = _stood(step.evidence)
    if step.batch is None or step.window not in (Window.OFFSETS_WRITTEN, Window.SINK_COMMITTED):
        return ""
    if step.batch in logs.get("commits", ()):
        return f"came too late: batch {step.batch} is in the commit log"
    if "offsets" in logs and step.batch not in logs["offsets"]:
        return f"came too early: batch {step.batch} is not in the offset log"
    return ""


def _stood(evidence: Evidence) -> Mapping[str, tuple[int, ...]]:
    """The checkpoint as the fault met it: afterwards if the driver died, for only a dead one leaves it alone."""
    died = any(victim.startswith("driver") for victim in evidence.signalled)
    return evidence.checkpoint_after if died else evidence.checkpoint_before


def _open_ends(facts: Facts, doubt: Doubt) -> Iterator[str]:
    """Why nobody can tell yet."""
    if not facts.drained and not any(reason.startswith(NOT_DRAINED) for reason in facts.unknown):
        yield f"{NOT_DRAINED}: records lie beyond what the pipeline has committed"
    if doubt.untold:
        many = f"{doubt.untold} totals differ, and no one or two whole batches explain them"
        yield f"{many}: {facts.guarantee} may allow it"
