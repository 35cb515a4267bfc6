"""The night on a real stack, as the command line asks for it."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass
from datetime import date
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from time import monotonic

from pydantic import TypeAdapter, ValidationError

from harness.errors import UsageError
from harness.fields import values as v
from harness.fields.paths import find
from harness.fields.shards import Shard
from harness.load import dump, load_all
from harness.machine import capacity
from harness.nightly import keep
from harness.nightly.bound import told
from harness.nightly.draw import Cell, plans, targets
from harness.nightly.night import Night, entries
from harness.nightly.state import Head, Line, State, append
from harness.report import render
from harness.report.summary import Run
from harness.run.plan import with_standby
from harness.run.preflight import bind
from harness.run_folder.store import RunFolder
from harness.scenario import Scenario
from harness.stack import MEANS, Stack
from harness.stacks.supported import Named
from harness.suite import one, only_suite, side_by_side, signals, supported
from harness.suite.options import Options
from harness.suite.suite_stack import stack_of, up

GIB = 2**30
WHOLE = Shard(1, 1)
_DURATION: TypeAdapter[float] = TypeAdapter(v.Duration)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the command line says. `corpus` need not be there, `disk` is in bytes, `jobs` counts runs at once: None, by
    what the machine has to give."""

    paths: Sequence[Path]
    for_s: float
    seed: int
    shard: Shard = WHOLE
    jobs: int | None = None
    stack: str = "processes"
    reports: Path = Path("reports/nightly")
    corpus: Path = Path("scenarios/regressions")
    disk: int = 2 * GIB


def asked_for(text: str) -> float:
    """The seconds of `--for`. Raises UsageError."""
    try:
        return float(_DURATION.validate_python(text))
    except ValidationError as failure:
        raise UsageError(f"--for {failure.errors()[0]['msg']}") from None


def nightly(asked: Asked, *, today: date) -> int:
    """Play the night, or the rest of it; the exit code. Raises UsageError, ScenarioError, StackError."""
    began = monotonic()
    known, own = _scenarios(asked)
    means = MEANS[asked.stack]
    found = targets(own, means)
    if not found:
        saw = f"there is no step that the stack {asked.stack} could draw for any of them"
        raise UsageError(f"asked for a night over {', '.join(map(str, asked.paths))}; {saw}. Take another stack")
    trend = asked.reports / "trend.jsonl"
    struck = tuple((*cell, times) for cell, times in sorted(_struck(trend).items()))
    digest = sha256("\n".join(dump(each) for each in chain(known, own)).encode()).hexdigest()
    head = Head(seed=asked.seed, shard=asked.shard.number, shards=asked.shard.of, digest=digest, struck=struck)
    with signals(), only_suite(asked.reports):
        state = State.opened(asked.reports / f"night-{asked.seed}-{head.shard}-{head.shards}.jsonl", head)
        before: dict[Cell, int] = {(row[0], row[1], row[2]): row[3] for row in state.head.struck}
        drawn = plans(found, means=means, seed=asked.seed, shard=head.shard, struck=before)
        with ExitStack() as stacks:
            work = [*known, *own]
            there = [stacks.enter_context(up(_stack(asked, number, work))) for number in range(_jobs(asked))]
            night = Night(
                state=state,
                # What the stacks took to come up is time of the night.
                for_s=asked.for_s - (monotonic() - began),
                list_=entries(known, drawn, shard=head.shard, shards=head.shards),
                targets=frozenset(target.name for target in found),
                failing=asked.reports / "failing",
                today=today,
                keep=lambda line: _kept(state, line, asked.disk),
            )
            _played(night, there, asked)
        state.end()
        index = render.index(asked.reports, _runs(state))
    _trend(trend, night, today)
    for line in told(night.bounds):
        print(line, file=sys.stderr)
    print(f"report: {index}", file=sys.stderr)
    print(night.summary())
    return night.code()


def _jobs(asked: Asked) -> int:
    """How many runs at once: each on a stack of its own, for a drawn plan may kill any server."""
    each = side_by_side.STACK_BYTES + side_by_side.RUN_BYTES
    return asked.jobs or max(1, min(capacity.cores(), side_by_side.MOST, capacity.memory() // each))


def _stack(asked: Asked, number: int, work: Sequence[Scenario]) -> Stack:
    """One stack of the night, with logs of its own."""
    reports = asked.reports / f"stack-{number + 1}"
    return stack_of(Options(stack=asked.stack, reports=reports, own_stack=True), work)


def _played(night: Night, stacks: Sequence[Stack], asked: Asked) -> None:
    """Play the night on all of them at once."""
    options = Options(stack=asked.stack, reports=asked.reports)

    def play(stack: Stack) -> None:
        def run(scenario: Scenario) -> Run:
            stack.health()
            done, _ = one(with_standby(scenario, standby=False), stack, options=options, listener=lambda _: None)
            return done

        night.play(run)

    if len(stacks) == 1:
        # In this thread, the one that is interrupted.
        return play(stacks[0])
    with side_by_side.threads(len(stacks)) as pool:
        side_by_side.together([partial(play, stack) for stack in stacks], pool)


def _runs(state: State) -> list[Run]:
    """Those that can be read again, for the page."""
    return [Run.read(Path(line.folder)) for line in state.lines if line.folder and Path(line.folder).is_dir()]


def _scenarios(asked: Asked) -> tuple[list[Scenario], list[Scenario]]:
    """Those of the corpus, and those that were given, which are not in it; as far as the stack has what they need."""
    corpus = sorted(asked.corpus.rglob("*.yaml")) if asked.corpus.is_dir() else []
    inside = {path.resolve() for path in corpus}
    paths = [path for path in find(asked.paths) if path.resolve() not in inside]
    if not paths:
        raise UsageError(f"asked for a night over {', '.join(map(str, asked.paths))}; saw only the corpus there")
    known, own = load_all(corpus), load_all(paths)
    bind([*known, *own])
    stack = Named(asked.stack)
    # Standard output is for the one line at the end.
    with redirect_stdout(sys.stderr):
        return supported(known, stack) if known else [], supported(own, stack)


def _kept(state: State, line: Line, bound: int) -> None:
    """Say what became of a run, and thin the folders that are kept."""
    words = f" ({', '.join(line.kinds)})" if line.kinds else ""
    again = f", again {line.again}" if line.again else ""
    print(f"{line.plan}{again}: {line.verdict}{words}: {line.name}", file=sys.stderr, flush=True)
    there = [
        keep.Kept(folder=each.folder, size=keep.size(Path(each.folder)), failed=state.runs(each.plan)[0].failed)
        for each in state.lines
        if each.folder and Path(each.folder).is_dir()
    ]
    for each in keep.thinned(there, bound):
        RunFolder.open(Path(each.folder)).remove()


def _struck(trend: Path) -> Counter[Cell]:
    """How often earlier nights have struck each cell."""
    out: Counter[Cell] = Counter()
    if not trend.is_file():
        return out
    for number, text in enumerate(trend.read_text(encoding="utf-8").splitlines(), 1):
        try:
            out.update({(cell[0], cell[1], cell[2]): int(cell[3]) for cell in json.loads(text)["cells"]})
        except (ValueError, KeyError, TypeError, IndexError):
            raise UsageError(f"{trend}:{number}:1: is no line of a night: remove it") from None
    return out


def _trend(path: Path, night: Night, today: date) -> None:
    """One line a night."""
    head, first = night.state.head, [line for line in night.state.lines if not line.again]
    append(
        path,
        {
            "date": today.isoformat(),
            "seed": head.seed,
            "shard": f"{head.shard}/{head.shards}",
            "seconds": round(night.spent_s, 1),
            "plans": len(first),
            "verdicts": dict(Counter(line.verdict for line in first)),
            "failed": sorted({f"{line.target}: {line.verdict}" for line in first if line.failed and not line.known}),
            "known": sorted({line.known for line in first if line.failed and line.known}),
            "bounds": told(night.bounds),
            "cells": [[*cell, times] for cell, times in sorted(night.cells().items())],
            "exit": night.code(),
        },
    )
