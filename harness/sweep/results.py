"""What one run says of each of its cells.

A cell is *held* where its step was injected, something was exposed that counts, no finding names the step, and the
run leaves nothing open; it is *violated* where the step caused a finding that breaks the guarantee. What comes after
a violated cell in the same run is tried again without it: what is wrong already may hide what comes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.scenario import Exposure, Kind, StepOutcome, Verdict, Word

SAYING = (Word.HELD, Word.VIOLATED, Word.UNTESTED)
"""Of a run with another word nothing is said."""


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


@dataclass(frozen=True, kw_only=True)
class _Cell:
    """One cell of a run, its steps having these numbers."""

    place: int
    numbers: tuple[int, ...]
    verdict: Verdict
    folder: Path | None

    @property
    def steps(self) -> list[StepOutcome]:
        """Return what became of its steps, as far as the run came."""
        return [self.verdict.steps[number - 1] for number in self.numbers if number <= len(self.verdict.steps)]

    @property
    def missed(self) -> str:
        """Return why not all its steps were injected; empty if they were."""
        if len(self.steps) < len(self.numbers):
            return "the run ended before it"
        return "; ".join(step.evidence.note or "not injected" for step in self.steps if not step.hit)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Return the kinds of the findings that its steps caused."""
        found = (kind for kind, steps in self.verdict.causes if steps and {*steps} <= {*self.numbers})
        return tuple(dict.fromkeys(found))

    @property
    def exposures(self) -> list[Exposure]:
        """Return what its steps exposed."""
        return [each for each in self.verdict.exposures if each.step in self.numbers]

    @property
    def records(self) -> int:
        """Return how many records a step exposed at most; 0 if no exposure counts."""
        return max((each.records for each in self.exposures if each.counts), default=0)

    def result(self, word: Word, why: str = "") -> Result:
        """Return its result."""
        hit = [step.batch for step in self.steps if step.hit]
        return Result(
            cell=self.place,
            word=word,
            kinds=self.kinds,
            records=self.records,
            batch=hit[0] if hit and not self.missed else None,
            why=why,
            folder=self.folder,
        )


def told(
    verdict: Verdict, cells: Mapping[int, tuple[int, ...]], *, sound: bool, folder: Path | None, last: bool
) -> Told:
    """Return what a run with this verdict says of its cells, in the order of its schedule; `cells` has the numbers of
    their steps. `sound`: all records were committed, the sinks came to rest, and the planted errors were found. `last`:
    nothing is tried again."""
    every = [_Cell(place=place, numbers=numbers, verdict=verdict, folder=folder) for place, numbers in cells.items()]
    results, again, spoilt = list[Result](), list[int](), False
    own = [{*numbers} for numbers in cells.values()]
    unexplained = any(not any(steps and {*steps} <= numbers for numbers in own) for _, steps in verdict.causes)
    for cell in every:
        if cell.kinds:
            results.append(cell.result(Word.VIOLATED))
            spoilt = True
        elif not (cell.missed or spoilt or unexplained) and sound and cell.records and _closed(verdict):
            results.append(cell.result(Word.HELD))
        elif not (cell.missed or spoilt or unexplained) and sound and not cell.records and verdict.word in SAYING:
            results.append(cell.result(Word.UNTESTED, _uncounted(cell)))
        elif not last:
            again.append(cell.place)
        else:
            results.append(
                cell.result(Word.UNTESTED if cell.missed else verdict.word, cell.missed or _reasons(verdict))
            )
    return Told(results=results, again=again)


def _closed(verdict: Verdict) -> bool:
    """Return whether nothing is left open beside what was found: a violation comes before what makes a run
    inconclusive, and so does a step that was missed."""
    return verdict.word is Word.HELD or (verdict.word is Word.VIOLATED and not verdict.reasons)


def _reasons(verdict: Verdict) -> str:
    return "; ".join(verdict.reasons)


def _uncounted(cell: _Cell) -> str:
    """Return why nothing of its steps counts."""
    notes = "; ".join(each.note for each in cell.exposures)
    told = _reasons(cell.verdict) if cell.verdict.word is Word.UNTESTED else ""
    return notes or told or "it exposed nothing that counts; the page of its run says why"
