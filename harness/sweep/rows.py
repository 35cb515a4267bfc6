"""A cell as one run of a suite, for JUnit, the summary and pytest: of the run that played it, what is its own."""

from __future__ import annotations

from dataclasses import replace

from harness.report.many.about import planned
from harness.report.summary import Run
from harness.scenario import Scenario, Verdict, Word
from harness.sweep import answer
from harness.sweep.cells import Cell
from harness.sweep.expected import as_expected, in_words
from harness.sweep.results import Result


def row(scenario: Scenario, cell: Cell, result: Result, *, alone: Scenario, stored: Run | None) -> Run:
    """Return the cell as a run; `alone` is the scenario that has only this cell, `stored` the run that played it, None
    if none did."""
    played = stored or Run(scenario=scenario.name, verdict=Verdict(word=Word.UNTESTED, as_expected=False, expected=""))
    verdict = replace(
        own(played.verdict, result.steps),
        word=result.word,
        as_expected=as_expected(scenario.verdict, cell, result),
        expected=in_words(scenario.verdict, cell),
        reasons=(result.why,) if result.why else (),
    )
    return replace(
        played,
        scenario=f"{scenario.name}: {answer.place(cell)}",
        verdict=verdict,
        seconds=played.seconds * len(result.steps) / max(1, len(played.verdict.steps)),
        file=scenario.path,
        about=replace(planned(alone), started=played.about.started, spark=played.about.spark),
    )


def own(verdict: Verdict, steps: tuple[int, ...]) -> Verdict:
    """Return what a verdict says of some of its steps, by their numbers from 1."""
    labels = {verdict.attribution.labels.get(number) for number in steps}
    return replace(
        verdict,
        steps=tuple(verdict.steps[number - 1] for number in steps if number <= len(verdict.steps)),
        exposures=tuple(
            replace(each, step=steps.index(each.step) + 1) for each in verdict.exposures if each.step in steps
        ),
        findings=tuple(each for each in verdict.findings if (by := each.faults or each.fits) and labels.issuperset(by)),
        # Of all findings of the run; there are no more of the cell than are kept.
        counts={},
    )
