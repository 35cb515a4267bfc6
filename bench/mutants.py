"""Mutates the judge, the checkers and the syntax with mutmut, and says how many mutants the tests kill.

    PYTHONPATH=. .venv/bin/python bench/mutants.py [PATTERN ...] [--children N] [--results]

A pattern is one of mutmut's, such as `harness.judge.cause*`; without one, every mutant that has not been tried is. The
tests of a mutant's own file run first, since they kill most. What was tried is in `mutants/`, so a run that was ended
goes on. `--results` tries nothing, and shows the figures and the mutants that live.

It runs in a new namespace of process ids: mutmut sends SIGXCPU to a mutant's id when its time is up, also if
that process ended long ago, and the id may be another process's by then. Exit code 1 where less than 97 % are killed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from mutmut.__main__ import cli
from mutmut.runners.harness import PytestRunner
from mutmut.stats import status_by_exit_code
from mutmut.utils.format_utils import get_module_from_key

APART = "ONCEPROOF_APART"
NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
DEAD = ("killed", "timeout")
ENOUGH = 0.97


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--children", type=int, default=os.cpu_count())
    parser.add_argument("--results", action="store_true")
    options = parser.parse_args()
    if not options.results:
        if APART not in os.environ:
            user = [] if os.getuid() == 0 else ["--map-root-user"]
            command = [*NAMESPACE, *user, sys.executable, *sys.argv]
            return subprocess.run(command, env={**os.environ, APART: "1"}, check=False).returncode
        PytestRunner.run_tests = _own_first  # type: ignore[method-assign]
        cli(["run", "--max-children", str(options.children), *options.patterns], standalone_mode=False)
    return _results()


def _own_first(self: PytestRunner, *, mutant_name: str | None, tests: Iterable[str]) -> int:
    """In place of mutmut's: the tests of the mutant's own file, and the others if it lives."""
    every = list(tests)
    own = [test for test in every if mutant_name and _own(mutant_name) in test]
    others = [test for test in every if test not in set(own)]
    code = _run(self, own) if own else 0
    return code or (_run(self, others) if others or not own else 0)


def _own(mutant: str) -> str:
    return f"test_{get_module_from_key(mutant).split('.')[-1]}.py"


def _run(runner: PytestRunner, tests: list[str]) -> int:
    before = Path.cwd()
    os.chdir("mutants")
    try:
        return runner.execute_pytest(runner._pytest_args_regular_run(tests))
    finally:
        os.chdir(before)


def _results() -> int:
    codes = dict(_codes())
    states = Counter(status_by_exit_code[code] for code in codes.values())
    for mutant, code in sorted(codes.items()):
        if (state := status_by_exit_code[code]) not in (*DEAD, "not checked"):
            print(f"{state}: {mutant}")
    tried, dead = len(codes) - states["not checked"], sum(states[state] for state in DEAD)
    print(f"{len(codes)} mutants, {tried} tried, {dead} killed ({dead / max(tried, 1):.1%}); {dict(states)}")
    return 0 if tried == len(codes) and dead >= ENOUGH * tried else 1


def _codes() -> Iterator[tuple[str, int | None]]:
    for meta in sorted(Path("mutants").rglob("*.py.meta")):
        yield from json.loads(meta.read_text())["exit_code_by_key"].items()


if __name__ == "__main__":
    sys.exit(main())
