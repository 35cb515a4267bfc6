"""Scenarios put to the test on a real stack: their schedules played, or their pipelines swept; and the answers."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from pathlib import Path
from time import monotonic

from harness.errors import HarnessError, OwnCodeError, StackError, UsageError
from harness.fields.paths import find, project_root
from harness.fields.values import ALL
from harness.load import dump, load_all
from harness.report.ci import github
from harness.report.escape import visible
from harness.report.summary import Run, exit_code
from harness.run.baseline.runs import of_ours
from harness.run_folder import store
from harness.scenario import Scenario, Word
from harness.stack import Stack
from harness.stacks.other_versions import on
from harness.suite import Further, Suite, run_all, supported, unjudged, worst
from harness.suite.options import Options
from harness.suite.options import jobs as jobs_of
from harness.suite.suite_stack import addressed
from harness.sweep import answer, pages
from harness.sweep.expected import amiss
from harness.sweep.packing import packed
from harness.sweep.shrink import Shrunk
from harness.sweep.since import changed
from harness.sweep.state import State
from harness.sweep.swept import Swept, Watched, watch


@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """What is asked of a sweep. `pairs`: also a crash in the recovery from each; `for_s`: what would not end within it
    is not begun; `dry_run`: no crash; `since`: only pipelines of which a file has changed since that commit of git;
    `shrink`: violated cells are played again, smaller for as long as they break."""

    pairs: bool = False
    for_s: float = inf
    dry_run: bool = False
    since: str = ""
    shrink: bool = False


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What became of one pipeline: the exit code, a sentence, and each cell as a run of the suite."""

    code: int
    sentence: str
    rows: Sequence[Run] = ()
    page: Path | None = None


def run(paths: Sequence[Path], options: Options) -> int:
    """Play the schedule of every scenario under `paths`, and sweep the pipelines of those that have crash points;
    return the exit code. Raises UsageError, ScenarioError, StackError."""
    scenarios = _loaded(paths, options)
    if options.skip_unsupported:
        scenarios = addressed(supported(scenarios, options.stack), options)
    swept = [each for each in scenarios if each.crash_points]
    if swept and options.repeat > 1:
        raise UsageError(f"asked to --repeat {swept[0].path}, whose crash points are swept; leave out --repeat, or it")
    work = [each for each in scenarios if not each.crash_points for _ in range(options.repeat)]
    return run_all(work, options, _further(swept, SweepOptions()) if swept else None)


def sweep(paths: Sequence[Path], options: Options, sweep_options: SweepOptions) -> int:
    """Crash each pipeline of these scenario files at every crash point that it has; return the exit code. Raises
    UsageError, ScenarioError, StackError."""
    scenarios = [
        replace(each, schedule=(), crash_points=each.crash_points or (ALL,)) for each in _loaded(paths, options)
    ]
    if sweep_options.since:
        scenarios = changed(scenarios, sweep_options.since)
        _notify(f"{len(scenarios)} scenarios have changed since {sweep_options.since}")
        if not scenarios:
            return 0
    return run_all([], options, _further(supported(scenarios, options.stack), sweep_options))


def _loaded(paths: Sequence[Path], options: Options) -> list[Scenario]:
    return [on(each, options.spark) for each in load_all(find(paths), queries=True)]


def _further(scenarios: Sequence[Scenario], sweep_options: SweepOptions) -> Further:
    """Return the sweeps of these scenarios, for a suite. Raises UsageError where two would have one name."""
    until_s = monotonic() + sweep_options.for_s
    if twice := [name for name, count in Counter(store.slug(each.name) for each in scenarios).items() if count > 1]:
        raise UsageError(f"asked to sweep several scenarios that are called {twice[0]}; give each another name")

    def play(stack: Stack, suite: Suite) -> int:
        codes = [0]
        for scenario in scenarios:
            _notify(f"watching {scenario.name} without faults")
            try:
                watched = watch(scenario, stack, suite.options, pairs=sweep_options.pairs)
                if sweep_options.dry_run:
                    print("\n".join([_plan(watched, suite.options), *_listed(watched)]))
                else:
                    codes.append(swept(watched, stack, suite, until_s=until_s, smaller=sweep_options.shrink).code)
            except HarnessError as failure:
                if isinstance(failure, StackError) and not isinstance(failure, OwnCodeError):
                    raise
                _notify(str(failure))
                failed = unjudged(scenario, suite.options, stack=stack.name, why=str(failure))
                suite.keep([(len(suite.runs) + 1, failed)])
                codes.append(4)
        return worst(codes)

    return Further(needs=scenarios, play=play)


def _listed(watched: Watched) -> Iterator[str]:
    return (visible(f"  {answer.place(cell)}") for cell in watched.found.cells)


def _plan(watched: Watched, options: Options) -> str:
    cells = watched.found.cells
    runs = packed(watched.scenario, cells, range(len(cells)), watched.found.first_batch)
    jobs = jobs_of(options, [run.scenario for run in runs])
    minutes = sum(map(watched.run_s, runs)) / jobs / 60
    left = f"; {watched.left_out} left out by crash_points" if watched.left_out else ""
    return f"{watched.scenario.name}: {len(cells)} cells in {len(runs)} runs, about {minutes:.0f} minutes{left}"


def swept(watched: Watched, stack: Stack, suite: Suite, *, until_s: float = inf, smaller: bool = False) -> Answer:
    """Crash a pipeline at each of its cells, go on where an earlier sweep was ended, print the answer and write its
    page. `smaller`: the scenarios of violated cells are shrunk."""
    options, scenario = suite.options, watched.scenario
    _notify(_plan(watched, options))
    state = State(options.reports / f"sweep-{store.slug(scenario.name)}.jsonl", watched.digest, watched.found.cells)
    sweep = Swept(watched=watched, stack=stack, suite=suite, state=state, until_s=until_s)
    # The digest does not cover the code of kinds that are not ours.
    there = [each for each in state.results if each.folder is None or (each.folder / "run.json").is_file()]
    sweep.results |= {each.cell: each for each in there if of_ours(scenario)}
    if sweep.results:
        _notify(f"going on: {len(sweep.results)} cells are known from before")
    try:
        sweep.play()
        shrunk = sweep.shrunk() if smaller else {}
    except BaseException:
        _notify(f"ended early: {len(sweep.results)} of {len(sweep.cells)} cells are known; the same command goes on")
        raise
    found = _answer(sweep, shrunk)
    if sweep.whole:
        state.end()
    return found


def _answer(sweep: Swept, shrunk: Mapping[int, Shrunk]) -> Answer:
    """Print the sentence, the grid, what says nothing and what is not as expected; keep them, and return the answer."""
    cells, expected = sweep.cells, sweep.watched.scenario.verdict
    suite, reports = sweep.suite, sweep.suite.options.reports
    rows = _tidied(sweep, list(sweep.rows()))
    results = list(sweep.results.values())
    known = {place for place, row in enumerate(rows) if row.known}
    code = answer.code(expected, cells, sweep.every, known)
    sentence = answer.sentence(sweep.name, cells, results, left_out=sweep.watched.left_out)
    rows += [_whole(sweep, code, sentence)] if code != exit_code(rows) else []
    folder = store.latest(reports)
    kept = {"sweep": sweep.name, "sentence": sentence, "exit_code": code, "cells": list(_kept(sweep))}
    name = f"sweep-{store.slug(sweep.watched.scenario.name)}"
    store.write(folder / f"{name}.json", json.dumps(kept, indent=1, default=str) + "\n")
    done = len(suite.runs)
    suite.keep([(done + number, each) for number, each in enumerate(rows, 1)])
    failing = _failing(sweep, reports, shrunk)
    page = pages.write(folder / f"{name}.html", sweep.name, cells, results, sentence=sentence, failing=failing)
    wrong = [cells[each.cell] for each in amiss(expected, cells, results)] if expected.at else []
    with github.no_commands():
        lines = ["", *answer.grid(cells, results), "", *answer.unanswered(cells, results)]
        lines += (f"{failing[place]}: {each.description}" for place, each in shrunk.items())
        lines += (f"not as expected: {answer.place(cell)}" for cell in wrong)
        print("\n".join(map(visible, lines)))
        print(f"\n{visible(sentence)}\nreport: {page}", flush=True)
    return Answer(code=code, sentence=sentence, rows=rows, page=page)


def _whole(sweep: Swept, code: int, why: str) -> Run:
    """Return a row for what no cell alone says: a violation was expected and none was found, or nothing was tested."""
    scenario, options = sweep.watched.scenario, sweep.suite.options
    whole = unjudged(scenario, options, stack=sweep.stack.name, why=why)
    word = Word.HELD if code == 1 else Word.UNTESTED
    return replace(whole, verdict=replace(whole.verdict, word=word))


def _tidied(sweep: Swept, rows: list[Run]) -> list[Run]:
    """Remove the run folders that are not asked for, and return the rows without them."""
    keep = sweep.suite.options.keep
    needed = {row.folder for row in rows if keep == "all" or (keep == "failed" and not row.verdict.as_expected)}
    gone = {row.folder for row in rows if row.folder is not None and row.folder not in needed}
    for folder in gone:
        store.RunFolder.open(folder).remove()
    for place, each in sweep.results.items():
        if each.folder in gone:
            sweep.results[place] = replace(each, folder=None)
    return [replace(row, folder=None) if row.folder in gone else row for row in rows]


def _kept(sweep: Swept) -> Iterator[dict[str, object]]:
    for place, cell in enumerate(sweep.cells):
        found = asdict(sweep.results[place]) if place in sweep.results else {"word": None}
        yield {"place": cell.place, "fault": cell.fault, "batch": cell.batch, "result": found}


def _failing(sweep: Swept, reports: Path, shrunk: Mapping[int, Shrunk]) -> dict[int, Path]:
    """Write a scenario file for each violated cell, which plays it alone, and remove that of any other; return them by
    the place of the cell."""
    watched, seed, out = sweep.watched, sweep.suite.options.seed, dict[int, Path]()
    base = watched.scenario if seed is None else replace(watched.scenario, seed=seed)
    for place, cell in enumerate(sweep.cells):
        name = f"{base.name}: {answer.place(cell)}"
        path = reports / "failing" / f"{store.slug(name)}.yaml"
        path.unlink(missing_ok=True)
        if place in sweep.results and sweep.results[place].word is Word.VIOLATED:
            path.parent.mkdir(parents=True, exist_ok=True)
            small = shrunk.get(place)
            alone = replace(small.scenario, why=small.description) if small else watched.alone(place)
            alone = replace(alone, name=name, seed=base.seed)
            store.write(path, dump(placed(alone, path)))
            out[place] = path
    return out


def placed(scenario: Scenario, path: Path) -> Scenario:
    """Return the scenario for the file at `path`. Where that is in another project, its program has its whole path."""
    root, there, pipeline = project_root(Path(scenario.path)), project_root(path), scenario.pipeline
    if there == root or not (root / pipeline.entry).is_file():
        return scenario
    return replace(scenario, pipeline=replace(pipeline, entry=str((root / pipeline.entry).resolve())))


def _notify(words: str) -> None:
    print(github.guarded(f"onceproof: {visible(words)}"), file=sys.stderr, flush=True)
