"""What `onceproof new` writes is valid, well formed, and comes out as its scenario expects."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.load import load
from harness.sinks.starts.shapes import SHAPES
from harness.sinks.starts.write import scaffold, starts
from tests.limits import PROCESS_S

EACH = [(sink, shape) for sink, start in starts().items() for shape in start.shapes]


@pytest.mark.parametrize(("sink", "shape"), EACH)
def test_each_start_is_a_valid_scenario_of_its_sink(tmp_path: Path, sink: str, shape: str) -> None:
    path, program = scaffold("first", sink, shape, tmp_path)
    scenario = load(path)
    (read,) = scenario.sinks
    assert (read.kind, read.key) == (sink, (SHAPES[shape].table.key,))
    assert tmp_path / scenario.pipeline.entry == program


def test_no_program_has_a_fault_that_a_linter_sees(tmp_path: Path) -> None:
    for sink, shape in EACH:
        scaffold("first", sink, shape, tmp_path / f"{sink} {shape}")
    rules = "B,E,F,I,RUF,UP,W"
    command = ["ruff", "check", "--isolated", "--no-cache", "--line-length", "120", "--select", rules, str(tmp_path)]
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, timeout=PROCESS_S)
    assert done.stdout == "All checks passed!\n"
    assert len([*tmp_path.rglob("*.py")]) == len(EACH)


@pytest.mark.parametrize(("sink", "shape"), EACH)
def test_each_program_has_its_options_in_its_arguments(tmp_path: Path, sink: str, shape: str) -> None:
    path, program = scaffold("first", sink, shape, tmp_path)
    asked = [word for word in load(path).pipeline.args if word.startswith("--")]
    code = program.read_text(encoding="utf-8")
    assert asked[:2] == ["--bootstrap", "--topic"]
    assert asked[-1] == "--checkpoint"
    assert all(f"args.{word.removeprefix('--')}" in code for word in asked)
    assert "({})".format(", ".join(f'"{word.removeprefix("--")}"' for word in asked)) in code


@pytest.mark.parametrize(
    ("sink", "shape", "said"),
    [
        ("postgress", "map-only", "asked for the sink 'postgress'; there are starts for delta, files, "),
        ("postgres", "join", "asked for the shape 'join'; there are map-only, window"),
        ("kafka", "window", "asked for the shape 'window' into kafka; it takes map-only. delta, iceberg, "),
    ],
)
def test_what_there_is_not_is_told_with_what_there_is(tmp_path: Path, sink: str, shape: str, said: str) -> None:
    with pytest.raises(UsageError) as failure:
        scaffold("first", sink, shape, tmp_path)
    assert str(failure.value).startswith(said)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.stack
def test_a_window_as_it_is_written_holds(tmp_path: Path) -> None:
    scaffold("first", "postgres", "window", tmp_path)
    command = [sys.executable, "-m", "harness", "run", "scenarios"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
