"""What a failed run says in the terminal and in pytest: which records, which batch, which fault, which crash point;
the ledger's row and the sink's row beside each other; the report's path; last, the command that repeats it.

A terminal has it in brief, with the evidence left out; a run folder, `--junit` and `-v` have all of it. Pure: it reads
no file.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness.report import exposures
from harness.report.causes.groups import Group, cut, groups
from harness.report.escape import aligned, cell, plural, visible
from harness.report.row_diff import row_diff
from harness.scenario import Evidence, Finding, Kind, RecordRef, StepOutcome, Verdict, Word

MOST = 10
"""Findings that are shown in full."""
OF_A_CAUSE = 3
"""Of each cause, before more of the largest are."""
CELL = 40
LINES = 40
BRIEF = 3
"""Findings and reasons that a terminal has."""


def failure(
    scenario: str,
    verdict: Verdict,
    folder: Path | None,
    *,
    stack_options: str = "",
    again: str = "",
    left: Sequence[str] = (),
    brief: bool = False,
) -> str:
    """Return the whole text, or in brief that without evidence and rows. `folder` is the run folder, None if the run
    failed before it had one; `stack_options` is what a command line says to get its stack. `again` is the command that
    repeats it where there is no folder, or where the stored plan would fail again. `left` are sentences on why it is
    inconclusive."""
    last = _last(folder, stack_options, again)
    if verdict.word is Word.ERROR and again:
        last = [*([f"report: {folder / 'report.html'}"] if folder else []), f"again:  {again}"]
    body = _brief(verdict, left) if brief else _whole(verdict, left)
    return "\n".join([headline(scenario, verdict), *body, *([""] if last and not brief else []), *last])


def _whole(verdict: Verdict, left: Sequence[str]) -> Iterator[str]:
    yield from (line for reason in verdict.reasons for line in because(reason))
    yield from (f"  {visible(text, 400)}" for text in left)
    for number, step in enumerate(verdict.steps, start=1):
        exposed = (f"  {line}" for line in exposures.of_step(verdict, number))
        yield from (f"  {line}" for line in (*step_lines(step), *exposed))
    yield from (f"  {line}" for line in (*exposures.noted(verdict), *exposures.lines(verdict)))
    for number, finding in enumerate(_chosen(verdict.findings), start=1):
        yield from ("", *_finding(number, finding, verdict.steps))
    if more := more_findings(verdict, MOST):
        yield from ("", f"  {more}")


def _brief(verdict: Verdict, left: Sequence[str]) -> Iterator[str]:
    yield from (f"  {line}" for line in reasons(verdict, left))
    yield from (f"  {step_lines(step)[0]}" for step in verdict.steps if not step.injected)
    shown = [exposures.what(each, verdict) for each in verdict.exposures if each.counts]
    yield from (f"  exposed: {line}" for line in exposures.few(shown, BRIEF))
    causes = groups(verdict.findings)
    yield from (f"  found: {_of_cause(group, verdict.steps)}" for group in causes[:BRIEF])
    if more := more_findings(verdict, sum(len(group.findings) for group in causes[:BRIEF])):
        yield f"  {more}"


def _of_cause(group: Group, steps: Sequence[StepOutcome]) -> str:
    """Return the findings of one cause on a line: `104 duplicated in postgres payments, the first id=205 (batch 3;
    after ...)`."""
    first, many = group.findings[0], len(group.findings)
    # What they share; each has other records.
    known = "; ".join(place(first if many == 1 else replace(first, records=(), batches=group.batches), steps))
    # One of no sink has no row: its note says what it is.
    note = "" if first.sink or not first.note else f": {visible(first.note, 400)}"
    text = title(first) if many == 1 else f"{many:,} {_in(first)}" + (f", the first {key(first)}" if first.key else "")
    return f"{text}{note}{f' ({known})' if known else ''}"


def reasons(verdict: Verdict, left: Sequence[str] = ()) -> list[str]:
    """Return why a verdict is no better, a line each; `left` are more reasons."""
    lines = [visible(exposures.ends(reason), 600) for reason in (*verdict.reasons, *left)]
    return [f"because: {line}" for line in exposures.few(lines, BRIEF)]


def because(reason: str) -> list[str]:
    """Return a reason as lines. A reason with more lines ends with those of a log, of which the last count."""
    first, *rest = reason.splitlines() or [""]
    return [f"  because: {visible(first)}", *(f"    {visible(line, 300)}" for line in rest[-LINES:])]


def more_findings(verdict: Verdict, shown: int) -> str:
    """Return `and 99,990 more findings (the run folder has the first 1,000 of 100,000 duplicated)` after `shown` ones;
    empty if there are no more."""
    kinds = verdict.kinds()
    left = sum(kinds[kind] for kind in {finding.kind for finding in verdict.findings}) - shown
    if left <= 0:
        return ""
    kept = [f"the first {first:,} of {count:,} {kind}" for kind, (first, count) in cut(verdict).items()]
    return f"and {left:,} more findings" + (f" (the run folder has {', '.join(kept)})" if kept else "")


def headline(scenario: str, verdict: Verdict) -> str:
    """`VIOLATED (3 duplicated), expected held: name of the scenario`."""
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in verdict.kinds().items())
    word = f"{verdict.word.value.upper()}{f' ({kinds})' if kinds else ''}"
    return f"{word}, expected {visible(verdict.expected, 100)}: {visible(scenario, 200)}"


def title(finding: Finding) -> str:
    """`duplicated in postgres payments: id=17, 2 copies too many`."""
    text = _in(finding) + (f": {key(finding)}" if finding.key else "")
    if finding.kind not in {Kind.LOST, Kind.DUPLICATED, Kind.UNEXPECTED}:
        return text
    # One row missing or too many goes without saying, but for a duplicate: its two sides look the same.
    if finding.copies == 1 and finding.kind is not Kind.DUPLICATED:
        return text
    return f"{text}, {plural(finding.copies, 'row')} {'missing' if finding.kind is Kind.LOST else 'too many'}"


def _in(finding: Finding) -> str:
    return f"{finding.kind} in {visible(finding.sink, 100)}" if finding.sink else str(finding.kind)


def key(finding: Finding) -> str:
    """`id=17`, of several columns `account=7, day=1`."""
    return ", ".join(f"{visible(column, 60)}={cell(value, CELL)}" for column, value in finding.key.items())


def place(finding: Finding, steps: Sequence[StepOutcome]) -> list[str]:
    """Return where it came from: records, batches, the faults that caused it or may have, with crash point and attempt;
    a part that is not known is left out."""
    out = []
    if finding.records:
        out.append(f"{'record' if len(finding.records) == 1 else 'records'} {records(finding.records)}")
    if finding.batches:
        few = ", ".join(str(batch) for batch in finding.batches[:8])
        more = f" and {len(finding.batches) - 8:,} more" if len(finding.batches) > 8 else ""
        query = f" of {visible(finding.checkpoint, 60)}" if finding.checkpoint else ""
        out.append(f"{'batch' if len(finding.batches) == 1 else 'batches'} {few}{more}{query}")
    known = _by_label(steps)
    out += [f"after {visible(fault, 200)}{known.get(fault, '')}" for fault in finding.faults]
    if finding.fits:
        few = ", or ".join(visible(fault, 200) for fault in finding.fits[:8])
        more = f", or {len(finding.fits) - 8:,} more" if len(finding.fits) > 8 else ""
        out.append(f"may be explained by {few}{more}; the evidence does not tell")
    return out + (["also without faults"] if finding.without_faults else [])


def _by_label(steps: Sequence[StepOutcome]) -> dict[str, str]:
    """Return what a fault's name leaves unsaid, by name: its crash point if it is the step's own, and the attempt it
    struck. A name that several steps have says nothing of one of them."""
    out: dict[str, str] = {}
    for step in steps:
        attempt = f", attempt {step.attempt}" if step.attempt else ""
        batch = "" if step.batch is None else f" of batch {step.batch}"
        point = f" at {visible(step.point, 60)}" if step.point else ""
        for name, more in ((step.name, point + attempt), (f"{step.name} at {step.point}{batch}", attempt)):
            out[name] = more if out.get(name, more) == more else ""
    return out


def records(refs: Sequence[RecordRef], most: int = 8) -> str:
    """`0/204, 0/205 and 12 more`: partition/offset."""
    few = ", ".join(f"{ref.partition}/{ref.offset}" for ref in refs[:most])
    return few + (f" and {len(refs) - most:,} more" if len(refs) > most else "") + " (partition/offset)"


def step_lines(step: StepOutcome) -> list[str]:
    """Return one step and, indented, what proves it."""
    at = "" if step.at_s is None else f", at {step.at_s:.2f} s"
    word = "injected" if step.injected else "MISSED"
    place = where(step.point, step.batch, crash_point=step.crash_point is not None) + _of(step.checkpoint)
    attempt = f", attempt {step.attempt}" if step.attempt else ""
    head = f"{word}: {visible(step.name, 120)}{place}{attempt}{at}"
    return [head, *(f"  {line}" for line in evidence_lines(step.evidence))]


def _of(checkpoint: str) -> str:
    """Return which query was struck, where its checkpoint is not the only one of the run's folder."""
    parent, _, name = checkpoint.rpartition("/")
    return f" of the query {visible(name, 60)}" if parent else ""


def where(point: str, batch: int | None, *, crash_point: bool) -> str:
    """` at sink-committed of batch 3`; of what is no crash point `, after 300 records sent, batch 3`."""
    at, of = (" at", " of") if crash_point else (",", ",")
    of_batch = "" if batch is None else f"{of} batch {visible(str(batch), 30)}"
    return (f"{at} {visible(point, 80)}" if point else "") + of_batch


def evidence_lines(evidence: Evidence) -> list[str]:
    """Return what proves that a fault happened, a line a kind of proof."""
    out = []
    if evidence.signalled:
        faulted = "; ".join(f"{visible(name, 60)}: {visible(how, 60)}" for name, how in evidence.signalled.items())
        out.append(f"signalled: {faulted}")
    if evidence.checkpoint_before or evidence.checkpoint_after:
        before, after = _listing(evidence.checkpoint_before), _listing(evidence.checkpoint_after)
        out.append(f"checkpoint before: {before}; after: {after}")
    if evidence.rows_seen is not None:
        out.append(f"rows that the row breakpoint counted: {evidence.rows_seen:,}")
    out += [f"in flight: {visible(evidence.in_flight, 200)}"] if evidence.in_flight else []
    return out + ([f"note: {visible(evidence.note, 400)}"] if evidence.note else [])


def _listing(checkpoint: Mapping[str, Sequence[int]]) -> str:
    return ", ".join(f"{visible(name, 40)} {numbers(batches)}" for name, batches in checkpoint.items()) or "nothing"


def numbers(batches: Sequence[int]) -> str:
    """`0-3`, `0 2`, `none`."""
    if not batches:
        return "none"
    whole = list(batches) == list(range(batches[0], batches[-1] + 1)) and len(batches) > 2
    return f"{batches[0]}-{batches[-1]}" if whole else " ".join(str(batch) for batch in batches[-20:])


def shown_first(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings that any text about a run shows in full: those shown here, and the first that were found."""
    return [*_chosen(findings), *findings[:MOST]]


def _chosen(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings to show: some of each cause within the limit, the largest cause first, legal ones last."""
    causes = groups(findings)
    some = [finding for group in causes for finding in group.findings[:OF_A_CAUSE]][:MOST]
    rest = [finding for group in causes for finding in group.findings[OF_A_CAUSE:]]
    taken = {id(finding) for finding in [*some, *rest[: MOST - len(some)]]}
    return [finding for group in causes for finding in group.findings if id(finding) in taken]


def _finding(number: int, finding: Finding, steps: Sequence[StepOutcome]) -> list[str]:
    known = "; ".join(place(finding, steps))
    out = [f"  {number}. {title(finding)}"] + ([f"     {known}"] if known else [])
    out += [f"     {visible(finding.note, 400)}"] if finding.note else []
    return out + [f"     {line}" for line in rows(finding)]


def rows(finding: Finding) -> list[str]:
    """Return the ledger's and the sink's rows side by side in aligned columns, `!` before a column that differs."""
    both = row_diff(finding, limit=CELL)
    if not both.lines:
        return []
    grid = [(" ", "", *both.heads), *((line.mark, visible(line.column, 60), *line.cells) for line in both.lines)]
    return aligned(grid) + ([f"   and {plural(both.more, 'more row')}"] if both.more else [])


def _last(folder: Path | None, stack_options: str, again: str) -> list[str]:
    if folder is None:
        return [f"again:  {again}"] if again else []
    command = " ".join(["onceproof replay", shlex.quote(str(folder)), *stack_options.split()])
    return [f"report: {folder / 'report.html'}", f"again:  {command}"]


def meaning(word: Word) -> str:
    """Return what a verdict's word means, in one sentence."""
    return {
        Word.HELD: "a pipeline that appends or loses what was exposed would have been caught, and the guarantee held",
        Word.VIOLATED: "the guarantee is disproved: the findings below are rows that contradict it",
        Word.UNTESTED: "nothing was tested: this run says neither that the guarantee holds nor that it does not",
        Word.INCONCLUSIVE: "the run could not tell: its reasons say what was left open",
        Word.ERROR: "no verdict: the set-up, `expected` or the surroundings failed; nothing is said of the guarantee",
    }[word]
