"""What scenarios come to on each Spark version: a word and kinds for each, a page of all, and whether they are equal.

    PYTHONPATH=. .venv/bin/python bench/versions.py PATH... [-- OPTION OF `onceproof run`...]

The runs lie in reports/versions, a folder a line. What a line does not do is left out by name. The exit code is 1 where
a scenario was not as expected on some line, or came to something else on one than on another.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from bench.predicted import divided
from harness.machine import spark_lines
from harness.report.many.seen import Seen
from harness.report.many.versions import versions

REPORTS = Path("reports/versions")


def main(words: list[str]) -> int:
    paths, options = divided(words)
    onceproof, status, seen = [sys.executable, "-m", "harness"], 0, list[Seen]()
    for line in sorted(spark_lines.versions()):
        folder = REPORTS / line
        shutil.rmtree(folder, ignore_errors=True)
        asked = ["--spark", line, "--skip-unsupported", "--reports", str(folder)]
        done = subprocess.run([*onceproof, "run", *paths, *asked, *options], check=False)
        status = max(status, done.returncode)
        if not (folder / "latest" / "summary.json").is_file():
            sys.exit(f"Spark {line}: onceproof ended with {done.returncode} before its first run")
        runs = json.loads((folder / "latest" / "summary.json").read_text(encoding="utf-8"))["runs"]
        seen += [Seen.read(run, f"{folder}, run {number}") for number, run in enumerate(runs)]
    subprocess.run([*onceproof, "report", str(REPORTS), "--out", str(REPORTS / "merged")], check=False)
    found = versions(seen, lambda _: None, rows=len(seen))
    for each in found.lines:
        cells = ["; ".join(f"{came.word} {came.kinds}".strip() for came in cell) or "-" for cell in each.cells]
        told = [f"{head}: {cell}" for head, cell in zip(found.heads, cells, strict=True)]
        print(f"{Path(each.name).stem}  {'DIFFERS  ' if each.differs else ''}{'  '.join(told)}")
    wrong = sum(run.wrong for run in seen)
    print(f"{len(seen)} runs of {len(found.lines)} scenarios on {', '.join(found.heads)}")
    print(f"{wrong} not as expected; {found.differing} scenarios came to something else on one version than on another")
    return 1 if wrong or found.differing else status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
