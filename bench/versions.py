"""What scenarios come to on each Spark version: a word and kinds for each, a page of all, and whether they are equal.

    PYTHONPATH=. .venv/bin/python bench/versions.py PATH... [-- OPTION OF `onceproof run`...]

The runs are in reports/versions, a folder for each version. What a version cannot do is left out by name. The exit code
is 1 if a scenario was not as expected on some version, or if its verdicts differ between versions.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from bench.predicted import divided
from harness.machine import spark_versions
from harness.report.many.seen import Seen
from harness.report.many.versions import versions

REPORTS = Path("reports/versions")


def main(words: list[str]) -> int:
    paths, options = divided(words)
    onceproof, status, seen = [sys.executable, "-m", "harness"], 0, list[Seen]()
    for version in sorted(spark_versions.versions()):
        folder = REPORTS / version
        shutil.rmtree(folder, ignore_errors=True)
        chosen = ["--spark", version, "--skip-unsupported", "--reports", str(folder)]
        done = subprocess.run([*onceproof, "run", *paths, *chosen, *options], check=False)
        status = max(status, done.returncode)
        if not (folder / "latest" / "summary.json").is_file():
            sys.exit(f"Spark {version}: onceproof ended with {done.returncode} before its first run")
        runs = json.loads((folder / "latest" / "summary.json").read_text(encoding="utf-8"))["runs"]
        seen += [Seen.read(run, f"{folder}, run {number}") for number, run in enumerate(runs)]
    subprocess.run([*onceproof, "report", str(REPORTS), "--out", str(REPORTS / "merged")], check=False)
    found = versions(seen, lambda _: None, rows=len(seen))
    for each in found.lines:
        cells = ["; ".join(f"{came.word} {came.kinds}".strip() for came in cell) or "-" for cell in each.cells]
        shown = [f"{head}: {cell}" for head, cell in zip(found.heads, cells, strict=True)]
        print(f"{Path(each.name).stem}  {'DIFFERS  ' if each.differs else ''}{'  '.join(shown)}")
    wrong = sum(run.wrong for run in seen)
    print(f"{len(seen)} runs of {len(found.lines)} scenarios on {', '.join(found.heads)}")
    print(f"{wrong} not as expected; {found.differing} scenarios came to something else on one version than on another")
    return 1 if wrong or found.differing else status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
