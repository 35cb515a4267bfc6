"""Ties findings to what they are made of: records (partition, offset), batches, and whole batches that explain a total.

Records: those whose ledger columns carry the finding's key, where the key's columns are columns of the ledger.
Batches: those that hold the records; for a wrong total, the ones that every explanation of it names (`explain`).
What caused a finding is shown by the snapshots, not here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.checkers.compare import Key
from harness.checkers.wrong_total import Option, Totals, explain, note
from harness.scenario import Finding, Kind, RecordRef

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
    """What is known of one sink's findings: the records by key, the totals by batch."""

    lineage: Mapping[Key, Sequence[Origin]] = field(default_factory=dict)
    totals: Totals | None = None


Options = Sequence[Sequence[Option]]
"""Finding by finding, what would explain it if it is a wrong total."""


def explanations(findings: Sequence[Finding], totals: Totals | None) -> Options:
    """Return what would explain each wrong total; nothing where it is not known what each batch gave."""
    wrong = [finding for finding in findings if finding.kind is Kind.WRONG_AGGREGATE]
    answers = iter(explain(wrong, totals) if totals is not None else [()] * len(wrong))
    return [next(answers) if finding.kind is Kind.WRONG_AGGREGATE else () for finding in findings]


def attribute(findings: Sequence[Finding], clues: Clues, options: Options) -> list[Finding]:
    """Return the same findings, in the same order, with records, batches and notes filled in."""
    return [_traced(finding, clues, own) for finding, own in zip(findings, options, strict=True)]


def joined(*notes: str) -> str:
    """Return several notes as one."""
    return "; ".join(text for text in notes if text)


def together(findings: Sequence[Finding], holders: Mapping[int, set[Key]], *, names: Sequence[str]) -> list[Finding]:
    """Return findings of sinks that must agree: whether another sink holds the key that one lacks, or lacks the key
    that it should not hold. `holders` has the keys that each sink holds, by its place; `names` are the sinks'."""
    return [_torn(finding, holders, names) for finding in findings]


def _torn(finding: Finding, holders: Mapping[int, set[Key]], names: Sequence[str]) -> Finding:
    if finding.kind not in (Kind.LOST, Kind.UNEXPECTED) or finding.position not in holders:
        return finding
    key = tuple(finding.key.values())
    here = key in holders[finding.position]
    other = [place for place, keys in holders.items() if place != finding.position and (key in keys) != here]
    words = [f"{names[place]} {'lacks this key' if here else 'holds this key'}" for place in other]
    return replace(finding, torn=bool(other), note=joined(finding.note, *words))


def _traced(finding: Finding, clues: Clues, options: Sequence[Option]) -> Finding:
    origins = sorted(clues.lineage.get(tuple(finding.key.values()), ()))
    batches = {batch for option in options for _, batch in option}
    if batches:
        origins = [origin for origin in origins if origin.batch in batches]
    else:
        batches = {origin.batch for origin in origins if origin.batch is not None}
    batches = batches or set(_contributing(finding, clues.totals))
    return replace(
        finding,
        records=tuple(RecordRef(partition=o.partition, offset=o.offset) for o in origins[:RECORDS_MAX]),
        batches=tuple(sorted(batches)),
        note=joined(note(options), finding.note),
    )


def _contributing(finding: Finding, totals: Totals | None) -> Iterator[int]:
    key = tuple(finding.key.values())
    if totals is not None:
        yield from (batch for batch, by_key in totals.contributions.items() if key in by_key)
