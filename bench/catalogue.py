"""What happens to which program, into which sink, at which crash point: a table made from runs.

    make prove SUITE=all
    PYTHONPATH=. .venv/bin/python bench/catalogue.py reports/latest/summary.json [MORE...] > docs/catalogue.md

A run is a row; runs that agree are one. The files name their runs' scenarios by run folder, which have to be there.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.load import load

ROOT = Path(__file__).parent.parent
HEAD = """\
# What happens
Made by `bench/catalogue.py` from the runs of `make prove SUITE=all`; run it again rather than edit this page. *Seen at
the hit* is what the snapshot taken at the hit showed: what the sink held, how far Spark's logs were, what that put at
stake. [../pipelines/README.md](../pipelines/README.md) says why each program breaks or holds."""


class Row(NamedTuple):
    """One line of the page."""

    sink: str
    program: str
    fault: str
    seen: str
    verdict: str


def main(paths: Sequence[str]) -> int:
    runs = [run for path in paths for run in json.loads(Path(path).read_text(encoding="utf-8"))["runs"]]
    counts = Counter(map(_row, runs))
    by_sink: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(counts):
        by_sink[row.sink].append(row)
    print(HEAD)
    for sink, rows in by_sink.items():
        print(f"\n## {sink}\n| program | fault | seen at the hit | verdict | runs |\n| --- | --- | --- | --- | --- |")
        for row in rows:
            print(f"| {' | '.join(row[1:])} | {counts[row]} |")
    return 0


def _row(run: dict[str, Any]) -> Row:
    folder = Path(run["folder"])
    told = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    scenario = load(ROOT / Path(told["path"]).relative_to(Path(told["path"]).parents[2]))
    program = f"`{scenario.pipeline.entry.removeprefix('pipelines/')}`"
    kinds = " and ".join(dict.fromkeys(sink.kind for sink in scenario.sinks))
    faults = ", ".join(f"{fault['name']} ({fault['point']})" for fault in run["faults"]) or "none"
    seen = "; ".join(dict.fromkeys(map(_without_sink, run["points_hit"])))
    found = ", ".join(run["findings"])
    return Row(
        kinds, program, faults, seen or "nothing at stake", f"{run['verdict']}: {found}" if found else run["verdict"]
    )


def _without_sink(point: str) -> str:
    return point.partition(": ")[2] or point


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
