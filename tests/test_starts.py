"""What `onceproof new` writes is valid, well formed, and comes out as its scenario expects."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.components.kafka.sink import Kafka
from harness.components.python.sink.start import TYPES
from harness.errors import UsageError
from harness.load import load, load_all
from harness.sinks.starts.shapes import SHAPES
from harness.sinks.starts.write import scaffold, starts
from tests.limits import PROCESS_S

EACH = [(sink, shape) for sink, start in starts().items() for shape in start.shapes]


@pytest.mark.parametrize(("sink", "shape"), EACH)
def test_each_start_is_a_valid_scenario_of_its_sink(tmp_path: Path, sink: str, shape: str) -> None:
    path, program, *_ = scaffold("first", sink, shape, tmp_path)
    (scenario,) = load_all([path], queries=True)
    (read,) = scenario.sinks
    assert (read.kind, read.key) == (sink, (SHAPES[shape].table.key,))
    appended = (sink, shape) in (("files", "window"), ("kafka", "window"))
    assert (read.watermark is not None, "last_after" in scenario.input.options) == (appended, appended)
    assert tmp_path / scenario.pipeline.entry == program


@pytest.mark.subprocess
def test_no_program_has_a_fault_that_a_linter_sees(tmp_path: Path) -> None:
    for sink, shape in EACH:
        scaffold("first", sink, shape, tmp_path / f"{sink} {shape}")
    rules = "B,E,F,I,RUF,UP,W"
    command = ["ruff", "check", "--isolated", "--no-cache", "--line-length", "120", "--select", rules, str(tmp_path)]
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, timeout=PROCESS_S)
    assert done.stdout == "All checks passed!\n"
    programs = [path for path in tmp_path.rglob("*.py") if path.name == "first.py"]
    readers = [path for path in tmp_path.rglob("*.py") if path.name == "read_first.py"]
    assert (len(programs), len(readers)) == (len(EACH), sum(sink == "python" for sink, _ in EACH))


@pytest.mark.parametrize(("sink", "shape"), EACH)
def test_each_program_has_its_options_in_its_arguments(tmp_path: Path, sink: str, shape: str) -> None:
    path, program, *_ = scaffold("first", sink, shape, tmp_path)
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
        ("kafka", "window", "asked for the shape 'window' into kafka; it takes map-only. delta, files, iceberg, "),
    ],
)
def test_what_there_is_not_is_told_with_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sink: str, shape: str, said: str
) -> None:
    monkeypatch.setattr(Kafka, "start", replace(Kafka.start, shapes={"map-only": SHAPES["map-only"]}))
    with pytest.raises(UsageError) as failure:
        scaffold("first", sink, shape, tmp_path)
    assert str(failure.value).startswith(said)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("sink", "shape"), EACH)
def test_no_program_says_that_a_fault_shows_where_rows_of_a_key_come_anyway(
    tmp_path: Path, sink: str, shape: str
) -> None:
    _, program, *_ = scaffold("first", sink, shape, tmp_path)
    text = program.read_text(encoding="utf-8")
    once = 'outputMode("update")' not in text
    assert ("the same scenario then finds duplicates" in text) == (once and sink != "kafka")


def test_spark_finds_each_batch_of_the_start_of_files(tmp_path: Path) -> None:
    _, program, *_ = scaffold("first", "files", "map-only", tmp_path)
    assert 'parquet(f"{args.output}/batch={number}")' in program.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["json", "pyspark", "harness"])
def test_a_name_that_hides_a_module_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(
        UsageError, match=f"asked for the name '{name}'; a program of that name hides the module {name}"
    ):
        scaffold(name, "postgres", "window", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_reader_of_ones_own_is_written_beside_its_program_and_bears_its_name(tmp_path: Path) -> None:
    written = scaffold("first", "python", "map-only", tmp_path) + scaffold("second", "python", "window", tmp_path)
    assert [path.name for path in written if path.parent.name == "pipelines"] == [
        "first.py", "read_first.py", "second.py", "read_second.py"
    ]  # fmt: skip
    assert load(written[0]).sinks[0].target == "read_first:payments"


@pytest.mark.parametrize("shape", ["map-only", "window"])
def test_a_reader_as_it_is_written_gives_the_rows_of_its_columns(tmp_path: Path, shape: str) -> None:
    *_, reader = scaffold("first", "python", shape, tmp_path)
    table = SHAPES[shape].table
    values = {"id": 7, "account": "0012", "amount": "1.50", "starts": "2026-01-31 10:00:10", "payments": 3}
    row = [values[name] for name in table.columns]
    code: dict[str, Any] = {}
    exec(reader.read_text(), code)
    namespace = SimpleNamespace(path=str(tmp_path))
    assert list(code[table.name](namespace)) == []
    with closing(sqlite3.connect(tmp_path / f"{table.name}.db")) as database, database:
        assert list(code[table.name](namespace)) == []
        database.execute(f"create table {table.name} ({table.sql(TYPES, key=' primary key')})")
        database.execute(f"insert into {table.name} values ({', '.join('?' * len(row))})", [str(each) for each in row])
    (none, some) = code[table.name](namespace)
    assert (none.num_rows, none.schema) == (0, some.schema)
    assert {name: str(value) for name, value in some.to_pylist()[0].items()} == {
        name: str(values[name]) for name in table.columns
    }


@pytest.mark.stack
@pytest.mark.prove
def test_a_window_as_it_is_written_holds(tmp_path: Path) -> None:
    scaffold("first", "postgres", "window", tmp_path)
    command = [sys.executable, "-m", "harness", "run", "scenarios"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
