"""A sweep on a real stack: watch the pipeline once without faults, crash it at every cell, answer."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from math import inf
from pathlib import Path
from time import monotonic

from harness.errors import UsageError
from harness.fields.paths import find, project_root
from harness.history import AttemptStarted, BatchPlanned, History, Line, whole
from harness.judge import without_faults
from harness.load import dump, load_all
from harness.report import render
from harness.report.ci import github
from harness.report.escape import visible
from harness.report.summary import Run
from harness.run.baseline.runs import baseline_run, of_ours
from harness.run.loop import ready
from harness.run_folder import store
from harness.scenario import Scenario, Word, plain
from harness.stack import Stack
from harness.stacks.needed_parts import component_names
from harness.stacks.other_lines import on
from harness.stacks.registry import STACKS
from harness.suite import Suite, one, only_suite, signals, supported
from harness.suite.options import Options
from harness.suite.options import jobs as jobs_of
from harness.suite.progress import progress
from harness.suite.side_by_side import played, threads
from harness.suite.suite_stack import stack_of, up
from harness.sweep import answer, pages
from harness.sweep.cells import Cell, Found, found
from harness.sweep.packing import MOST, Packed, numbered, packed
from harness.sweep.packing import one as one_cell
from harness.sweep.results import Played, Result
from harness.sweep.state import State

ROUNDS = (MOST, MOST, 1)
"""Cells of one run at most: all, then what was not reached or came after a violated cell, at last each alone."""


@dataclass(frozen=True, kw_only=True)
class Watched:
    """A pipeline, and what its run without faults showed. `seconds` is what that run took, `start_s` what a start of
    the driver takes."""

    scenario: Scenario
    found: Found
    digest: str
    seconds: float
    start_s: float

    def run_s(self, run: Packed) -> float:
        """Return about how long a run takes, in seconds."""
        return self.seconds + 2 * self.start_s * len(run.scenario.schedule)


@dataclass(kw_only=True)
class Swept:
    """One pipeline, cell by cell, in a suite of all of them."""

    watched: Watched
    stack: Stack
    suite: Suite
    state: State
    until_s: float = inf
    """By the monotonic clock: no run begins that would not end by then."""
    results: dict[int, Result] = field(default_factory=dict)
    """By the place of a cell."""

    @property
    def name(self) -> str:
        """Return what the answer calls it."""
        return self.watched.scenario.path or self.watched.scenario.name

    @property
    def cells(self) -> Sequence[Cell]:
        """Return its cells."""
        return self.watched.found.cells

    def play(self, which: Sequence[int], most: int, *, last: bool, jobs: int | None = None) -> list[int]:
        """Play these cells, so many steps in one run; return those to try again."""
        runs = packed(self.watched.scenario, self.cells, which, self.watched.found.first_batch, most)
        again: list[int] = []
        work, done = [run.scenario for run in runs], len(self.suite.runs)
        many = jobs or (jobs_of(self.suite.options, work) if work else 1)

        def play(number: int, scenario: Scenario) -> None:
            if monotonic() + self.watched.run_s(runs[number - 1]) <= self.until_s:
                again.extend(self._play(runs[number - 1], done + number, done + len(work), last=last))

        if many == 1:
            # In this thread, the one that is interrupted.
            for number, scenario in enumerate(work, 1):
                play(number, scenario)
        else:
            with threads(many) as pool:
                played(work, pool, play)
        return sorted(again)

    def _play(self, run: Packed, number: int, total: int, *, last: bool) -> Sequence[int]:
        scenario = run.scenario
        self.stack.health()
        heard = self.suite.progress.started(scenario.name, number=number, total=total, steps=len(scenario.schedule))
        done = one(scenario, self.stack, options=self.suite.options, listener=heard)
        told = Played(
            verdict=done.verdict,
            cells=numbered(self.cells, run.cells),
            batches=[step.when.batch for step in scenario.schedule],
            first_batch=self.watched.found.first_batch,
            sound=_sound(done),
            last=last,
            folder=done.folder,
        ).told()
        self.results |= {each.cell: each for each in told.results}
        self.state.add(told.results)
        self.suite.add(number, done)
        return told.again


def sweep(
    paths: Sequence[Path], options: Options, *, pairs: bool = False, for_s: float = inf, dry_run: bool = False
) -> int:
    """Crash each pipeline of these scenario files at every cell; return the exit code. `pairs`: also the recovery from
    each crash. What would not end within `for_s` is not begun. Raises UsageError, ScenarioError, StackError."""
    until_s = monotonic() + for_s
    scenarios = [on(each, options.spark) for each in load_all(find(paths), effects=True)]
    if twice := [name for name, count in Counter(store.slug(each.name) for each in scenarios).items() if count > 1]:
        raise UsageError(f"asked to sweep several scenarios that are called {twice[0]}; give each a name of its own")
    bases = supported([replace(each, schedule=()) for each in scenarios], options.stack)
    named = {each.path: each.schedule for each in scenarios}
    stack = stack_of(options, bases, hit={name for each in bases for name in component_names(each)})
    suite, codes = Suite(options, progress(jobs=jobs_of(options, bases))), [0]
    with signals(), only_suite(options.reports), closing(suite.progress), up(stack):
        for base in bases:
            try:
                watched = _watched(replace(base, schedule=named[base.path]), stack, options, pairs=pairs)
            except UsageError as failure:
                _say(str(failure))
                codes.append(4)
                continue
            codes.append(_planned(watched, options) if dry_run else _swept(watched, stack, suite, until_s))
    return max(codes, key=(0, 3, 1, 4).index)


def _watched(scenario: Scenario, stack: Stack, options: Options, *, pairs: bool) -> Watched:
    """Return what a run of the pipeline without faults shows; one that is kept is read again. Raises UsageError where
    the pipeline does not work, or has no cell."""
    base, root = replace(scenario, schedule=()), project_root(Path(scenario.path))
    folder = store.latest(options.reports) / f"watched-{store.slug(scenario.name)}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    seed = scenario.seed if options.seed is None else options.seed
    _say(f"watching {scenario.name} without faults")
    ready(base, stack)
    with closing(History(None)) as history:
        target = baseline_run(
            base, stack, folder=folder, number=1, seed=seed, root=root, portions=None, history=history
        )
    run = store.RunFolder(target).read()["run"]
    outcome, asked = run["outcome"], f"asked to sweep {scenario.path}"
    if outcome["error"] or not outcome["caught_up"]:
        why = outcome["error"] or "; ".join(outcome["reasons"])
        raise UsageError(f"{asked}; without faults it does not work: {why}. Mend that first")
    if kinds := without_faults(target):
        raise UsageError(f"{asked}; without faults too its sinks are wrong: {', '.join(kinds)}. Mend that first")
    lines = whole(target / "history.jsonl")
    cells = found(lines, scenario, STACKS[options.stack].means, pairs=pairs)
    if not cells.cells:
        why = "Spark's checkpoint shows no batches, or the stack can inject no fault"
        raise UsageError(f"{asked}; it has no crash point: {why}. Name failpoints in its schedule")
    # The first covers all that a run without faults depends on, and not what the scenario claims.
    digest = sha256(f"{run['digest']} {json.dumps(plain(base), sort_keys=True, default=str)}".encode()).hexdigest()
    seconds, start_s = float(outcome["seconds"]), _start_s(lines)
    return Watched(scenario=base, found=cells, digest=digest, seconds=seconds, start_s=start_s)


def _start_s(lines: Sequence[Line]) -> float:
    """Return how long the driver took from its launch to its first batch."""
    began = next((line.at_s for line in lines if isinstance(line.event, AttemptStarted)), 0.0)
    return next((line.at_s - began for line in lines if isinstance(line.event, BatchPlanned)), 0.0)


def _planned(watched: Watched, options: Options) -> int:
    """Print the plan; return the exit code."""
    print("\n".join([_plan(watched, options), *(visible(f"  {answer.place(cell)}") for cell in watched.found.cells)]))
    return 0


def _plan(watched: Watched, options: Options) -> str:
    cells = watched.found.cells
    runs = packed(watched.scenario, cells, range(len(cells)), watched.found.first_batch)
    jobs = jobs_of(options, [run.scenario for run in runs])
    minutes = sum(map(watched.run_s, runs)) / jobs / 60
    return f"{watched.scenario.name}: {len(cells)} cells in {len(runs)} runs, about {minutes:.0f} minutes"


def _swept(watched: Watched, stack: Stack, suite: Suite, until_s: float) -> int:
    """Play every cell, as far as the time goes, and again what is to be tried again; print the answer, and return the
    exit code."""
    options, scenario = suite.options, watched.scenario
    _say(_plan(watched, options))
    state = State(options.reports / f"sweep-{store.slug(scenario.name)}.jsonl", watched.digest, watched.found.cells)
    swept = Swept(watched=watched, stack=stack, suite=suite, state=state, until_s=until_s)
    # The digest does not cover the code of kinds that are not ours.
    swept.results |= {each.cell: each for each in state.results if of_ours(scenario)}
    if swept.results:
        _say(f"going on: {len(swept.results)} cells are known from before")
    left: Sequence[int] = [place for place in range(len(swept.cells)) if place not in swept.results]
    try:
        for number, most in enumerate(ROUNDS, 1):
            left = swept.play(left, most, last=number == len(ROUNDS))
        _confirm(swept)
    except BaseException:
        _say(f"ended early: {len(swept.results)} of {len(swept.cells)} cells are known; the same command goes on")
        raise
    code = _answer(swept)
    if len(swept.results) == len(swept.cells):
        state.end()
    return code


def _confirm(swept: Swept) -> None:
    """Play violated cells once more with nothing beside them, where other runs were: two of one program may meet in the
    servers, by a constant `transactional.id`, say."""
    found = {each.cell: each for each in swept.results.values() if each.word is Word.VIOLATED}
    if not found or jobs_of(swept.suite.options, [swept.watched.scenario] * 2) == 1:
        return
    swept.play(sorted(found), MOST, last=True, jobs=1)
    for place, before in found.items():
        if swept.results[place].word is not Word.VIOLATED:
            why = "it was violated while other runs used the same servers, and was not when it was played alone"
            swept.results[place] = replace(before, word=Word.INCONCLUSIVE, why=why)


def _sound(run: Run) -> bool:
    """Return whether all records were committed, the sinks came to rest, and every planted error was found."""
    if run.folder is None:
        return False
    outcome = store.RunFolder.open(run.folder).read("run")["run"].get("outcome") or {}
    settled = outcome.get("caught_up") and not (outcome.get("reasons") or outcome.get("error"))
    tests = run.verdict.self_tests
    return bool(settled and tests and all(tests.values()))


def _answer(swept: Swept) -> int:
    """Print the sentence, the grid and what says nothing; keep them; return the exit code."""
    cells, results, reports = swept.cells, list(swept.results.values()), swept.suite.options.reports
    code = answer.code(swept.watched.scenario.expect, results)
    sentence, folder = answer.sentence(swept.name, cells, results), store.latest(reports)
    kept = {"sweep": swept.name, "sentence": sentence, "exit_code": code, "cells": list(_kept(swept))}
    name = f"sweep-{store.slug(swept.watched.scenario.name)}"
    store.write(folder / f"{name}.json", json.dumps(kept, indent=1, default=str) + "\n")
    render.index(reports, swept.suite.runs)
    page = pages.write(folder / f"{name}.html", swept.name, cells, results, _failing(swept, reports))
    with github.no_commands():
        print("\n".join(map(visible, ["", *answer.grid(cells, results), "", *answer.untold(cells, results)])))
        print(f"\n{visible(sentence)}\nreport: {page}", flush=True)
    return code


def _kept(swept: Swept) -> Iterator[dict[str, object]]:
    for place, cell in enumerate(swept.cells):
        found = asdict(swept.results[place]) if place in swept.results else {"word": None}
        yield {"place": cell.place, "fault": cell.fault, "batch": cell.batch, "result": found}


def _failing(swept: Swept, reports: Path) -> dict[int, Path]:
    """Write a scenario file for each violated cell, which plays it alone, and remove that of any other; return them by
    the place of the cell."""
    watched, seed, out = swept.watched, swept.suite.options.seed, dict[int, Path]()
    base = watched.scenario if seed is None else replace(watched.scenario, seed=seed)
    for place, cell in enumerate(swept.cells):
        name = f"{base.name}: {answer.place(cell)}"
        path = reports / "failing" / f"{store.slug(name)}.yaml"
        path.unlink(missing_ok=True)
        if place in swept.results and swept.results[place].word is Word.VIOLATED:
            path.parent.mkdir(parents=True, exist_ok=True)
            alone = one_cell(base, swept.cells, (place,), watched.found.first_batch)
            store.write(path, dump(placed(replace(alone, name=name), path)))
            out[place] = path
    return out


def placed(scenario: Scenario, path: Path) -> Scenario:
    """Return the scenario for the file at `path`. Where that is in another project, its program has its whole path."""
    root, there, pipeline = project_root(Path(scenario.path)), project_root(path), scenario.pipeline
    if there == root or not (root / pipeline.entry).is_file():
        return scenario
    return replace(scenario, pipeline=replace(pipeline, entry=str((root / pipeline.entry).resolve())))


def _say(words: str) -> None:
    print(github.guarded(f"onceproof: {visible(words)}"), file=sys.stderr, flush=True)
