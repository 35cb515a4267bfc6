"""One pipeline, cell by cell: watched once without faults, then crashed at every cell."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from math import inf
from pathlib import Path
from time import monotonic

from harness.errors import UsageError
from harness.fields.paths import project_root
from harness.history import AttemptStarted, BatchPlanned, History, Line, whole
from harness.judge import without_faults
from harness.report.escape import plural
from harness.report.summary import Run
from harness.run.baseline.runs import baseline_run
from harness.run.loop import ready
from harness.run_folder import store
from harness.scenario import Expected, Scenario, Word, plain
from harness.stack import Stack
from harness.stacks.registry import STACKS
from harness.suite import Suite, one
from harness.suite.options import Options
from harness.suite.options import jobs as jobs_of
from harness.suite.side_by_side import played, threads
from harness.sweep.cells import Cell, Found, Passed, found
from harness.sweep.expected import amiss, chosen, expected_at, in_words, unknown
from harness.sweep.packing import MOST, Packed, numbered, packed
from harness.sweep.packing import one as one_cell
from harness.sweep.results import Played, Result
from harness.sweep.rows import row
from harness.sweep.shrink import TRIES, Shrunk, shrink
from harness.sweep.state import State

ROUNDS = (MOST, MOST, 1)
"""Cells of one run at most: all, then what was not reached or came after a violated cell, at last each alone."""
MEND = "Mend that first"


@dataclass(frozen=True, kw_only=True)
class Watched:
    """A pipeline, and what its run without faults showed. `left_out` counts the cells at crash points that the scenario
    does not name; `seconds` is what that run took, `start_s` what a start of the driver takes."""

    scenario: Scenario
    found: Found
    digest: str
    seconds: float
    start_s: float
    left_out: int = 0

    def run_s(self, run: Packed) -> float:
        """Return about how long a run takes, in seconds."""
        return self.seconds + 2 * self.start_s * len(run.scenario.schedule)

    def alone(self, place: int) -> Scenario:
        """Return the scenario that has one cell."""
        return one_cell(self.scenario, self.found.cells, (place,), self.found.first_batch)


@dataclass(kw_only=True)
class Swept:
    """One pipeline, cell by cell, in a suite."""

    watched: Watched
    stack: Stack
    suite: Suite
    state: State
    until_s: float = inf
    """By the monotonic clock: no run begins that would not end by then."""
    results: dict[int, Result] = field(default_factory=dict)
    """By the place of a cell."""
    _begun: int = 0

    @property
    def name(self) -> str:
        """Return what the answer calls it."""
        return self.watched.scenario.path or self.watched.scenario.name

    @property
    def cells(self) -> Sequence[Cell]:
        """Return its cells."""
        return self.watched.found.cells

    @property
    def whole(self) -> bool:
        """Return whether each cell has a result."""
        return len(self.results) == len(self.cells)

    @property
    def every(self) -> list[Result]:
        """Return a result for each cell; one that was not tried is untested."""
        untried = partial(Result, word=Word.UNTESTED, reached=False, why="not tried")
        return [self.results.get(place) or untried(cell=place) for place in range(len(self.cells))]

    def rows(self) -> Iterator[Run]:
        """Yield each cell as a run of the suite. Raises UsageError where a run folder is damaged."""
        every = self.every
        stored = {folder: Run.read(folder) for folder in {each.folder for each in every} if folder is not None}
        for each in every:
            run = stored[each.folder] if each.folder is not None else None
            alone = self.watched.alone(each.cell)
            yield row(self.watched.scenario, self.cells[each.cell], each, alone=alone, stored=run)

    def play(self) -> None:
        """Play every cell, as far as the time goes, and again what is to be tried again."""
        untried = [place for place in range(len(self.cells)) if place not in self.results]
        # What follows a violated cell in its run is played again, so what is expected to be violated comes last.
        left: Sequence[int] = sorted(untried, key=self._may_be_violated)
        for number, most in enumerate(ROUNDS, 1):
            left = self._round(left, most, last=number == len(ROUNDS))
        self._confirm()

    def _may_be_violated(self, place: int) -> bool:
        named = expected_at(self.watched.scenario.verdict, self.cells[place])
        return any(each.kinds for each in named)

    def _round(self, which: Sequence[int], most: int, *, last: bool, jobs: int | None = None) -> list[int]:
        """Play these cells, so many steps in one run; return those to try again."""
        runs = packed(self.watched.scenario, self.cells, which, self.watched.found.first_batch, most)
        again: list[int] = []
        work, done = [run.scenario for run in runs], self._begun
        self._begun += len(work)
        many = jobs or (jobs_of(self.suite.options, work) if work else 1)

        def play(number: int, scenario: Scenario) -> None:
            if monotonic() + self.watched.run_s(runs[number - 1]) <= self.until_s:
                again.extend(self._play(runs[number - 1], done + number, last=last))

        if many == 1:
            # In this thread, the one that is interrupted.
            for number, scenario in enumerate(work, 1):
                play(number, scenario)
        else:
            with threads(many) as pool:
                played(work, pool, play)
        return sorted(again)

    def _play(self, run: Packed, number: int, *, last: bool) -> Sequence[int]:
        scenario, done = run.scenario, self._run(run.scenario, number)
        outcomes = Played(
            verdict=done.verdict,
            cells=numbered(self.cells, run.cells),
            batches=[step.when.batch for step in scenario.schedule],
            first_batch=self.watched.found.first_batch,
            sound=_sound(done),
            last=last,
            folder=done.folder,
        ).outcomes()
        self.results |= {each.cell: each for each in outcomes.results}
        self.state.add(outcomes.results)
        expected = self.watched.scenario.verdict
        fine = not any(amiss(expected, self.cells, outcomes.results))
        verdict = replace(done.verdict, as_expected=fine, expected=self._expected(run))
        self.suite.progress.ended(number, replace(done, verdict=verdict))
        return outcomes.again

    def _expected(self, run: Packed) -> str:
        """Return what is expected of the cells of a run, in words."""
        expected = self.watched.scenario.verdict
        counts = Counter(in_words(expected, self.cells[place]) for place in run.cells)
        words = (f"{word} at {plural(count, 'cell')}" for word, count in counts.items())
        return "; ".join(words) if expected.at else str(expected)

    def _run(self, scenario: Scenario, number: int) -> Run:
        """Return a played run. Its end is not yet reported to the progress, and its folder is needed until the
        answer."""
        self.stack.health()
        steps, options = len(scenario.schedule), replace(self.suite.options, keep="all")
        heard = self.suite.progress.started(scenario.name, number=number, total=self._begun, steps=steps)
        return one(scenario, self.stack, options=options, listener=heard)

    def shrunk(self) -> dict[int, Shrunk]:
        """Play each violated cell alone, made smaller for as long as it breaks in the same way; return what came of it
        by the place of the cell. One for which the time may not do is left out."""
        found = [each.cell for each in self.results.values() if each.word is Word.VIOLATED]
        out: dict[int, Shrunk] = {}
        for place in sorted(found):
            alone, first_batch = self.watched.alone(place), self.watched.found.first_batch
            if monotonic() + TRIES * self.watched.run_s(Packed(scenario=alone, cells=(place,))) <= self.until_s:
                out[place] = shrink(alone, first_batch, partial(self._breaks, place))
        return out

    def _breaks(self, place: int, scenario: Scenario) -> bool:
        """Return whether a run of the scenario is violated as the cell was."""
        self._begun += 1
        done = self._run(scenario, self._begun)
        self.suite.progress.ended(self._begun, replace(done, verdict=replace(done.verdict, as_expected=True)))
        found = {kind for kind, steps in done.verdict.attribution.causes if steps}
        return done.verdict.word is Word.VIOLATED and found == {*self.results[place].kinds}

    def _confirm(self) -> None:
        """Play violated cells again with nothing beside them, where other runs were: two of one program may meet in
        the servers, by a constant `transactional.id`, say."""
        before = {each.cell: each for each in self.results.values() if each.word is Word.VIOLATED}
        if not before or jobs_of(self.suite.options, [self.watched.scenario] * 2) == 1:
            return
        self._round(sorted(before), MOST, last=True, jobs=1)
        for place, each in before.items():
            if self.results[place].word is not Word.VIOLATED:
                why = "it was violated while other runs used the same servers, and was not when it was played alone"
                self.results[place] = replace(each, word=Word.INCONCLUSIVE, why=why)
                self.state.add([self.results[place]])


def watch(scenario: Scenario, stack: Stack, options: Options, *, pairs: bool) -> Watched:
    """Return what a run of the pipeline without faults shows; one that is kept is read again. Raises UsageError where
    the pipeline does not work, or has no crash point, or none of a name that the scenario has."""
    base, root = replace(scenario, schedule=()), project_root(Path(scenario.path))
    folder = store.latest(options.reports) / f"watched-{store.slug(scenario.name)}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    seed = scenario.seed if options.seed is None else options.seed
    ready(base, stack)
    with closing(History(None)) as history:
        target = baseline_run(base, stack, folder=folder, number=1, seed=seed, root=root, portions=(), history=history)
    run = store.RunFolder(target).read()["run"]
    outcome, request = run["outcome"], f"asked to sweep {scenario.path}"
    if outcome["error"] or not outcome["caught_up"]:
        why = outcome["error"] or "; ".join(outcome["reasons"])
        raise UsageError(f"{request}; without faults it does not work: {why}. {MEND}")
    if kinds := without_faults(target):
        raise UsageError(f"{request}; without faults too its sinks are wrong: {', '.join(kinds)}. {MEND}")
    lines = whole(target / "history.jsonl")
    passed = Passed(failpoints=outcome["failpoints"], commit_logs=outcome["commit_logs"], tables=outcome["tables"])
    every = found(lines, base, STACKS[options.stack].means, passed, pairs=pairs)
    if not every.cells:
        why = "Spark's checkpoint shows no batches, or the stack can inject no fault"
        raise UsageError(f"{request}; it has no crash point: {why}. Call `harness.failpoint` in the program")
    if why := unknown(scenario, every.cells):
        raise UsageError(f"{request}; {why}. Name one of these")
    # The first covers all that a run without faults depends on, and not what the scenario claims.
    claimed = plain(replace(base, crash_points=(), verdict=Expected(), why="", tags=(), known=None))
    digest = sha256(f"{run['digest']} {json.dumps(claimed, sort_keys=True, default=str)}".encode()).hexdigest()
    kept = chosen(every.cells, scenario.crash_points)
    return Watched(
        scenario=base,
        found=replace(every, cells=kept),
        left_out=len(every.cells) - len(kept),
        digest=digest,
        seconds=outcome["seconds"],
        start_s=_start_s(lines),
    )


def _start_s(lines: Sequence[Line]) -> float:
    """Return how long the driver took from its launch to its first batch."""
    began = next((line.at_s for line in lines if isinstance(line.event, AttemptStarted)), 0.0)
    return next((line.at_s - began for line in lines if isinstance(line.event, BatchPlanned)), 0.0)


def _sound(run: Run) -> bool:
    """Return whether all records were committed, the sinks came to rest, and every planted error was found."""
    if run.folder is None:
        return False
    outcome = store.RunFolder.open(run.folder).read("run")["run"].get("outcome") or {}
    settled = outcome.get("caught_up") and not (outcome.get("reasons") or outcome.get("error"))
    tests = run.verdict.self_tests
    return bool(settled and tests and all(tests.values()))
