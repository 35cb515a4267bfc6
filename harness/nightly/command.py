"""The night on a real stack, as the command line asks for it."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path
from time import monotonic

from pydantic import TypeAdapter, ValidationError

from harness import __version__
from harness.errors import StackError, UsageError
from harness.faults import FAULTS
from harness.fields import values as v
from harness.fields.paths import find, project_root, scenario_files
from harness.fields.shards import Shard
from harness.load import dump, load_all
from harness.machine import capacity
from harness.nightly.bound import described
from harness.nightly.draw import Cell, plans, targets
from harness.nightly.kept import Keeper
from harness.nightly.night import Entry, Night, entries
from harness.nightly.possible import Target
from harness.nightly.state import Head, Line, State
from harness.nightly.trend import Trend
from harness.report import render
from harness.report.ci import github
from harness.report.escape import visible
from harness.report.many.gather import NIGHT, SUMMARY
from harness.report.many.seen import Seen
from harness.report.summary import Run, error
from harness.run.baseline.digest import files
from harness.run_folder import store
from harness.run_folder.lines import whole
from harness.scenario import Scenario, Word
from harness.stack import Stack
from harness.stacks import DEFAULT
from harness.stacks.needed_parts import code
from harness.stacks.registry import STACKS
from harness.stacks.supported import unsupported
from harness.suite import one, only_suite, side_by_side, signals, supported
from harness.suite.options import Options
from harness.suite.suite_stack import stack_of, up
from harness.triggers import TRIGGERS
from harness.workloads import read_files

GIB = 2**30
WHOLE = Shard(1, 1)
_DURATION: TypeAdapter[float] = TypeAdapter(v.Duration)


@dataclass(frozen=True, kw_only=True)
class NightOptions:
    """What the command line says. `seed` None: that of the night to go on with, else one of the date; `corpus` need not
    be there, `disk` is in bytes, `jobs` counts runs at once: None, by what the machine has to give."""

    paths: Sequence[Path]
    for_s: float
    seed: int | None = None
    shard: Shard = WHOLE
    jobs: int | None = None
    stack: str = DEFAULT
    reports: Path = Path("reports/nightly")
    corpus: Path = Path("scenarios/regressions")
    disk: int = 2 * GIB


def seconds(text: str) -> float:
    """Return the seconds of `--for`. Raises UsageError."""
    try:
        return float(_DURATION.validate_python(text))
    except ValidationError as failure:
        raise UsageError(f"--for {failure.errors()[0]['msg']}") from None


def nightly(options: NightOptions, *, today: date) -> int:
    """Play the night, or the rest of it; the exit code. Raises UsageError, ScenarioError, StackError."""
    began = monotonic()
    known, own = _scenarios(options)
    found = targets(own, STACKS[options.stack].means)
    if not found:
        saw = f"there is no step that the stack {options.stack} could draw for any of them"
        raise UsageError(f"asked for a night over {', '.join(map(str, options.paths))}; {saw}. Take another stack")
    with signals(), only_suite(options.reports):
        trend = Trend.read(options.reports)
        digest = digest_of(options, [*known, *own])
        state = _state(options, digest, trend.struck(), today)
        with _stacks(options, [*known, *own]) as stacks:
            night = Night(
                state=state,
                # What the stacks took to come up is time of the night.
                for_s=options.for_s - (monotonic() - began),
                list_=_listed(options, state, known, found),
                targets=found,
                failing=options.reports / "failing",
                today=today,
                keep=Keeper(options.reports, options.disk, print_line=_notify).kept,
            )
            try:
                _played(night, stacks)
            except BaseException:
                # The exception that ended it is the one to report.
                with suppress(Exception):
                    _close(options, night, trend, today, cut=True)
                raise
        # A night that is killed before the end comes here again.
        _close(options, night, trend, today, cut=False)
        state.end()
    return night.code()


def _scenarios(options: NightOptions) -> tuple[list[Scenario], list[Scenario]]:
    """Return those of the corpus, and those that were given, which are not in it; as far as the stack has what they
    need."""
    corpus = scenario_files(options.corpus) if options.corpus.is_dir() else []
    inside = {path.resolve() for path in corpus}
    paths = [path for path in find(options.paths) if path.resolve() not in inside]
    if not paths:
        raise UsageError(f"asked for a night over {', '.join(map(str, options.paths))}; saw only the corpus there")
    known, own = load_all(corpus, queries=True), load_all(paths, queries=True)
    stack = options.stack
    # Standard output is for the one line at the end.
    with redirect_stdout(sys.stderr):
        able = supported(known, stack) if any(not unsupported(each, stack) for each in known) else []
        return able, supported(own, stack)


def digest_of(options: NightOptions, scenarios: Sequence[Scenario]) -> str:
    """Of all that the list of plans and what they come to depend on, the seed and earlier nights aside."""
    parts = [
        __version__,
        options.stack,
        *(kind.about.name for kind in (*FAULTS, *TRIGGERS)),
        # Targets and cells are named by the path, as it was written.
        *(f"{each.path}\n{dump(each)}\n{_files(options, each)}" for each in scenarios),
    ]
    return sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _files(options: NightOptions, scenario: Scenario) -> str:
    """Return the files that decide what a run of it comes to, each with its digest: the program with what lies beside
    it, what is replayed, own code that reads the sinks. Raises UsageError."""
    root = project_root(Path(scenario.path))
    read = [*read_files(scenario.input, root=root), *code(scenario)]
    found = [files(scenario.pipeline, root, excluded=options.reports), [store.digest(path) for path in read]]
    return json.dumps(found, sort_keys=True)


def _state(options: NightOptions, digest: str, struck: Counter[Cell], today: date) -> State:
    """Return the night to begin or go on with. Without a seed that is the newest one of this shard and list that is not
    over, else one of today."""
    shard = options.shard

    def path(seed: int | str) -> Path:
        return options.reports / f"night-{seed}-{shard.number}-{shard.of}.jsonl"

    seed = options.seed
    if seed is None:
        there = sorted(options.reports.glob(path("*").name), key=lambda found: found.stat().st_mtime)
        states = [State.read(found, text) for found in there if (text := whole(found))]
        open_ = [state.head.seed for state in states if not state.ended and state.head.digest == digest]
        fresh = (int(f"{today:%Y%m%d}{number or ''}") for number in count())
        seed = open_[-1] if open_ else next(each for each in fresh if not path(each).exists())
    rows = tuple((*cell, times) for cell, times in sorted(struck.items()))
    head = Head(seed=seed, shard=shard.number, shards=shard.of, digest=digest, struck=rows)
    return State.opened(path(seed), head)


def _listed(options: NightOptions, state: State, known: Sequence[Scenario], found: Sequence[Target]) -> Iterator[Entry]:
    head, means = state.head, STACKS[options.stack].means
    before: dict[Cell, int] = {(row[0], row[1], row[2]): row[3] for row in head.struck}
    drawn = plans(found, means=means, seed=head.seed, shard=head.shard, struck=before)
    return entries(known, drawn, found, shard=head.shard, shards=head.shards)


class OwnStack:
    """A stack of one thread's. One that dies is a run's error, and is followed by another."""

    def __init__(self, options: NightOptions, number: int, work: Sequence[Scenario]) -> None:
        self._options, self._work = options, work
        self._reports = options.reports / f"stack-{number + 1}"
        self._up = ExitStack()
        self._stack = self._fresh()

    def run(self, scenario: Scenario) -> Run:
        """Return one run. Raises StackError if no stack comes up."""
        try:
            self._stack.health()
        except StackError as failure:
            _notify(f"the stack died between two runs: {failure}")
            self._renew()
        options = Options(stack=self._options.stack, reports=self._options.reports)
        try:
            return one(scenario, self._stack, options=options, listener=lambda _: None)
        except StackError as failure:
            self._renew()
            return Run(scenario=scenario.name, verdict=error(f"the stack died: {failure}"), stack=self._options.stack)

    def close(self) -> None:
        """Take it down."""
        self._up.close()

    def _fresh(self) -> Stack:
        options = Options(stack=self._options.stack, reports=self._reports, own_stack=True)
        return self._up.enter_context(up(stack_of(options, self._work)))

    def _renew(self) -> None:
        with suppress(StackError):
            self._up.close()
        self._stack = self._fresh()


@contextmanager
def _stacks(options: NightOptions, work: Sequence[Scenario]) -> Iterator[list[OwnStack]]:
    """One for each run at once: a drawn plan may kill any server."""
    each = side_by_side.STACK_BYTES + max(map(side_by_side.run_bytes, work), default=side_by_side.RUN_BYTES)
    jobs = options.jobs or max(1, min(capacity.cores(), side_by_side.MOST, capacity.memory() // each))
    with ExitStack() as stacks:
        yield [stacks.enter_context(closing(OwnStack(options, number, work))) for number in range(jobs)]


def _played(night: Night, stacks: Sequence[OwnStack]) -> None:
    """Play the night on all of them at once."""
    if len(stacks) == 1:
        # In this thread, the one that is interrupted.
        return night.play(stacks[0].run)
    with side_by_side.threads(len(stacks)) as pool:
        plays = {f"stack {number}": partial(night.play, stack.run) for number, stack in enumerate(stacks, 1)}
        side_by_side.together(plays, pool, within_s=night.for_s + side_by_side.RUN_WITHIN_S)


def _close(options: NightOptions, night: Night, trend: Trend, today: date, *, cut: bool) -> None:
    """Write what a night leaves: a line in the trend, a summary and its page. Print what it found after how many plans,
    its bounds, and one line for a chat."""
    bounds = trend.add(night, today, cut=cut)
    hunted = night.hunted()
    runs = [seen(line) for line in night.state.lines]
    entries = [each.entry(line.folder) for each, line in zip(runs, night.state.lines, strict=True)]
    counts = {"what": NIGHT, "runs": entries, "exit_code": night.code()}
    store.write(store.latest(options.reports) / SUMMARY, json.dumps(counts, indent=1, default=str) + "\n")
    index = render.index_of(options.reports, runs, hunted)
    for line in (*map(str, hunted), *described(bounds)):
        _notify(line)
    _notify(f"report: {index}")
    print(night.summary() + ("; cut short" if cut else ""), flush=True)


def seen(line: Line) -> Seen:
    """Return its run as the page has it; with its folder, if that is still there."""
    right = not (line.wrong or line.known)
    found = line.seen or Seen(scenario=line.name, word=Word(line.verdict), as_expected=right)
    folder = Path(line.folder) if line.folder and Path(line.folder).is_dir() else None
    gone = bool(line.folder) and folder is None
    return replace(found, folder=folder, removed=gone, known=line.known, drawn=bool(line.half), again=bool(line.again))


def _notify(words: str) -> None:
    """Write to standard error. No line of it is a command to GitHub's runner."""
    print(github.guarded(visible(words)), file=sys.stderr, flush=True)
