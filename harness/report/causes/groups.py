"""Findings that have one cause, as one group: they share kind, sink, faults and what is known of the cause.

Pure. Batches do not divide a group: one fault may cost several of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from harness.scenario import Finding, Kind, RecordRef, Verdict


@dataclass(frozen=True, kw_only=True)
class Group:
    """One cause. `findings` are in the order of the verdict, `batches` those that they name together."""

    kind: Kind
    sink: str
    position: int
    faults: tuple[str, ...]
    fits: tuple[str, ...]
    without_faults: bool
    findings: list[Finding] = field(default_factory=list)

    @property
    def batches(self) -> tuple[int, ...]:
        """The batches that the findings name."""
        return tuple(sorted({batch for finding in self.findings for batch in finding.batches}))

    @property
    def checkpoint(self) -> str:
        """The query that the batches are of, where the run had several."""
        return next((finding.checkpoint for finding in self.findings if finding.checkpoint), "")

    @property
    def copies(self) -> int:
        """Rows that are missing, or too many."""
        return sum(finding.copies for finding in self.findings)

    def ranges(self) -> list[Range]:
        """Return where the records lie that the findings name."""
        return list(ranges({ref for finding in self.findings for ref in finding.records}))


@dataclass(frozen=True, order=True)
class Range:
    """Offsets of one partition, both ends included; `count` of them are named."""

    partition: int
    first: int
    last: int
    count: int

    def __str__(self) -> str:
        where = f"{self.first}" if self.first == self.last else f"{self.first} to {self.last}"
        holes = "" if self.count == self.last - self.first + 1 else f", {self.count:,} of them"
        return f"partition {self.partition}, offset{'' if self.first == self.last else 's'} {where}{holes}"


def ranges(records: Iterable[RecordRef]) -> Iterator[Range]:
    """Yield one range a partition, from the first offset that is named to the last."""
    by_partition: dict[int, list[int]] = {}
    for ref in records:
        by_partition.setdefault(ref.partition, []).append(ref.offset)
    for partition, offsets in sorted(by_partition.items()):
        yield Range(partition, min(offsets), max(offsets), len(offsets))


def groups(findings: Sequence[Finding]) -> list[Group]:
    """Return the causes, the one with most findings first; what is legal last."""
    found: dict[tuple[object, ...], Group] = {}
    for finding in findings:
        where = (finding.position, finding.sink, finding.checkpoint)
        key = (finding.kind, where, finding.faults, finding.fits, finding.without_faults)
        if key not in found:
            found[key] = Group(
                kind=finding.kind,
                sink=finding.sink,
                position=finding.position,
                faults=finding.faults,
                fits=finding.fits,
                without_faults=finding.without_faults,
            )
        found[key].findings.append(finding)
    # The sort is stable: groups of one size stay in the order of the verdict.
    return sorted(found.values(), key=lambda group: (group.kind is Kind.RECOVERED, -len(group.findings)))


def cut(verdict: Verdict) -> dict[Kind, tuple[int, int]]:
    """Return the kinds of which a verdict keeps only the first findings: how many it keeps, of how many."""
    kept, found = Counter(finding.kind for finding in verdict.findings), verdict.kinds()
    return {kind: (count, found[kind]) for kind, count in kept.items() if count < found[kind]}
