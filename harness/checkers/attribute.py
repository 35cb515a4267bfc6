"""Ties findings to what explains them: records (partition, offset), batches, and the faults of the schedule.

Records: those whose ledger columns carry the finding's key, where the key's columns are columns of the ledger.
Batches: those that the records lie in; for a wrong total, the ones that explain the difference (`explain`).
Faults: the steps that hit in one of those batches; else in the batch before or after; else, where either side names
no batch, every step that hit without one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.checkers.compare import Key
from harness.checkers.explain import Signed, Totals, explain, note
from harness.scenario import Finding, Kind, RecordRef, StepOutcome

HOLDS = "holds this key"
"""What the note of a lost row says where another sink, which must agree, has it."""
RECORDS_MAX = 50
"""How many records a finding names."""


@dataclass(frozen=True, order=True)
class Origin:
    """A record of the source and the batch that took it; None if no batch is known to have."""

    partition: int
    offset: int
    batch: int | None = field(default=None, compare=False)


@dataclass(frozen=True, kw_only=True)
class Clues:
    """What is known of one sink's findings: the records by key, the totals by batch, the steps of the schedule."""

    lineage: Mapping[Key, Sequence[Origin]] = field(default_factory=dict)
    totals: Totals | None = None
    steps: tuple[StepOutcome, ...] = ()


def attribute(findings: Sequence[Finding], clues: Clues) -> list[Finding]:
    """The same findings, in the same order, with records, batches, faults and notes filled in."""
    wrong = [finding for finding in findings if finding.kind is Kind.WRONG_AGGREGATE]
    answers = iter(explain(wrong, clues.totals) if clues.totals is not None else [()] * len(wrong))
    return [
        _traced(finding, clues, next(answers) if finding.kind is Kind.WRONG_AGGREGATE else ()) for finding in findings
    ]


def joined(*notes: str) -> str:
    """Several notes as one."""
    return "; ".join(text for text in notes if text)


def faults_of(batches: Iterable[int], steps: Iterable[StepOutcome]) -> tuple[str, ...]:
    """The names of the steps that hit and explain something in `batches`."""
    known = set(batches)
    hits = [step for step in steps if step.hit]
    exact = [step for step in hits if step.batch in known]
    near = [step for step in hits if step.batch is not None and {step.batch - 1, step.batch + 1} & known]
    vague = [step for step in hits if step.batch is None or not known]
    return tuple(_label(step) for step in exact or near or vague)


def together(findings: Sequence[Finding], holders: Mapping[int, set[Key]], *, names: Sequence[str]) -> list[Finding]:
    """Findings of sinks that must agree: the note says which other sinks hold the key that one sink lacks, or lack the
    key that it should not hold. `holders` has the keys that each sink holds, by its place; `names` are the sinks'."""
    return [replace(f, note=joined(f.note, *_elsewhere(f, holders, names))) for f in findings]


def _elsewhere(finding: Finding, holders: Mapping[int, set[Key]], names: Sequence[str]) -> Iterator[str]:
    if finding.kind not in (Kind.LOST, Kind.UNEXPECTED) or finding.position not in holders:
        return
    key = tuple(finding.key.values())
    here = key in holders[finding.position]
    for position, keys in holders.items():
        if position != finding.position and (key in keys) != here:
            yield f"{names[position]} {HOLDS if key in keys else 'lacks this key'}"


def _traced(finding: Finding, clues: Clues, explanation: Sequence[Signed]) -> Finding:
    origins = sorted(clues.lineage.get(tuple(finding.key.values()), ()))
    batches = {batch for _, batch in explanation}
    if batches:
        origins = [origin for origin in origins if origin.batch in batches]
    else:
        batches = {origin.batch for origin in origins if origin.batch is not None}
    batches = batches or _contributing(finding, clues.totals)
    return replace(
        finding,
        records=tuple(RecordRef(partition=o.partition, offset=o.offset) for o in origins[:RECORDS_MAX]),
        batches=tuple(sorted(batches)),
        faults=faults_of(batches, clues.steps),
        note=joined(note(explanation), finding.note),
    )


def _contributing(finding: Finding, totals: Totals | None) -> set[int]:
    key = tuple(finding.key.values())
    return set() if totals is None else {b for b, by_key in totals.contributions.items() if key in by_key}


def _label(step: StepOutcome) -> str:
    where = f" of batch {step.batch}" if step.batch is not None else ""
    return f"{step.name} at {step.window}{where}" if step.window else f"{step.name}{where}"
