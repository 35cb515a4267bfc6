"""A sweep on a real stack: watch the pipeline once without faults, crash it at every cell, answer."""

from __future__ import annotations

import json
import shutil
import sys
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
from harness.load import dump, load_all
from harness.report import render
from harness.report.ci import github, junit
from harness.report.escape import visible
from harness.report.summary import Run
from harness.run.baseline.runs import baseline_run
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
from harness.sweep.results import Result, told
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
    """One pipeline, cell by cell."""

    watched: Watched
    state: State
    until_s: float = inf
    """By the monotonic clock: no run begins that would not end by then."""
    results: list[Result] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Return what the answer calls it."""
        return self.watched.scenario.path or self.watched.scenario.name

    @property
    def cells(self) -> Sequence[Cell]:
        """Return its cells."""
        return self.watched.found.cells


def sweep(
    paths: Sequence[Path], options: Options, *, pairs: bool = False, for_s: float = inf, dry_run: bool = False
) -> int:
    """Crash each pipeline of these scenario files at every cell; return the exit code. `pairs`: also the recovery from
    each crash. What would not end within `for_s` is not begun. Raises UsageError, ScenarioError, StackError."""
    until_s = monotonic() + for_s
    scenarios = [on(each, options.spark) for each in load_all(find(paths), effects=True)]
    bases = supported([replace(each, schedule=()) for each in scenarios], options.stack)
    named = {each.path: each.schedule for each in scenarios}
    hit = {name for each in bases for name in component_names(each)}
    stack = stack_of(options, bases, hit=hit)
    with signals(), only_suite(options.reports), up(stack):
        codes = []
        for base in bases:
            watched = _watched(replace(base, schedule=named[base.path]), stack, options, pairs=pairs)
            codes.append(_planned(watched, options) if dry_run else _swept(watched, stack, options, until_s))
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
    outcome = run["outcome"]
    if outcome["error"] or not outcome["caught_up"]:
        why = outcome["error"] or "; ".join(outcome["reasons"])
        raise UsageError(f"asked to sweep {scenario.path}; without faults it does not work: {why}. Mend that first")
    lines = whole(target / "history.jsonl")
    cells = found(lines, scenario, STACKS[options.stack].means, pairs=pairs)
    if not cells.cells:
        raise UsageError(f"asked to sweep {scenario.path}; the stack {options.stack} can inject no fault into it")
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
    for line in _plan(watched, options):
        print(line)
    for cell in watched.found.cells:
        print(visible(f"  {answer.place(cell)}"))
    return 0


def _plan(watched: Watched, options: Options) -> Iterator[str]:
    cells = watched.found.cells
    runs = packed(watched.scenario, cells, range(len(cells)), watched.found.first_batch)
    jobs = jobs_of(options, [run.scenario for run in runs])
    minutes = sum(map(watched.run_s, runs)) / jobs / 60
    yield f"{watched.scenario.name}: {len(cells)} cells in {len(runs)} runs, about {minutes:.0f} minutes"


def _swept(watched: Watched, stack: Stack, options: Options, until_s: float) -> int:
    """Play every cell, as far as the time goes, and again what is to be tried again; print the answer, and return the
    exit code."""
    for line in _plan(watched, options):
        _say(line)
    path = options.reports / f"sweep-{store.slug(watched.scenario.name)}.jsonl"
    state = State(path, watched.digest, watched.found.cells)
    swept = Swept(watched=watched, state=state, until_s=until_s, results=[*state.results])
    if swept.results:
        _say(f"going on: {len(swept.results)} cells are known from before")
    known = {each.cell for each in swept.results}
    left: Sequence[int] = [place for place in range(len(swept.cells)) if place not in known]
    first = watched.found.first_batch
    runs = packed(watched.scenario, swept.cells, left, first)
    suite = Suite(options, progress(jobs=jobs_of(options, [run.scenario for run in runs])))
    try:
        with closing(suite.progress):
            for number, most in enumerate(ROUNDS, 1):
                runs = packed(watched.scenario, swept.cells, left, first, most)
                left = _round(swept, runs, stack, suite, last=number == len(ROUNDS))
    except BaseException:
        _say(f"ended early: {len(swept.results)} of {len(swept.cells)} cells are known; the same command goes on")
        raise
    code = _answer(swept, suite)
    if len(swept.results) == len(swept.cells):
        state.end()
    return code


def _round(swept: Swept, runs: Sequence[Packed], stack: Stack, suite: Suite, *, last: bool) -> list[int]:
    """Play the runs; return the cells to try again."""
    again: list[int] = []
    if not runs:
        return again
    done, work = len(suite.runs), [run.scenario for run in runs]
    jobs = jobs_of(suite.options, work)

    def play(number: int, scenario: Scenario) -> None:
        if monotonic() + swept.watched.run_s(runs[number - 1]) > swept.until_s:
            return
        stack.health()
        total, steps = done + len(work), len(scenario.schedule)
        heard = suite.progress.started(scenario.name, number=done + number, total=total, steps=steps)
        run = one(scenario, stack, options=suite.options, listener=heard)
        cells = numbered(swept.cells, runs[number - 1].cells)
        out = told(run.verdict, cells, sound=_sound(run), folder=run.folder, last=last)
        swept.results += out.results
        swept.state.add(out.results)
        again.extend(out.again)
        suite.add(done + number, run)

    with threads(jobs) as pool:
        if jobs > 1:
            played(work, pool, play)
        else:
            for number, scenario in enumerate(work, 1):
                play(number, scenario)
    return sorted(again)


def _sound(run: Run) -> bool:
    """Return whether all records were committed, the sinks came to rest, and every planted error was found."""
    if run.folder is None:
        return False
    outcome = store.RunFolder.open(run.folder).read("run")["run"].get("outcome") or {}
    settled = outcome.get("caught_up") and not (outcome.get("reasons") or outcome.get("error"))
    tests = run.verdict.self_tests
    return bool(settled and tests and all(tests.values()))


def _answer(swept: Swept, suite: Suite) -> int:
    """Print the sentence, the grid and what says nothing; keep them; return the exit code."""
    cells, results, options = swept.cells, swept.results, suite.options
    code = answer.code(swept.watched.scenario.expect, results)
    sentence, folder = answer.sentence(swept.name, cells, results), store.latest(options.reports)
    kept = {"sweep": swept.name, "sentence": sentence, "exit_code": code, "cells": list(_kept(swept))}
    name = f"sweep-{store.slug(swept.watched.scenario.name)}"
    store.write(folder / f"{name}.json", json.dumps(kept, indent=1, default=str) + "\n")
    if options.junit is not None:
        junit.write(options.junit, suite.runs)
    render.index(options.reports, suite.runs)
    page = pages.write(folder / f"{name}.html", swept.name, cells, results, _failing(swept, options.reports))
    with github.no_commands():
        print("\n".join(map(visible, ["", *answer.grid(cells, results), "", *answer.untold(cells, results)])))
        print(f"\n{visible(sentence)}\nreport: {page}", flush=True)
    return code


def _kept(swept: Swept) -> Iterator[dict[str, object]]:
    known = {each.cell: each for each in swept.results}
    for place, cell in enumerate(swept.cells):
        found = asdict(known[place]) if place in known else {"word": None}
        yield {"place": cell.place, "fault": cell.fault, "batch": cell.batch, "result": found}


def _failing(swept: Swept, reports: Path) -> dict[int, Path]:
    """Write a scenario file for each violated cell, which plays it alone; return them by the place of the cell."""
    watched, out = swept.watched, dict[int, Path]()
    for each in swept.results:
        if each.word is Word.VIOLATED:
            name = f"{watched.scenario.name}: {answer.place(swept.cells[each.cell])}"
            alone = one_cell(watched.scenario, swept.cells, (each.cell,), watched.found.first_batch)
            path = reports / "failing" / f"{store.slug(name)}.yaml"
            path.parent.mkdir(parents=True, exist_ok=True)
            store.write(path, dump(replace(alone, name=name)))
            out[each.cell] = path
    return out


def _say(words: str) -> None:
    print(github.guarded(f"onceproof: {visible(words)}"), file=sys.stderr, flush=True)
