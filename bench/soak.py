"""Drawn schedules over fixed and broken pipelines on one warm stack, each verdict held against the truth.

    PYTHONPATH=. .venv/bin/python bench/soak.py N [--seed S] [--minutes M] [--keep-going] [--keep DIR]
                                            [--out FILE]
    PYTHONPATH=. .venv/bin/python bench/soak.py N --seed S --only INDEX      one schedule again, as its line has it
    PYTHONPATH=. .venv/bin/python bench/soak.py N --seed S --dry-run         the schedules as files, nothing is run
    PYTHONPATH=. .venv/bin/python bench/soak.py --judge DIR                  kept runs judged again, without a stack

bench/truth.py has the truth and what makes a verdict wrong; the pipelines are in bench/broken_and_fixed.py. The exit
code is 1 unless no fixed version is violated or in error, 95 % of them held, every broken version whose harm is certain
was caught by its kind, batch and fault, and no other verdict is wrong. A fixed version that is untested because its
guarantee allows all that was exposed is none that had to hold.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import randrange
from typing import Any

from bench.broken_and_fixed import Drawn, draw, named
from bench.truth import Seen, Truth, ahead, truth, wrong
from harness import judge, suite
from harness.errors import HarnessError
from harness.load import dump
from harness.report.summary import Run
from harness.run_folder import store
from harness.scenario import Scenario, Verdict, Word, plain
from harness.suite.options import Options
from harness.suite.suite_stack import stack_of, up
from harness.wait import Deadline

SHARE = 0.95
"""Of the fixed versions that had to hold, so many do; a step may miss its crash point."""


def line(drawn: Drawn, run: Run, seen: Seen) -> dict[str, Any]:
    """One run as the file of lines keeps it."""
    verdict = run.verdict
    caused = [finding for finding in verdict.findings if finding.faults]
    return {
        "seed": drawn.seed,
        "index": drawn.index,
        "version": drawn.version.name,
        "broken": drawn.version.harm is not None,
        "schedule": [f"{step.do} at {step.when}" for step in drawn.schedule],
        "steps": [plain(step) for step in drawn.schedule],
        "truth": truth(drawn.version, seen).value,
        "spared": seen.spared,
        "wrong": wrong(drawn.version, seen),
        "verdict": verdict.word.value,
        "kinds": verdict.kinds(),
        "batches": sorted({batch for finding in caused for batch in finding.batches}),
        "faults": sorted({fault for finding in caused for fault in finding.faults}),
        "exposures": [
            f"{exposure.step}: {exposure.harm}: {exposure.would_show}: {exposure.note}"
            for exposure in verdict.exposures
        ],
        "surplus": [list(each.surplus) for each in seen.ahead],
        "injected": [step.injected for step in verdict.steps],
        "reasons": list(verdict.reasons),
        "seconds": round(run.seconds, 1),
        "folder": str(run.folder) if run.folder else None,
    }


def counted(lines: Iterable[dict[str, Any]]) -> str:
    """The words against the truth, for fixed and for broken versions."""
    words = [word.value for word in Word]
    rows = [["version", "violated?", *words, "wrong"]]
    kept = list(lines)
    for broken, due in ((False, Truth.NEVER), *((True, each) for each in Truth)):
        own = [each for each in kept if each["broken"] == broken and each["truth"] == due]
        tally = Counter(each["verdict"] for each in own)
        bad = sum(bool(each["wrong"]) for each in own)
        name = "broken" if broken else "fixed"
        rows.append([name, due.value, *(str(tally[word]) for word in words), str(bad)])
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)


SITTING = 60
"""A sitting of so many schedules has to have had something to hold and something to catch, or it has shown nothing."""


def figures(lines: Sequence[dict[str, Any]], wanted: int) -> tuple[str, bool]:
    """The figures that a sitting is for, in one line, and whether they are as they have to be."""
    fixed, broken = ([each for each in lines if each["broken"] is which] for which in (False, True))
    words = Counter(each["verdict"] for each in fixed)
    due = [each for each in fixed if not each["spared"] or each["verdict"] != Word.UNTESTED]
    certain = [each for each in broken if each["truth"] == Truth.MUST]
    caught = sum(not each["wrong"] for each in certain)
    # Of a fixed version only a wrong *held* is left: the others are counted, and what came to no answer did not hold.
    rest = [each for each in fixed if each["verdict"] == Word.HELD] + [each for each in broken if each not in certain]
    others = sum(bool(each["wrong"]) for each in rest)
    enough = words[Word.HELD] >= SHARE * len(due)
    whole = len(lines) >= wanted and (wanted < SITTING or bool(due and certain))
    right = whole and enough and caught == len(certain) and not words[Word.VIOLATED] + words[Word.ERROR] + others
    parts = [
        f"{len(lines)} of {wanted} run",
        f"fixed: {words[Word.VIOLATED]} violated, {words[Word.ERROR]} error, {words[Word.HELD]} of {len(due)} held",
        f"broken, harm certain: {caught} of {len(certain)} caught",
        f"{others} others wrong",
        "as it has to be" if right else "NOT as it has to be",
    ]
    return "; ".join(parts), right


def again(folder: Path) -> dict[str, Any]:
    """Return the line of a kept run, judged again from its folder. Raises ValueError for a run that is none of a
    soak."""
    run = Run.read(folder)
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    scenario = store.noun(Scenario, plan["scenario"], str(folder / "plan.json"))
    seed, index, version = named(scenario.name)
    drawn = Drawn(seed=seed, index=index, version=version, schedule=scenario.schedule)
    before = run.verdict.word
    # A run that ended in an error has nothing that could be judged.
    if before is not Word.ERROR:
        run = replace(run, verdict=_judged(folder))
    return entry(drawn, run) | {"was": before.value}


def _judged(folder: Path) -> Verdict:
    try:
        return judge.judged(folder).verdict
    except HarnessError as failure:
        return Verdict(word=Word.ERROR, as_expected=False, expected="", reasons=(str(failure),))


def judged(where: Path) -> list[dict[str, Any]]:
    """Return the lines of all runs that were kept in a folder, each printed as it is judged; without those that need
    baseline runs that were not made."""
    lines = []
    for folder in sorted(plan.parent for plan in where.glob("*/*/plan.json") if not plan.parent.is_symlink()):
        if more := _baseline_runs_needed(folder):
            print(f"{folder.parent.name}: asks for baseline run {more}, which was not made: not counted")
            continue
        lines.append(again(folder))
        show(lines[-1])
    return lines


def _baseline_runs_needed(folder: Path) -> int:
    try:
        return judge.judged(folder).baseline_runs_needed
    except (HarnessError, ValueError):
        return 0


def entry(drawn: Drawn, run: Run) -> dict[str, Any]:
    """A run's line, with the truth from its snapshots."""
    try:
        # A run that ended in an error may have left half a folder.
        found = ahead(run.folder, drawn.version) if run.folder and run.verdict.word is not Word.ERROR else ()
    except (HarnessError, OSError, ValueError) as failure:
        return line(drawn, run, Seen(verdict=run.verdict)) | {"wrong": f"its snapshots are not readable: {failure}"}
    return line(drawn, run, Seen(verdict=run.verdict, ahead=found))


def show(one: dict[str, Any]) -> None:
    """Print what became of a run."""
    word = one["verdict"] if one.get("was") in (None, one["verdict"]) else f"{one['verdict']} (was {one['was']})"
    right = f"WRONG: {one['wrong']}" if one["wrong"] else "right"
    print(
        f"{one['index']} {one['version']}: {'; '.join(one['schedule'])}: {word} ({one['truth']}): {right}", flush=True
    )


@dataclass
class Soak:
    """The runs of one sitting."""

    options: argparse.Namespace
    lines: list[dict[str, Any]] = field(default_factory=list)

    def run(self, work: Sequence[Drawn]) -> None:
        """Run each until one is wrong (but see `--keep-going`) or the time is up."""
        given, deadline = Options(reports=self.options.reports), Deadline(self.options.minutes * 60)
        with suite.signals(), suite.only_suite(given.reports), up(stack_of(given)) as stack:
            for drawn in work:
                if deadline.over():
                    print(f"the time is up after {len(self.lines)} of {len(work)} schedules")
                    return
                stack.health()
                run = suite.one(drawn.scenario(), stack, options=given, listener=lambda event: None)
                if self.add(drawn, run) and not self.options.keep_going:
                    return

    def add(self, drawn: Drawn, run: Run) -> bool:
        """Keep one run's line, and its folder if it is wrong; True if it is."""
        one = entry(drawn, run)
        if not one["wrong"] and run.folder and self.options.keep is None:
            store.RunFolder.open(run.folder).remove()
            one["folder"] = None
        self.lines.append(one)
        self.options.out.parent.mkdir(parents=True, exist_ok=True)
        with self.options.out.open("a", encoding="utf-8") as out:
            out.write(json.dumps(one, default=str) + "\n")
        show(one)
        return bool(one["wrong"])


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "count",
        type=int,
        nargs="?",
        default=0,
        metavar="N",
        help="how many schedules; every second one on a broken version",
    )
    parser.add_argument("--seed", type=int, default=None, help="of the schedules; drawn and said if it is left out")
    parser.add_argument("--only", type=int, default=None, metavar="INDEX", help="this one alone")
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no run after so long")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the first wrong verdict")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep every run's folder, and its line, in DIR")
    parser.add_argument("--judge", type=Path, metavar="DIR", help="judge the runs kept in DIR; nothing is run")
    parser.add_argument("--reports", type=Path, default=Path("reports/soak"), help="for the folders of wrong verdicts")
    parser.add_argument("--out", type=Path, default=None, help="the file of lines; REPORTS/soak-SEED.jsonl")
    parser.add_argument("--dry-run", action="store_true", help="print the schedules and run nothing")
    found = parser.parse_args(arguments)
    found.seed = randrange(10**6) if found.seed is None else found.seed
    found.reports = found.keep or found.reports
    found.out = found.out or found.reports / f"soak-{found.seed}.jsonl"
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    options = parsed(arguments)
    if options.judge is not None:
        return _again(options.judge)
    work = [draw(options.seed, index) for index in range(options.count) if options.only in (None, index)]
    if not work:
        chosen = "no schedule" if options.only is None else f"schedule {options.only} of {options.count}"
        print(f"asked for {chosen}; say how many (N), they count from 0", file=sys.stderr)
        return 2
    if options.dry_run:
        print("---\n".join(dump(drawn.scenario()) for drawn in work))
        return 0
    print(f"seed {options.seed}; lines in {options.out}")
    soak = Soak(options)
    try:
        soak.run(work)
    except HarnessError as failure:
        print(failure, file=sys.stderr)
        return failure.exit_code
    finally:
        print(counted(soak.lines))
    return _ended(soak.lines, len(work))


def _again(where: Path) -> int:
    try:
        lines = judged(where)
    except (HarnessError, ValueError) as failure:
        print(failure, file=sys.stderr)
        return 2
    if not lines:
        print(f"asked to judge the runs in {where}; it holds none. Keep some: --keep DIR", file=sys.stderr)
        return 2
    print(counted(lines))
    return _ended(lines, len(lines))


def _ended(lines: Sequence[dict[str, Any]], wanted: int) -> int:
    words, right = figures(lines, wanted)
    print(words)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
