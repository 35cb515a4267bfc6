"""What a program can see of how its driver was started is the same with and without Spark's launcher."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.components.spark import driver_process, launcher
from harness.machine import class_data, jars, java
from harness.machine.spark_home import spark_home
from harness.resources import RunResources
from harness.scenario import Pipeline
from harness.session.session import Session
from harness.wait import until

PROGRAM = Path(__file__).parent / "programs" / "observed.py"
START_S = 300.0
EACH_ITS_OWN = {
    "jvm.environment": {"_PYSPARK_DRIVER_CONN_INFO_PATH", "PWD", "OLDPWD", "SHLVL", "_"},
    "jvm.properties": {"sun.java.command", "spark.app.startTime", "spark.app.submitTime"},
    "conf": {"spark.app.id", "spark.app.startTime", "spark.app.submitTime", "spark.driver.port"},
    "sql": {"spark.app.id", "spark.app.startTime", "spark.app.submitTime", "spark.driver.port"},
}
"""By what, names of which each start has a value of its own."""


@pytest.fixture
def session() -> Iterator[Session]:
    with Session() as made:
        yield made


def seen(session: Session, folder: Path, log: Path) -> tuple[dict[str, Any], bool]:
    """What the program saw, and whether the launcher was left out."""
    found = java.find()
    resolved = jars.resolve(found)
    own = RunResources(
        run_id="observed", parts={}, spark_master="local[1]", spark_home=spark_home(), folder=folder,
        checkpoint=folder / "checkpoint",
    )  # fmt: skip
    machine = driver_process.Machine(
        java=found, jars=resolved, flags=class_data.flags(class_data.Kind.DRIVER, found, resolved)
    )
    program = Pipeline(entry=str(PROGRAM), args=(str(folder / "seen.json"),))
    driver = driver_process.launch(session, own, program, machine, number=1, log=log)
    until("the program to end", lambda: driver.poll() is not None, within_s=START_S)
    assert driver.poll() == 0, log.read_text(encoding="utf-8")
    out: dict[str, Any] = json.loads((folder / "seen.json").read_text(encoding="utf-8"))
    # The launcher puts the settings into an order of its own, the master first; PySpark the program's own first.
    quick = out["jvm.properties"]["sun.java.command"].split()[1] == "--conf"
    out["path"] = [entry for entry in out["path"] if not Path(entry).is_relative_to(folder.parent / "scratch")]
    for part, names in EACH_ITS_OWN.items():
        out[part] = {name: value for name, value in out[part].items() if name not in names}
    for part in ("environment", "jvm.environment"):
        out[part].pop(launcher.VARIABLE, None)
    return out, quick


@pytest.mark.stack
def test_a_program_sees_no_difference(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    without, quick = seen(session, folder, tmp_path / "without.log")
    assert quick
    monkeypatch.setattr(launcher, "prepare", lambda *given: {})
    asked, quick = seen(session, folder, tmp_path / "asked.log")
    assert not quick
    assert without == asked
