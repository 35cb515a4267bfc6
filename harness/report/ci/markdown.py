"""The summary of a step in Markdown: a table of the runs, those that need a reader first, and what each of them says.

Data under test is text in it: it is in `<code>`, and every ASCII sign but blank and dash is a character reference. So
it makes no link, image, table cell, HTML or mention.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.report import table
from harness.report.ci import run_text
from harness.report.escape import visible
from harness.report.failure_text import more_findings, title
from harness.report.summary import WORST_FIRST, Run, exit_code

MOST_BYTES = 256 * 1024
MOST_FINDINGS = 3
CELL = 200
HEADS = ("", "scenario", "expected", "verdict", "findings", "injected", "seconds", "seed", "run folder")
LEFT_OUT = "\nThe rest is left out: a step's summary can hold no more.\n"


def summary(runs: Sequence[Run], *, most_bytes: int = MOST_BYTES) -> str:
    """Return the whole text, of `most_bytes` at most; empty if not even its heading fits."""
    out: list[str] = []
    left = most_bytes - len(LEFT_OUT.encode())
    for block in _blocks(sorted(runs, key=_worst)):
        left -= len(block.encode())
        if left < 0:
            return "".join([*out, LEFT_OUT]) if out else ""
        out.append(block)
    return "".join(out)


def escaped(text: str, limit: int = CELL) -> str:
    """Return a text as a piece of inline code that shows exactly that."""
    shown = visible(text, limit)
    safe = "".join(char if char.isalnum() or char in " -" or ord(char) > 0x7F else f"&#{ord(char)};" for char in shown)
    return f"<code>{safe}</code>" if safe else ""


def _worst(run: Run) -> tuple[bool, int]:
    return not run.wrong, WORST_FIRST.index(run.verdict.word)


def _blocks(runs: Sequence[Run]) -> Iterator[str]:
    yield f"## Onceproof\n\n{table.tally(runs)}; exit code {exit_code(runs)}\n\n"
    yield f"| {' | '.join(HEADS)} |\n|{' --- |' * len(HEADS)}\n"
    for run in runs:
        yield f"| {' | '.join(_cells(run))} |\n"
    for run in runs:
        if run.wrong:
            yield _not_as_expected(run)
        elif run.known:
            yield f"\n### known: {escaped(run.scenario)}\n\n- {escaped(run.known)}\n"


def _cells(run: Run) -> tuple[str, ...]:
    verdict, (injected, steps) = run.verdict, run.injections()
    return (
        table.mark(run),
        escaped(run.scenario),
        escaped(verdict.expected, 60),
        verdict.word.value,
        ", ".join(f"{count:,} {kind}" for kind, count in verdict.kinds().items()) or "-",
        f"{injected} of {steps}" if steps else "-",
        f"{run.seconds:.1f}",
        "" if run.seed is None else str(run.seed),
        escaped(str(run.folder)) if run.folder else "",
    )


def _not_as_expected(run: Run) -> str:
    """Return the part of a run that is not as expected: its reasons, a few findings, the command that repeats it."""
    reasons = [reason.partition("\n")[0] for reason in run.verdict.reasons]
    findings = [title(each) for each in run.verdict.findings[:MOST_FINDINGS]]
    lines = [*reasons[:MOST_FINDINGS], *findings]
    lines += filter(None, [more_findings(run.verdict, MOST_FINDINGS)])
    again = run_text.command(run)
    out = [f"\n### {run.verdict.word.value}: {escaped(run.scenario)}\n\n", *(f"- {escaped(each)}\n" for each in lines)]
    return "".join([*out, f"\nRepeat it: {escaped(again, 1000)}\n" if again else ""])
