"""What evidence costs: the seconds of snapshots and baseline runs, from the histories of runs that were kept.

    PYTHONPATH=. .venv/bin/python bench/evidence.py FOLDER...        all runs below these folders
    PYTHONPATH=. .venv/bin/python bench/evidence.py --rows 200000    a run with so many rows in its sink

The restart waits for a snapshot at an injection, not for the one before the next attempt works. Shares are of the
seconds of the same run without its baseline runs; absolute figures hang on the machine.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import monotonic

from harness.history import SinkRead, read
from harness.judge import judged
from harness.run.loop import run
from harness.snapshot import INJECTION, RESTART
from harness.stacks.processes.stack import ProcessesStack
from tests.plays import ONCE, Play

BATCHES = 5
"""The run with many rows takes its records in so many batches; the last but one is struck."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """One piece of evidence: its kind, its seconds, those of the run, and how many rows of the sinks it read."""

    kind: str
    seconds: float
    whole_s: float
    rows: int = 0


def costs(folder: Path) -> Iterator[Cost]:
    """What a run's evidence took. Raises OSError and ValueError for a folder that is no whole run."""
    made = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("baseline/*/run.json"))]
    baseline_runs = [float(each["outcome"]["seconds"]) for each in made if not each["cached"]]
    whole_s = float(json.loads((folder / "run.json").read_text(encoding="utf-8"))["seconds"]) - sum(baseline_runs)
    for event in (line.event for line in read(folder / "history.jsonl")):
        if isinstance(event, SinkRead):
            yield Cost(kind=event.moment, seconds=event.seconds, whole_s=whole_s, rows=event.rows)
    yield from (Cost(kind="baseline run", seconds=seconds, whole_s=whole_s) for seconds in baseline_runs)


def table(found: Iterable[Cost]) -> str:
    """One line for each kind: how many there were, least, median and most seconds, the median share of the run."""
    kept = list(found)
    lines = [f"{'':8} {'times':>5} {'least s':>8} {'median s':>8} {'most s':>8} {'share':>7} {'most rows':>10}"]
    for kind in (INJECTION, RESTART, "baseline run"):
        if own := [cost for cost in kept if cost.kind == kind]:
            seconds = sorted(cost.seconds for cost in own)
            share = median(cost.seconds / cost.whole_s for cost in own)
            figures = f"{len(own):5} {seconds[0]:8.2f} {median(seconds):8.2f} {seconds[-1]:8.2f} {share:7.1%}"
            lines.append(f"{kind:8} {figures} {max(cost.rows for cost in own):10,}")
    return "\n".join(lines)


def large(rows: int, place: Path) -> Path:
    """Run a program that is right, whose driver is killed when all but one batch of `rows` rows are in the sink."""
    with ProcessesStack(place / "logs") as stack:
        play = Play(place, lambda scenario: run(scenario, stack, reports=place / "reports"))
        when = {"point": "sink-committed", "batch": BATCHES - 2}
        return play(
            "payments",
            *("--once", "--max-records", str(rows // BATCHES)),
            setup=ONCE,
            input={"records": rows},
            schedule=[{"when": when, "do": "kill driver"}],
            within="10m",
        ).folder


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    parser.add_argument("--rows", type=int, help="make a run with so many rows")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as place:
        folders = sorted({path.parent for each in options.folders for path in each.rglob("history.jsonl")})
        if options.rows:
            folders.append(large(options.rows, Path(place)))
        found = [cost for folder in folders if not folder.is_symlink() for cost in costs(folder)]
        if not found:
            print("asked for the cost of evidence; there is no run with any in these folders", file=sys.stderr)
            return 2
        print(table(found))
        if options.rows:
            began = monotonic()
            word = judged(folders[-1]).verdict.word
            print(f"judged in {monotonic() - began:.1f} s: {word}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
