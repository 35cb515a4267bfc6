"""The verdict table of a suite: in colour for a terminal, plain for a log. Never colour alone: word and mark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.report.escape import aligned, plural, visible
from harness.report.summary import Run
from harness.scenario import Word

if TYPE_CHECKING:
    from rich.table import Table

HEADS = ("", "verdict", "injected", "seconds", "scenario")
"""The scenario stands last: a narrow terminal wraps it at words."""
COLOURS = {
    Word.HELD: "green",
    Word.VIOLATED: "magenta",
    Word.UNTESTED: "yellow",
    Word.INCONCLUSIVE: "yellow",
    Word.ERROR: "red",
}


def table(runs: Sequence[Run]) -> Table:
    """For a rich console."""
    from rich.table import Table
    from rich.text import Text

    out = Table(box=None, pad_edge=False, header_style="bold")
    for head in HEADS:
        right = head in {"seconds", "injected"}
        out.add_column(head, justify="right" if right else "left", overflow="fold", no_wrap=head != "scenario")
    for run in runs:
        row = [Text(text) for text in cells(run)]
        row[0].stylize(colour(run))
        row[1].stylize(COLOURS[run.verdict.word])
        out.add_row(*row)
    return out


def text(runs: Sequence[Run]) -> str:
    """For a log: the same cells in aligned columns, and a last line that counts."""
    return "\n".join([*aligned([HEADS, *map(cells, runs)]), tally(runs)])


def tally(runs: Sequence[Run]) -> str:
    """`18 runs: 18 as expected` or `18 runs: 16 as expected, 2 not (1 violated, 1 untested)`."""
    wrong = [run.verdict.word for run in runs if run.wrong]
    known = sum(bool(run.known) for run in runs)
    good = f"{plural(len(runs), 'run')}: {len(runs) - len(wrong) - known} as expected"
    counted = ", ".join(f"{wrong.count(word)} {word}" for word in Word if word in wrong)
    new = f", {len(wrong)} not ({counted})" if wrong else ""
    return f"{good}{new}{f', {known} known to fail' if known else ''}"


def mark(run: Run) -> str:
    """`ok` if the verdict is what the scenario expects, `known` if an issue says that it is worked on, else `!!`."""
    return "!!" if run.wrong else "known" if run.known else "ok"


def colour(run: Run) -> str:
    """Of its mark."""
    return "bold red" if run.wrong else "yellow" if run.known else "green"


def cells(run: Run) -> tuple[str, ...]:
    """Return one row of the table, by `HEADS`; every cell is visible text. The scenario has its findings behind it, and
    what was expected where that did not come."""
    verdict, (injected, steps) = run.verdict, run.injections()
    more = [f"{count:,} {kind}" for kind, count in verdict.kinds().items()]
    more += [f"expected {visible(verdict.expected, 60)}"] if not verdict.as_expected and verdict.expected else []
    return (
        mark(run),
        verdict.word.value,
        f"{injected}/{steps}" if steps else "-",
        f"{run.seconds:.1f}",
        visible(run.scenario, 90) + (f" ({', '.join(more)})" if more else ""),
    )
