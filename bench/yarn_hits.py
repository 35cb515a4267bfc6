"""How surely each crash point is hit on YARN: an append and an upsert, five kills of ApplicationMaster in each run, at
one crash point each, numbered as in docs/crash-points.md. Prints hits and misses of each program and point, and whether
each verdict is the predicted one.

    PYTHONPATH=. .venv/bin/python bench/yarn_hits.py [ARGS of `onceproof run`...]
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
PROGRAMS = ("append", "upsert")
BATCHES = (2, 4, 6, 8, 10)
POINTS = {
    "W2, batch planned": "point: batch-planned, batch: {}",
    "W3, batch being written": "rows: 85, batch: {}",
    "W6 and W7, commits/N being written": "point: sink-committed, batch: {}",
    "W8, batch committed": "point: batch-committed, batch: {}",
}
EXPECTED = {
    ("append", "W3, batch being written"): "{violated: [duplicated]}",
    ("append", "W6 and W7, commits/N being written"): "{violated: [duplicated]}",
    ("append", "W8, batch committed"): "void",
    ("upsert", "W8, batch committed"): "void",
}
"""Elsewhere: held. After `commits/N` nothing is in flight, so nothing is tested."""


def main(args: Sequence[str]) -> int:
    with TemporaryDirectory(prefix="onceproof-yarn-hits-", dir=ROOT / "scenarios") as folder:
        for number, text in enumerate(scenarios()):
            (Path(folder) / f"{number}.yaml").write_text(text, encoding="utf-8")
        # One of its own: a command that is refused must not leave the summary of another suite to be read.
        reports = Path(folder) / "reports"
        subprocess.run(
            [sys.executable, "-m", "harness", "run", folder, "--stack", "yarn", "--reports", str(reports), *args],
            cwd=ROOT,
            check=False,
        )
        runs = json.loads((reports / "latest" / "summary.json").read_text(encoding="utf-8"))["runs"]
    steps = Counter((run["scenario"], step["hit"]) for run in runs for step in run["faults"])
    for program, point in product(PROGRAMS, POINTS):
        name = f"{program}: {point}"
        print(f"{name}: {steps[name, True]} hits, {steps[name, False]} misses")
    for run in runs:
        print(f"{'ok' if run['as_expected'] else '!!'} {run['scenario']}: {run['verdict']} {run['findings'] or ''}")
    return 0 if len(runs) >= len(PROGRAMS) * len(POINTS) and all(run["as_expected"] for run in runs) else 1


def scenarios() -> Iterator[str]:
    """The scenario files, one a program and point."""
    for program in PROGRAMS:
        for point, when in POINTS.items():
            steps = "".join(f"  - {{when: {{{when.format(batch)}}}, do: kill driver}}\n" for batch in BATCHES)
            expect = EXPECTED.get((program, point), "held")
            yield (
                f'name: "{program}: {point}"\npipeline: pipelines/transactions/{program}.py\n'
                f"input: {{workload: transactions, records: 2400, keys: 2400}}\nschedule:\n{steps}"
                f"expect: {expect}\ntimeout: 900s\n"
            )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
