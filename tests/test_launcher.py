"""A driver's JVM is started as Spark's launcher answered before; if anything differs, by Spark's own spark-submit."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.components.spark import launcher
from harness.machine import cache
from harness.machine import spark_home as homes
from tests.limits import PROCESS_S

# Stands for Spark's scripts: asks the launcher, then starts what it answered, with a variable more.
SUBMIT = f"""#!/usr/bin/env bash
echo asked >>{{log}}
"$JAVA_HOME/bin/java" -cp x {launcher.LAUNCHER} "$@" >/dev/null || exit 1
export SPARK_ENV_LOADED=1
exec "$JAVA_HOME/bin/java" -cp there $SPARK_SUBMIT_OPTS -Xmx1m {launcher.MAIN} --parsed "$@"
"""
JAVA = """#!/usr/bin/env bash
echo "$@"
echo "loaded: $SPARK_ENV_LOADED"
"""
CONF = {launcher.CLASS_PATH: "/a.jar", "spark.driver.host": "127.0.0.1", "spark.app.name": "run"}
ARGUMENTS = ["--master", "spark://m:1", "--conf", "spark.app.name=a run", "pyspark-shell"]
QUICK = "-cp there -Dours=1 -Xmx1m org.apache.spark.deploy.SparkSubmit"


class Driver:
    """An environment of a driver, and what came of its spark-submit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        home = folder / "pyspark"
        for name, text in (("bin/spark-submit", SUBMIT.format(log=self.log)), ("jars/a.jar", "")):
            (home / name).parent.mkdir(parents=True)
            (home / name).write_text(text, encoding="utf-8")
        (home / "bin/spark-submit").chmod(0o755)
        java = folder / "jdk" / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(JAVA, encoding="utf-8")
        java.chmod(0o755)
        self.environment = {
            "PATH": os.environ["PATH"],
            "JAVA_HOME": str(folder / "jdk"),
            "PYSPARK_SUBMIT_ARGS": shlex.join(ARGUMENTS),
            "SPARK_SUBMIT_OPTS": "-Dours=1",
        }

    def prepared(self, conf: Mapping[str, str] = CONF, **more: str) -> dict[str, str]:
        self.environment |= {"SPARK_HOME": str(homes.spark_home()), **more}
        return launcher.prepare(self.folder / "launch", self.environment, conf, "512m")

    def submit(self, *head: str, arguments: list[str] = ARGUMENTS, **more: Any) -> str:
        """What the JVM printed, when PySpark calls spark-submit with settings of the program before ours."""
        environment = {**self.environment, "SPARK_CONNECT_MODE": "0", **more}
        command = [str(Path(self.environment["SPARK_HOME"]) / "bin" / "spark-submit"), *head, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=PROCESS_S)
        return done.stdout

    def asked(self) -> int:
        """How often Spark's own spark-submit was called."""
        return len(self.log.read_text(encoding="utf-8").splitlines()) if self.log.exists() else 0


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Driver:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    made = Driver(tmp_path)
    monkeypatch.setattr(homes, "wheel", lambda: tmp_path / "pyspark")
    return made


def test_it_is_asked_once_and_the_jvm_then_started_without_it(driver: Driver) -> None:
    driver.environment |= driver.prepared()
    assert driver.asked() == 1
    assert driver.prepared() == {launcher.VARIABLE: str(driver.folder / "launch")}
    said = driver.submit("--conf", "spark.sql.shuffle.partitions=3")
    assert driver.asked() == 1
    own = "--master spark://m:1 --conf spark.app.name=a run pyspark-shell"
    assert said == f"{QUICK} --conf spark.sql.shuffle.partitions=3 {own}\nloaded: 1\n"


@pytest.mark.parametrize(
    ("head", "more"),
    [
        (("--conf", "spark.driver.memory=4g"), {}),
        (("--conf", "spark.jars.packages=a:b:c"), {}),
        (("--conf", "spark.master=local"), {}),
        (("--jars", "spark.sql.jar"), {}),
        (("--verbose",), {}),
        ((), {"arguments": ["--master", "local", *ARGUMENTS[2:]]}),
        ((), {"arguments": ["pyspark-shell"]}),
        ((), {"SPARK_SUBMIT_OPTS": "-Dtheirs=1"}),
        ((), {"SPARK_DRIVER_MEMORY": "4g"}),
        ((), {"SPARK_CONF_DIR": "/etc/spark"}),
        ((), {"JDK_JAVA_OPTIONS": "-Xint"}),
        ((), {"HADOOP_CONF_DIR": "/etc/hadoop"}),
        ((), {"LD_LIBRARY_PATH": "/opt"}),
        ((), {"JAVA_HOME": "other"}),
    ],
)
def test_it_is_asked_again_if_anything_differs(
    driver: Driver, head: tuple[str, ...], more: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.environment |= driver.prepared()
    (tmp_path / "other").symlink_to(tmp_path / "jdk")
    monkeypatch.chdir(tmp_path)
    said = driver.submit(*head, **more)
    assert driver.asked() == 2
    assert "--parsed" in said


def test_without_the_variable_it_is_sparks_own(driver: Driver) -> None:
    driver.prepared()
    assert "--parsed" in driver.submit()


@pytest.mark.parametrize(
    "conf",
    [{"spark.driver.extraJavaOptions": "-Dpassword=x"}, {"spark.submit.deployMode": "cluster"}, {"spark.master": "x"}],
)
def test_settings_that_it_reads_are_never_answered_from_the_cache(driver: Driver, conf: dict[str, str]) -> None:
    assert driver.prepared({**CONF, **conf}) == {}


def test_a_spark_with_settings_of_its_own_is_left_to_it(driver: Driver) -> None:
    (driver.folder / "pyspark" / "conf").mkdir()
    (driver.folder / "pyspark" / "conf" / "spark-defaults.conf").write_text("spark.driver.memory 4g\n")
    assert driver.prepared() == {}


def test_a_variable_that_is_no_text_is_left_to_it(driver: Driver) -> None:
    assert driver.prepared(CONF, SPARK_NAME="\udcff") == {}


def test_what_it_writes_is_for_its_user_alone(driver: Driver) -> None:
    driver.prepared()
    assert (driver.folder / "launch").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("more", [{"SPARK_CONF_DIR": "/etc/spark"}, {"SPARK_SUBMIT_OPTS": "'-Dspaced=a b'"}])
def test_an_environment_that_it_cannot_be_sure_of_is_left_to_it(driver: Driver, more: dict[str, str]) -> None:
    assert driver.prepared(CONF, **more) == {}


def test_a_launcher_that_fails_is_left_to_fail_where_it_is_seen(driver: Driver) -> None:
    (driver.folder / "jdk/bin/java").write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
    assert driver.prepared() == {}


def test_a_kept_answer_that_is_damaged_is_asked_for_again(driver: Driver) -> None:
    driver.prepared()
    (kept,) = (cache.root() / "launcher").glob("*.json")
    kept.write_text("{", encoding="utf-8")
    assert driver.prepared() != {}
    assert driver.asked() == 2
