"""The causes as the page shows them: what is known of each, three findings with their rows, the others a line each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from harness.report.budget import FULL, Budget
from harness.report.causes.groups import Group, cut
from harness.report.causes.headline import Case, cause, first_of
from harness.report.causes.sentences import batches, listed, sentences, short
from harness.report.causes.shares import shares
from harness.report.escape import plural, visible
from harness.report.exposures import few
from harness.report.failure_text import place, records, title, where
from harness.report.row_diff import Line, row_diff
from harness.scenario import Finding, Kind, Verdict

MOST_NOTES = 3
ROWS = {Kind.LOST: "missing", Kind.DUPLICATED: "too many", Kind.UNEXPECTED: "too many", Kind.RECOVERED: "recovered"}


@dataclass(frozen=True, kw_only=True)
class FindingText:
    """One finding with its rows side by side."""

    title: str
    place: list[str]
    heads: tuple[str, ...]
    lines: Sequence[Line]
    more: str


@dataclass(frozen=True, kw_only=True)
class GroupText:
    """One cause. `facts` are (name, text), `folded` the findings without their rows: key, rows, batches, records."""

    title: str
    text: str
    facts: list[tuple[str, str]]
    notes: list[str]
    samples: list[FindingText]
    folded: list[tuple[str, str, str, str]]
    more: str


def shown(case: Case, budget: Budget = FULL) -> list[GroupText]:
    """Return every cause within the budget, the largest first."""
    out, space = [], budget.folded
    for group in case.groups[: budget.groups]:
        text = _group(case, group, budget, space)
        space -= len(text.folded)
        out.append(text)
    return out


def findings_summary(groups: Sequence[Group], verdict: Verdict, budget: Budget = FULL) -> str:
    """Return how many findings there are, of how many causes, and where those are that are not shown."""
    if not groups:
        return "None."
    kinds, causes = verdict.kinds(), plural(len(groups), "cause")
    out = f"{plural(sum(kinds[kind] for kind in dict.fromkeys(group.kind for group in groups)), 'finding')}, {causes}."
    if parts := cut(verdict):
        kept = listed([f"the first {first:,} of {count:,} {kind}" for kind, (first, count) in parts.items()])
        out = f"{out[:-1]} among those that are kept. Kept are {kept}; the others were only counted."
    left = len(groups) - budget.groups
    return f"{out} {plural(left, 'more cause')} are in findings.csv." if left > 0 else out


def _group(case: Case, group: Group, budget: Budget, space: int) -> GroupText:
    samples = group.findings[: budget.samples]
    rest = group.findings[budget.samples :]
    folded = rest[: max(0, space)]
    left = len(rest) - len(folded)
    return GroupText(
        title=f"{group.kind.capitalize()}{group.sink and f' in {short(group.sink)}'}: {_many(case, group)}",
        text=" ".join(cause(case, group)),
        facts=list(_facts(case, group)),
        notes=_notes(group),
        samples=[finding_text(finding, case, budget) for finding in samples],
        folded=[_line(finding, budget) for finding in folded],
        more=f"{plural(left, 'more finding')} in findings.csv and verdict.json." if left else "",
    )


def _many(case: Case, group: Group) -> str:
    """Return how many findings a cause has; of a kind that is cut, of how many that are kept."""
    first = first_of(case, group.kind, group.position)
    if not first:
        return plural(len(group.findings), "finding")
    return f"{len(group.findings):,} of the first {first:,} findings"


def _facts(case: Case, group: Group) -> Iterator[tuple[str, str]]:
    """Yield what its findings have together. Those that were only counted may have other batches, records and rows."""
    first = first_of(case, group.kind, group.position)
    of = f" (of the first {first:,})" if first else ""
    if group.batches:
        yield f"Batches{of}", batches(group.batches, group.checkpoint)
    ranges = [str(each) for each in group.ranges()]
    if ranges:
        yield f"Records{of}", "; ".join(few(ranges, 8))
    if shares := list(_shares(case, group)):
        yield f"Of batch {group.batches[0]}'s records", "; ".join(few(shares, 8))
    for fault in group.faults[:4]:
        yield "Fault", _fault(case, fault)
    for fault in group.fits[:4]:
        yield "May fit", _fault(case, fault)
    yield f"Rows{of}", f"{plural(group.copies, 'row')} {ROWS.get(group.kind, 'wrong')}"


def _shares(case: Case, group: Group) -> Iterator[str]:
    for partition, (named, took) in shares(case.verdict, group, case.progressed, case.counts).items():
        yield f"partition {partition}: {named:,} of {plural(took, 'record')}"


def _fault(case: Case, label: str) -> str:
    number = case.labels.get(label)
    if number is None:
        return label
    step = case.verdict.steps[number - 1]
    attempt = f", attempt {step.attempt}" if step.attempt else ""
    return f"fault {number}: {step.name}{where(step.point, step.batch, crash_point=bool(step.crash_point))}{attempt}"


def _notes(group: Group) -> list[str]:
    """Return the notes of its findings, each once."""
    notes = list(dict.fromkeys(finding.note for finding in group.findings if finding.note))
    left = len(notes) - MOST_NOTES
    lines = [" ".join(sentences(note)) for note in notes[:MOST_NOTES]]
    return lines + ([f"{plural(left, 'more note')} in findings.csv."] if left > 0 else [])


def finding_text(finding: Finding, case: Case, budget: Budget = FULL) -> FindingText:
    """Return one finding with its rows side by side."""
    both = row_diff(finding, pairs=2, limit=budget.cell)
    # What they share stands above them.
    where = "; ".join(place(replace(finding, faults=(), fits=(), without_faults=False), case.verdict.steps))
    left = len(both.lines) - budget.columns
    # What differs comes before what only fills the row.
    lines = sorted(both.lines, key=lambda line: line.mark == " ")[: budget.columns] if left > 0 else both.lines
    more = [f"{plural(both.more, 'more row')}"] if both.more else []
    more += [f"{plural(left, 'more column')}"] if left > 0 else []
    return FindingText(
        title=title(finding),
        place=[text for text in (where, finding.note) if text],
        heads=both.heads,
        lines=lines,
        more=f"and {' and '.join(more)}; verdict.json has them all" if more else "",
    )


def _line(finding: Finding, budget: Budget) -> tuple[str, str, str, str]:
    key = ", ".join(
        f"{visible(column, 40)}={'NULL' if value is None else visible(value, budget.cell)}"
        for column, value in finding.key.items()
    )
    return (
        key or "-",
        f"{finding.copies:,}",
        " ".join(map(str, finding.batches[:8])) or "-",
        records(finding.records, 4).removesuffix(" (partition/offset)") if finding.records else "-",
    )
