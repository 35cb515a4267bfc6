"""Programs that are never quite the same, under drawn faults, N runs each: what chance does is blamed on no fault.

    PYTHONPATH=. .venv/bin/python bench/unsteady.py N [--seed S] [--only windows|loser] [--fresh] [--reports DIR]

`windows` is right and not deterministic: rows in any order, windows that a watermark closes late. It is never violated.
`loser` leaves out one payment in one run of three, with or without faults, as the name of the run draws it: that run
has a finding and no other, and no fault is ever blamed for it. Baseline runs are kept by digest, so that all runs of a
program are held against the same three: with `--fresh` each run makes its own. Exit code 1 after a breach, or where of
ten runs or more of `loser` none left out a payment.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

from harness.errors import HarnessError
from harness.faults import fault
from harness.load import load
from harness.machine import cache
from harness.run.loop import Result, run
from harness.scenario import CrashPoint, Scenario, Step, Verdict, Victim, Word
from harness.stack import Stack
from harness.stacks.processes.stack import ProcessesStack
from harness.triggers import trigger

HOUSE = Path(__file__).parents[1]
RECORDS = 600
PLAIN = """
name: {name}
pipeline: {entry}
verdict: held
"""
LOSER = """
name: loser
pipeline:
  entry: tests/programs/now_and_then.py
  args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --folder, "{folder}", --records, "600", --run, "{run}"]
verdict: held
"""
TEXTS = {"windows": PLAIN.format(name="windows", entry="tests/programs/windows.py"), "loser": LOSER}
ONE_IN = 3
"""As in tests/programs/now_and_then.py."""
FOUND = " with a finding"
ENOUGH = 10
"""Of so many runs one at least leaves out a payment, but for one sitting in sixty."""
KILLS = ("kill driver", "crash application")


def scenario(program: str) -> Scenario:
    """One of the two programs, without a schedule."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", dir=HOUSE / "bench") as file:
        file.write(TEXTS[program])
        file.flush()
        return load(Path(file.name))


def drawn(program: str, seed: int, index: int) -> Step:
    """One fault at one crash point of one of the program's queries."""
    draw = Random(f"{program} {seed} {index}")
    point = draw.choice((CrashPoint.BATCH_PLANNED, CrashPoint.SINK_COMMITTED))
    query = draw.choice(("payments", "windows")) if program == "windows" else None
    when = trigger("point", point, batch=draw.randint(1, 4), query=query)
    kind = draw.choice(KILLS)
    victim = draw.choice((Victim.TREE, Victim.JVM)) if kind == "kill driver" else Victim.TREE
    return Step(when=when, do=fault(kind, victim=victim))


def left_out(run_id: str) -> bool:
    """Return whether `loser` leaves out a payment in this run."""
    return Random(run_id).randrange(ONE_IN) == 0


def breach(program: str, verdict: Verdict, lost: bool = False) -> str:
    """Why a verdict is wrong; empty if it is not. `lost`: the program left out a payment."""
    if verdict.word is Word.ERROR:
        return "error"
    if program == "windows":
        return "violated" if verdict.word is Word.VIOLATED else ""
    if lost is not bool(verdict.findings):
        return "a payment was left out, and not found" if lost else "a finding, and no payment was left out"
    if verdict.findings and verdict.word not in (Word.VIOLATED, Word.INCONCLUSIVE):
        return f"{verdict.word} with a payment left out"
    return "a fault is blamed" if any(finding.faults for finding in verdict.findings) else ""


def one(program: str, stack: Stack, options: argparse.Namespace, index: int) -> tuple[str, str]:
    """One run: its word, and its breach."""
    step = drawn(program, options.seed, index)
    print(f"{program} {index}: {step.do} at {step.when}:", end=" ", flush=True)
    try:
        result = run(replace(scenario(program), schedule=(step,)), stack, reports=options.reports)
    except HarnessError as failure:
        print(f"error: {str(failure).splitlines()[0]}", flush=True)
        return "error", "error"
    if options.fresh:
        forget(result)
    verdict = result.verdict
    wrong = breach(program, verdict, program == "loser" and left_out(result.folder.name.rpartition("-")[2]))
    print(f"{described(verdict)}{f': WRONG: {wrong}: {result.folder}' if wrong else ''}", flush=True)
    return verdict.word.value + (FOUND if verdict.findings else ""), wrong


def described(verdict: Verdict) -> str:
    """The word, what was found, and the first reason."""
    fits, without_faults = sum(bool(f.fits) for f in verdict.findings), sum(f.without_faults for f in verdict.findings)
    found = (
        f"{len(verdict.findings)} findings, {fits} fit an injection, {without_faults} without faults too; "
        if verdict.findings
        else ""
    )
    return f"{verdict.word}: {found}{(*verdict.reasons, *verdict.notes, '')[0]}"


def forget(result: Result) -> None:
    """Take the run's baseline runs out of the cache."""
    for path in result.folder.glob("baseline/*/run.json"):
        shutil.rmtree(cache.folder("baseline") / json.loads(path.read_text())["digest"], ignore_errors=True)


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, metavar="N", help="runs of each program")
    parser.add_argument("--seed", type=int, default=0, help="of the faults")
    parser.add_argument("--only", choices=TEXTS, action="append", help="only this program")
    parser.add_argument("--fresh", action="store_true", help="each run makes its own baseline runs")
    parser.add_argument("--reports", type=Path, default=Path("reports/unsteady"))
    return parser.parse_args()


def main() -> int:
    options, wrong = parsed(), 0
    with tempfile.TemporaryDirectory() as scratch, ProcessesStack(Path(scratch) / "logs") as stack:
        for program in options.only or TEXTS:
            words = Counter[str]()
            for index in range(options.count):
                word, breach_ = one(program, stack, options, index)
                words[word] += 1
                wrong += bool(breach_)
            if program == "loser" and options.count >= ENOUGH and not any(w.endswith(FOUND) for w in words):
                print(f"none of {options.count} runs left out a payment: nothing was shown. Try another --seed")
                wrong += 1
            print(f"{program}: {', '.join(f'{count} {word}' for word, count in sorted(words.items()))}")
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
