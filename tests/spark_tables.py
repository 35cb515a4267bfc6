"""Tables that a local Spark writes by a program of `programs/`, a program for each format, read as sinks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from harness.checkers.cells import Row
from harness.machine import jars, java
from harness.resources import Resources
from harness.scenario import Sink
from harness.session.part_folders import Folder
from harness.sinks.reading import read
from tests.planted import for_spark, is_found, plant
from tests.provided import Own

SPARK_S = 400.0


def by_spark(kind: str, folder: Path) -> Own:
    """What the program made there, which a local Spark ran."""
    found = java.find()
    program = Path(__file__).parent / "programs" / f"{kind}_tables.py"
    paths = ",".join(map(str, jars.fetched(f"spark-{kind}", found)))
    command = [sys.executable, str(program), str(folder), paths]
    environment = {"JAVA_HOME": str(found.home), "PATH": "/usr/bin:/bin", "SPARK_LOCAL_IP": "127.0.0.1"}
    subprocess.run(command, env=environment, cwd=folder, timeout=SPARK_S, check=True, capture_output=True)
    return {kind: Resources(label=kind, at=Folder(folder))}


def are_read_right(kind: str, folder: Path, *, many: int) -> None:
    """Each of so many tables has the rows that the program wrote."""
    own = by_spark(kind, folder)
    wanted: dict[str, list[Row]] = json.loads((folder / "wanted.json").read_text())
    assert len(wanted) == many
    for name, expected in wanted.items():
        there = read(Sink(kind=kind, target=name), own)
        assert (name, there.unreadable) == (name, "")
        assert sorted(there.rows, key=str) == sorted(map(tuple, expected), key=str)


def show_each_fault(kind: str, folder: Path, *, named: str = "{}") -> None:
    """A table for each planted fault, called so, and the comparison finds it there."""
    planted = for_spark(folder / "planted")
    own = by_spark(kind, folder)
    for name, fault in planted.items():
        good, _, must = plant(fault)
        is_found(good, read(Sink(kind=kind, target=named.format(name)), own), must)
