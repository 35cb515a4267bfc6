"""Runs side by side: how many at once, which of them alone, and what becomes of the others when one ends the suite."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli import main
from harness.errors import StackError
from harness.faults import FAULTS
from harness.scenario import Fault, Impact, Pipeline, Scenario, Step
from harness.stack import Means
from harness.suite import side_by_side
from harness.suite.progress import progress
from harness.suite.side_by_side import played, threads
from harness.triggers import trigger

HOUSE = Path(__file__).parents[1]
WITHIN_S = 20.0


def scenario(name: str, *faults: str) -> Scenario:
    steps = (Step(when=trigger("elapsed", 1.0), do=Fault(kind=fault, impact=Impact.DRIVER_KILLED)) for fault in faults)
    return Scenario(name=name, pipeline=Pipeline(entry="program"), schedule=tuple(steps))


def test_so_many_are_played_at_once() -> None:
    both = threading.Barrier(2, timeout=WITHIN_S)
    with threads(2) as pool:
        work = [scenario(name) for name in "abcd"]
        # Each waits for another one: with a thread less it would wait in vain.
        assert sorted(played(work, pool, lambda number, each: (both.wait() >= 0, each.name))) == [
            (True, name) for name in "abcd"
        ]


@dataclass(frozen=True)
class Restarts:
    """A fault on a server."""

    needs = frozenset({Means.RESTART_COMPONENTS})


def test_one_that_hits_what_others_use_is_played_alone_and_last(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {each.about.name: each for each in FAULTS} | {"kill server": Restarts()}
    monkeypatch.setattr(side_by_side, "FAULTS", known)
    at_once: list[int] = []
    seen: list[tuple[str, int]] = []

    def play(number: int, each: Scenario) -> str:
        at_once.append(number)
        seen.append((each.name, len(at_once)))
        at_once.remove(number)
        return each.name

    work = [scenario("b", "kill server"), scenario("a", "kill driver"), scenario("c", "kill server")]
    with threads(3) as pool:
        assert list(played(work, pool, play)) == ["a", "b", "c"]
    assert seen == [("a", 1), ("b", 1), ("c", 1)]


def test_what_ends_one_ends_the_suite_and_the_rest_never_begins() -> None:
    begun: list[int] = []
    down = threading.Event()

    def play(number: int, each: Scenario) -> None:
        begun.append(number)
        if number == 1:
            raise StackError("the broker died")
        assert down.wait(WITHIN_S)

    with pytest.raises(StackError, match="the broker died"), threads(2) as pool:
        try:
            list(played([scenario(str(number)) for number in range(9)], pool, play))
        finally:
            down.set()
    assert len(begun) < 9


def test_each_line_says_whose_it_is() -> None:
    out = io.StringIO()
    watched = progress(out, environment={}, jobs=2)
    first = watched.started("one", number=1, total=2, steps=1)
    watched.started("two", number=2, total=2, steps=1)({"what": "phase", "name": "feeding"})
    first({"what": "phase", "name": "draining"})
    lines = [re.sub(r"\[.*?\] ", "", line) for line in out.getvalue().splitlines()]
    assert lines == ["1/2 one", "2/2 two", "2/2 feeding", "1/2 draining"]


def test_a_cluster_that_is_there_takes_one_run_at_a_time() -> None:
    words = ["--stack", "external", "--spark-master", "spark://127.0.0.1:1", "--jobs", "2"]
    there = ["--at", "kafka=127.0.0.1:1", "--at", "postgres=postgresql://a@127.0.0.1:1/b"]
    path = str(HOUSE / "scenarios" / "proving" / "upsert_before_offset_commit.yaml")
    done = CliRunner().invoke(main, ["run", path, *words, *there])
    assert done.exit_code == 2
    assert "it takes one run at a time" in done.output


@pytest.mark.stack
def test_two_runs_at_once_are_judged_as_alone(tmp_path: Path) -> None:
    proving = HOUSE / "scenarios" / "proving"
    files = [str(proving / f"{name}.yaml") for name in ("append_before_offset_commit", "upsert_before_offset_commit")]
    argv = [sys.executable, "-m", "harness", "run", *files, "--jobs", "2", "--reports", str(tmp_path)]
    done = subprocess.run(argv, cwd=HOUSE, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    summary: dict[str, Any] = json.loads((tmp_path / "latest" / "summary.json").read_text(encoding="utf-8"))
    assert sorted(run["verdict"] for run in summary["runs"]) == ["held", "violated"]
