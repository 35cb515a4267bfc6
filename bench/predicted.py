"""Plays scenarios whose verdicts were written down before, and says which differ."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any


def divided(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words of a command line before `--`, and those after it."""
    at = [*words, "--"].index("--")
    return [*words[:at]], [*words[at + 1 :]]


def played(
    files: Sequence[Path],
    reports: Path,
    options: Sequence[str],
    differences: Callable[[str, dict[str, Any]], Iterable[str]],
) -> int:
    """Play the files, and print each verdict with its `differences` from what was predicted, by the file's name and the
    verdict. Return the exit code: 0 where there is none. Exits where a file was not played."""
    command = [sys.executable, "-m", "harness", "run", *map(str, files), "--reports", str(reports), *options]
    status = subprocess.run(command, check=False).returncode
    summary = json.loads((reports / "latest" / "summary.json").read_text(encoding="utf-8"))
    left = [file.stem for file in files]
    for run in summary["runs"]:
        folder = Path(run["folder"])
        name = Path(json.loads((folder / "run.json").read_text(encoding="utf-8"))["path"]).stem
        verdict = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))
        wrong = list(differences(name, verdict))
        outcome = f"{name}: {verdict['word']}, {run['seconds']:.0f} s"
        print(f"{outcome}; NOT PREDICTED: {'; '.join(wrong)}" if wrong else outcome)
        status = status or bool(wrong)
        left.remove(name)
    if left:
        sys.exit(f"not played: {', '.join(left)}")
    return status
