"""What a program can see of how its driver was started is the same with and without Spark's launcher, and where a
driver waited ready for it, but for what is listed here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.hosts.local import carrying
from harness.machine import class_data, jars, java
from harness.resources import RunResources
from harness.scenario import Pipeline
from harness.session.session import Session
from harness.spark import driver_process, launcher, standby, standby_program
from harness.spark.driver_process import Machine, ProcessDriver
from harness.spark.standalone_processes import Spark
from harness.stack import Driver, Start
from harness.wait import until

pytestmark = pytest.mark.stack
PROGRAM = Path(__file__).parent / "programs" / "observed.py"
START_S = 300.0
NUMBER = 2
"""The attempt that is begun in each way: one that there can be a standby for."""
ASKED = [("spark.app.name", "observed"), ("spark.sql.shuffle.partitions", "3")]
"""What the program gives to spark-submit, where nothing else is asked of it: the harness has to see this by itself."""
EACH_ITS_OWN = {
    "executor.environment": {
        "PWD",
        "PYTHON_WORKER_FACTORY_SECRET",
        "SPARK_EXECUTOR_DIRS",
        "SPARK_LOCAL_DIRS",
        "SPARK_LOG_URL_STDERR",
        "SPARK_LOG_URL_STDOUT",
    },
    "jvm.environment": {"_PYSPARK_DRIVER_CONN_INFO_PATH", "PWD", "OLDPWD", "SHLVL", "_"},
    "jvm.properties": {"sun.java.command", "spark.app.startTime", "spark.app.submitTime"},
    "conf": {"spark.app.id", "spark.app.startTime", "spark.app.submitTime", "spark.driver.port"},
    "sql": {"spark.app.id", "spark.app.startTime", "spark.app.submitTime", "spark.driver.port"},
}
"""By what, names of which each start has a value of its own."""


ALSO = {
    "jvm.listeners": [
        "org.apache.spark.sql.execution.streaming.StreamingQueryListenerBus",
        "org.apache.spark.sql.execution.ui.SQLAppStatusListener",
    ],
    "threads": ["Thread (run)", "Thread (run)"],
}
"""What a program finds besides, where a driver waited ready: a query has run in that JVM (docs/stacks.md)."""


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run begins cold after some seconds, as nothing is gained by waiting longer: a busy machine needs more."""
    for patience in ("READY_WITHIN_S", "HAND_OVER_S", "GONE_WITHIN_S"):
        monkeypatch.setattr(standby, patience, START_S)


@dataclass
class Place:
    """A master and a worker, and a run's resources there."""

    session: Session
    machine: Machine
    own: RunResources

    def program(self, *words: str) -> Pipeline:
        return Pipeline(entry=str(PROGRAM), args=(str(self.own.folder / "seen.json"), *words))

    def cold(self, log: Path, *words: str) -> ProcessDriver:
        return driver_process.launch(self.session, self.own, self.program(*words), self.machine, number=NUMBER, log=log)

    def asked(self, driver: ProcessDriver) -> standby.Asked | None:
        """What the harness sees of the program's settings, as for a standby after it."""
        until("the driver's JVM", lambda: standby.submitted(driver) or driver.poll() is not None, within_s=START_S)
        conf = driver_process.settings(self.own, self.program(), self.machine, NUMBER)
        return standby.asked(self.own, self.program(), conf, standby.submitted(driver))

    def ready(self, log: Path, *words: str) -> standby.StandbyDriver:
        folder = standby.made_folder(self.session.folder, ASKED)
        program = self.program(*words)
        driver = driver_process.launch(
            self.session,
            self.own,
            program,
            self.machine,
            number=NUMBER,
            log=log,
            standby=standby.command(folder, program),
        )
        made = standby.StandbyDriver(driver, folder, driver_process.marks(self.own, NUMBER), lambda: None)
        until("the standby", lambda: made.ready(stop=lambda: False) or made.driver.poll() is not None, within_s=START_S)
        assert made.ready(stop=lambda: False), log.read_text(encoding="utf-8")
        return made

    def seen(self, driver: Driver, *, status: int = 0) -> dict[str, Any]:
        """What the program saw, without what each start has of its own."""
        until("the program to end", lambda: driver.poll() is not None, within_s=START_S)
        assert driver.poll() == status, driver.log.read_text(encoding="utf-8")
        out: dict[str, Any] = json.loads((self.own.folder / "seen.json").read_text(encoding="utf-8"))
        scratch = self.own.folder.parent / "scratch"
        out["path"] = [entry for entry in out["path"] if not Path(entry).is_relative_to(scratch)]
        # Its working directory has the application's id in its name.
        out["executor.path"] = [entry for entry in out["executor.path"] if "/executors/app-" not in entry]
        out["threads"] = sorted(re.sub(r"-\d+", "", name) for name in out["threads"])
        out["jvm.listeners"] = [re.sub(r"@[0-9a-f]+", "", each) for each in out["jvm.listeners"]]
        for part, names in EACH_ITS_OWN.items():
            out[part] = {name: value for name, value in out[part].items() if name not in names}
        for part in ("environment", "jvm.environment"):
            for name in (launcher.VARIABLE, "PYTEST_CURRENT_TEST"):
                out[part].pop(name, None)
        return out


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    root = tmp_path_factory.mktemp("place")
    found = java.find()
    resolved = jars.resolve(found)
    folder = root / "run"
    folder.mkdir()
    with Session() as session:
        spark = Spark(session, found, logs=root)
        spark.start()
        own = RunResources(
            run_id="observed", parts={}, spark_master=spark.master, spark_home=spark.home, folder=folder,
            checkpoint=folder / "checkpoint",
        )  # fmt: skip
        machine = Machine(java=found, jars=resolved, flags=class_data.flags(class_data.Kind.DRIVER, found, resolved))
        yield Place(session, machine, own)
        spark.close()


@pytest.fixture(scope="module")
def cold(place: Place, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    driver = place.cold(tmp_path_factory.mktemp("cold") / "log")
    assert place.asked(driver) == ASKED
    found = place.seen(driver)
    assert {"metadata", "offsets/0", "commits/0"} <= {*found["checkpoint"]}
    return found


def unlike(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """By part what only one of them has, but for the modules that were imported, and the id of a task."""
    out: dict[str, Any] = {}
    for part in sorted({*one, *other} - {"modules", "executor.task"}):
        a, b = one[part], other[part]
        if isinstance(a, dict):
            a, b = ([f"{name}={value}" for name, value in each.items()] for each in (a, b))
        if a != b:
            out[part] = [each for each in a if each not in b], [each for each in b if each not in a]
    return out


def test_a_program_sees_no_launcher(
    place: Place, cold: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "prepare", lambda *given, **more: {})
    asked = place.seen(place.cold(tmp_path / "asked.log"))
    assert not unlike(asked, cold)
    assert asked["modules"] == cold["modules"]


def test_a_session_that_was_ready_is_the_one_that_a_program_makes(
    place: Place, cold: dict[str, Any], tmp_path: Path
) -> None:
    waiting = place.ready(tmp_path / "log")
    assert waiting.go()
    warm = place.seen(waiting.driver)
    assert waiting.got() is Start.WARM
    # PySpark is imported before the program asks for it, and so is what our batch needs.
    extra = set(warm["modules"]) - set(cold["modules"])
    assert not [name for name in extra if name.startswith("harness")]
    # Ids of tasks go on from those of that batch.
    assert warm["executor.task"] > cold["executor.task"]
    assert unlike(warm, cold) == {part: (more, []) for part, more in ALSO.items()} | {
        "conf": ([f"spark.sql.warehouse.dir=file:{place.own.folder}/spark-warehouse"], [])
    }


@pytest.mark.parametrize(
    "word", ["--other", *(pytest.param(word, marks=pytest.mark.prove) for word in ("--context", "--variable"))]
)
def test_a_program_that_asks_for_another_session_gets_a_jvm_of_its_own(place: Place, word: str, tmp_path: Path) -> None:
    expected = place.seen(place.cold(tmp_path / "cold.log", word))
    waiting = place.ready(tmp_path / "log", word)
    assert waiting.go()
    found = place.seen(waiting.driver)
    assert waiting.got() is Start.FRESH
    assert not unlike(found, expected)


def test_an_error_of_the_program_is_told_as_without(place: Place, tmp_path: Path) -> None:
    waiting = place.ready(tmp_path / "log", "--raise")
    assert waiting.go()
    place.seen(waiting.driver, status=1)
    text = waiting.driver.log.read_text(encoding="utf-8")
    assert "RuntimeError: an error of its own" in text
    assert Path(standby_program.__file__).name not in text


def test_one_that_nobody_wants_is_gone_with_its_log(place: Place, tmp_path: Path) -> None:
    waiting = place.ready(tmp_path / "log")
    assert carrying(*waiting.marks)
    waiting.drop()
    assert not carrying(*waiting.marks)
    assert not waiting.folder.exists()
    assert not (tmp_path / "log").exists()
