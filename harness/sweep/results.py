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


@dataclass(frozen=True, kw_only=True)
class Result:
    """What became of one cell, `cell` being its place in the list. `records` is how many were exposed,
    `reached` whether all its steps were injected; `why` says why the word is no better. `steps` are the numbers of its
    steps in the run in `folder`."""

    cell: int
    word: Word
    kinds: tuple[Kind, ...] = ()
    records: int = 0
    steps: tuple[int, ...] = ()
    reached: bool = True
    why: str = ""
    folder: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Outcomes:
    """What one run shows: results, and the cells to try again."""

    results: Sequence[Result] = ()
    again: Sequence[int] = ()


@dataclass(frozen=True, kw_only=True)
class Played:
    """One run of some cells. `cells` has by the place of a cell its steps' numbers, from 1, in the order of the
    schedule; `batches` the batch that each step names, None where it names none; `first_batch` is the first one
    that has records. `sound`: all records were committed, the sinks came to rest, and the planted errors were
    found. `last`: nothing is tried again."""

    verdict: Verdict
    cells: Mapping[int, tuple[int, ...]]
    batches: Sequence[int | None]
    first_batch: int
    sound: bool
    last: bool = False
    folder: Path | None = None

    def outcomes(self) -> Outcomes:
        """Return the results of the run's cells."""
        results, again, spoilt = list[Result](), list[int](), False
        for place, numbers in self.cells.items():
            cell = _Cell(run=self, place=place, numbers=numbers)
            if found := cell.result(spoilt=spoilt):
                results.append(found)
                spoilt = spoilt or found.word is Word.VIOLATED
            elif self.last:
                results.append(cell.given_up())
            else:
                again.append(place)
        return Outcomes(results=results, again=again)

    @property
    def unexplained(self) -> bool:
        """Return whether a finding is caused by no cell, or may be caused by several."""
        own = [{*numbers} for numbers in self.cells.values()]
        causes = self.verdict.attribution.causes
        return any(not any(steps and {*steps} <= numbers for numbers in own) for _, steps in causes)

    @property
    def closed(self) -> bool:
        """Return whether nothing is left open beside what was found: a violation comes before what makes a run
        inconclusive, and so does a step that was missed."""
        word = self.verdict.word
        found = word is Word.HELD or (word is Word.VIOLATED and not self.verdict.reasons)
        return found and self.sound and not self.unexplained and not self.verdict.attribution.cut


@dataclass(frozen=True, kw_only=True)
class _Cell:
    """One cell of a run."""

    run: Played
    place: int
    numbers: tuple[int, ...]

    @property
    def steps(self) -> list[StepOutcome]:
        """Return what became of its steps, as far as the run came."""
        steps = self.run.verdict.steps
        return [steps[number - 1] for number in self.numbers if number <= len(steps)]

    @property
    def missed(self) -> str:
        """Return why not all its steps were injected, in the batch that was asked for; empty if they were."""
        if len(self.steps) < len(self.numbers):
            return "the run ended before it"
        for number, step in zip(self.numbers, self.steps, strict=True):
            wanted = self.run.batches[number - 1]
            if not step.injected:
                return step.evidence.note or "not injected"
            # Alone in its run, a later batch may be any other one than the first.
            any_later = len(self.run.cells) == 1 and wanted != self.run.first_batch
            if wanted is not None and step.batch != wanted and not any_later:
                return f"batch {step.batch} was struck in place of batch {wanted}"
        return ""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Return the kinds of the findings that its steps caused."""
        causes = self.run.verdict.attribution.causes
        return tuple(dict.fromkeys(kind for kind, steps in causes if steps and {*steps} <= {*self.numbers}))

    @property
    def exposures(self) -> list[Exposure]:
        """Return what its steps exposed."""
        return [each for each in self.run.verdict.exposures if each.step in self.numbers]

    @property
    def records(self) -> int:
        """Return how many records a step exposed at most; 0 if no exposure counts."""
        return max((each.records for each in self.exposures if each.counts), default=0)

    def result(self, *, spoilt: bool) -> Result | None:
        """Return its result; None where the run does not tell. `spoilt`: a cell before it is violated."""
        if self.kinds:
            return self._result(Word.VIOLATED)
        known = {*self.run.verdict.attribution.unknown}.isdisjoint(self.numbers)
        if self.missed or spoilt or not known:
            return None
        if self.records:
            return self._result(Word.HELD) if self.run.closed else None
        idle = self.run.closed or (self.run.sound and self.run.verdict.word is Word.UNTESTED)
        return self._result(Word.UNTESTED, self._why()) if idle else None

    def given_up(self) -> Result:
        """Return the result of a cell that is not tried again."""
        word = self.run.verdict.word
        why = "; ".join(self.run.verdict.reasons)
        if self.missed and word is not Word.ERROR:
            return self._result(Word.UNTESTED, self.missed)
        if word in (Word.HELD, Word.VIOLATED):
            word, why = Word.INCONCLUSIVE, why or "something is wrong that no step of it is known to have caused"
        return self._result(word, why)

    def _result(self, word: Word, why: str = "") -> Result:
        return Result(
            cell=self.place,
            word=word,
            kinds=self.kinds,
            records=self.records,
            steps=self.numbers,
            reached=not self.missed,
            why=why,
            folder=self.run.folder,
        )

    def _why(self) -> str:
        """Return why nothing of its steps counts."""
        idle = self.run.verdict.attribution.idle
        words = [each.note for each in self.exposures] + [idle[number] for number in self.numbers if number in idle]
        return "; ".join(dict.fromkeys(words)) or "it exposed nothing"
