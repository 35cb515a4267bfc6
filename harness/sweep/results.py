"""What one run says of each of its cells.

A cell is *held* where its step was injected, something was exposed that counts, and no finding names the step; it is
*violated* where the step caused a finding that breaks the guarantee. What comes after a violated cell in the same run
is tried again without it: what is wrong already may hide what comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.scenario import Exposure, Kind, Verdict, Word


@dataclass(frozen=True, kw_only=True)
class Result:
    """What became of one cell, `cell` being its place in the list. `records` is how many were exposed, `why` says why
    the word is no better."""

    cell: int
    word: Word
    kinds: tuple[Kind, ...] = ()
    records: int = 0
    batch: int | None = None
    why: str = ""
    folder: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Told:
    """What one run tells: results, and the cells to try again."""

    results: Sequence[Result] = ()
    again: Sequence[int] = ()


@dataclass(kw_only=True)
class _Reading:
    """One run, read cell by cell."""

    verdict: Verdict
    sound: bool
    folder: Path | None
    last: bool
    """No cell of it is tried again."""
    results: list[Result] = field(default_factory=list)
    again: list[int] = field(default_factory=list)

    def result(self, cell: int, word: Word, number: int, why: str = "") -> Result:
        """Return the result of a cell, whose step has that number."""
        verdict = self.verdict
        step = verdict.steps[number - 1] if number <= len(verdict.steps) else None
        return Result(
            cell=cell,
            word=word,
            kinds=verdict.caused.get(number, ()),
            records=max((each.records for each in self.exposed(number)), default=0),
            batch=step.batch if step and step.hit else None,
            why=why,
            folder=self.folder,
        )

    def exposed(self, number: int) -> list[Exposure]:
        """Return what the step exposed that counts."""
        return [each for each in self.verdict.exposures if each.step == number and each.counts]

    def retry(self, cell: int, word: Word, number: int, why: str) -> None:
        """Try the cell again, or say why it has no better word."""
        if self.last:
            self.results.append(self.result(cell, word, number, why))
        else:
            self.again.append(cell)


def told(verdict: Verdict, cells: Sequence[int], *, sound: bool, folder: Path | None, last: bool) -> Told:
    """Return what a run with this verdict says of its cells, in the order of its schedule. `sound`: all records were
    committed, the sinks came to rest, and the planted errors were found. `last`: nothing is tried again."""
    run = _Reading(verdict=verdict, sound=sound, folder=folder, last=last)
    spoilt = False
    unexplained = any(not each.faults and not each.without_faults for each in verdict.findings)
    for number, cell in enumerate(cells, 1):
        step = verdict.steps[number - 1] if number <= len(verdict.steps) else None
        if number in verdict.caused:
            run.results.append(run.result(cell, Word.VIOLATED, number))
            spoilt = True
        elif step is None or not step.hit:
            run.retry(cell, Word.UNTESTED, number, step.evidence.note if step else "the run ended before it")
        elif spoilt or unexplained or not sound:
            run.retry(cell, verdict.word, number, "; ".join(verdict.reasons))
        elif run.exposed(number):
            run.results.append(run.result(cell, Word.HELD, number))
        else:
            run.results.append(run.result(cell, Word.UNTESTED, number, _uncounted(verdict, number)))
    return Told(results=run.results, again=run.again)


def _uncounted(verdict: Verdict, number: int) -> str:
    """Return why nothing of a step counts."""
    words = [each.note for each in verdict.exposures if each.step == number]
    return "; ".join(words) or "nothing was in flight that could be lost or repeated"
