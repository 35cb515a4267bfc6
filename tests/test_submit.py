"""The command of a driver: Spark's own `spark-submit`, with its settings on the command line and secrets in a file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import psutil
import pytest

from harness.components.yarn import submission
from harness.components.yarn.cluster import Yarn
from harness.hosts.engine import Engine, Wanted
from harness.hosts.local import LocalProcess
from harness.machine import agent, class_data, jars, java
from harness.resources import Resources, RunResources
from harness.scenario import Pipeline, Victim
from harness.session.session import Session
from harness.spark import beside, driver_container, driver_process, standalone_containers
from harness.spark.driver_process import SECRETS, ProcessDriver, submit
from harness.spark.settings import (
    AGENT,
    COMPONENT,
    DELEGATE,
    KEPT,
    LISTENERS,
    MANAGER,
    SETTING,
    VARIABLE,
    WHY,
    WORKER,
    given_by,
    inherited,
)
from harness.spark.standalone_containers import ContainerDefaults
from harness.wait import until
from tests.limits import PROCESS_S

PIPELINE = Pipeline(entry="/pipelines/p.py", args=("--checkpoint", "a b"))


def own(folder: Path, **secrets: str) -> RunResources:
    return RunResources(
        run_id="r1",
        parts={"s3": Resources(label="s3", at=None, secret_conf=secrets)},
        spark_master="spark://a:1",
        spark_home=Path("/spark"),
        folder=folder,
        checkpoint=folder / "checkpoint",
    )


def test_the_program_is_started_by_the_spark_submit_of_its_spark(tmp_path: Path) -> None:
    assert submit(own(tmp_path), {"spark.cores.max": "2", "spark.app.name": "a b"}, PIPELINE) == [
        "/spark/bin/spark-submit", "--master", "spark://a:1",
        "--conf", "spark.cores.max=2", "--conf", "spark.app.name=a b", "/pipelines/p.py", "--checkpoint", "a b",
    ]  # fmt: skip
    assert not any(tmp_path.iterdir())


def test_secrets_stand_before_the_settings_in_a_file_of_the_run_alone(tmp_path: Path) -> None:
    found = submit(own(tmp_path, key="k=1"), {"spark.cores.max": "2"}, PIPELINE)
    file = tmp_path / SECRETS
    assert found[3:7] == ["--properties-file", str(file), "--conf", "spark.cores.max=2"]
    assert (file.read_text(encoding="utf-8"), file.stat().st_mode & 0o777) == ("key=k=1\n", 0o600)


def test_each_thing_that_the_harness_gives_has_a_reason(tmp_path: Path) -> None:
    """Without a component, whose own settings are not listed by name."""
    given = replace(own(tmp_path), parts={}, agent="a:1")
    found = java.Java(home=tmp_path, executable=tmp_path, feature=17, text="17")
    none = jars.Jars(broker=(), spark=(tmp_path / agent.NAME,), digest="")
    here = driver_process.Machine(java=found, jars=none, modules=tmp_path)
    boxed = ContainerDefaults(user="1:1", passwd=tmp_path, folders={}, class_archives=tmp_path)
    yarn = cast(Yarn, SimpleNamespace(home=tmp_path, master="yarn"))
    contained = submission.Machine(java=found, jars=none, flags=dict.fromkeys(class_data.Kind, ()))
    tables = [
        driver_process.table(given, PIPELINE, here),
        driver_process.table(given, replace(PIPELINE, conf={MANAGER: "a.Manager"}), here),
        driver_process.table(given, PIPELINE, replace(here, shipped=tmp_path / "a.zip")),
        driver_container.table(given, PIPELINE, boxed, none),
        submission.table(given, PIPELINE, yarn, contained),
    ]
    assert [each for table in tables for each in table if each.why == COMPONENT] == []
    listed = {(each.where, each.name) for table in tables for each in table}
    reasons = [(where, name) for of in (WHY, given_by()["yarn"]) for where in of for name in of[where]]
    assert {each for each in listed if each[0] != WORKER} == {
        (where, name) for where, name in reasons if where in (SETTING, VARIABLE)
    }


def test_what_a_worker_in_a_container_hands_on_has_a_reason() -> None:
    assert all(each.why for each in inherited(standalone_containers.VARIABLES))


ASKED = {
    MANAGER: "a.Manager",
    LISTENERS: "a.Listener",
    "spark.driver.extraClassPath": "/a.jar",
    "spark.driver.extraJavaOptions": "-XX:+UseG1GC -Da=b",
}


def given_to(words: Sequence[str]) -> dict[str, str]:
    """The settings on a command line."""
    return dict(words[at + 1].split("=", 1) for at, word in enumerate(words) if word == "--conf")


def launched(folder: Path, pipeline: Pipeline) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """The settings and the environment that a driver on `processes` is started with."""
    given = replace(own(folder), parts={}, agent="a:1")
    found = java.Java(home=folder, executable=folder, feature=17, text="17")
    flags = (*class_data.JIT, "-XX:SharedArchiveFile=/a.jsa", "-Xshare:auto")
    of_jars = jars.Jars(broker=(), spark=(folder / agent.NAME,), digest="")
    machine = driver_process.Machine(java=found, jars=of_jars, flags=flags, executor_flags=flags)
    spawned = list[tuple[list[str], dict[str, str]]]()
    session = SimpleNamespace(spawn=lambda words, **more: spawned.append((words, more["env"])))
    driver_process.launch(cast(Session, session), given, pipeline, machine, number=1, log=folder / "log")
    ((words, env),) = spawned
    return given_to(words), env


@pytest.mark.parametrize("where", ["pipeline", "defaults"])
def test_the_settings_of_the_user_come_beside_ours(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which of the two gives them makes no difference. A JVM starts with one collector alone."""
    pipeline = replace(PIPELINE, conf=ASKED if where == "pipeline" else {})
    if where == "defaults":
        text = b"# r\xe9glages\n" + "\n".join(f"{name}  {value} " for name, value in ASKED.items()).encode()
        (tmp_path / "spark-defaults.conf").write_bytes(text)
        monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    said, env = launched(tmp_path, pipeline)
    assert (said[MANAGER], said[DELEGATE]) == (agent.MANAGER, "a.Manager")
    assert said[LISTENERS] == f"{agent.LISTENER},a.Listener"
    assert said["spark.driver.extraClassPath"] == f"/a.jar:{tmp_path / agent.NAME}"
    assert said.get("spark.driver.extraJavaOptions") == pipeline.conf.get("spark.driver.extraJavaOptions")
    assert "-XX:+UseSerialGC" not in env["SPARK_SUBMIT_OPTS"]
    # An archive does not fit another class path.
    assert "SharedArchive" not in env["SPARK_SUBMIT_OPTS"]
    assert "-XX:TieredStopAtLevel=1" in env["SPARK_SUBMIT_OPTS"]


def test_without_settings_of_the_user_all_our_flags_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said, env = launched(tmp_path, PIPELINE)
    for flags in (said["spark.executor.extraJavaOptions"], env["SPARK_SUBMIT_OPTS"]):
        assert {"-XX:+UseSerialGC", "-XX:SharedArchiveFile=/a.jsa", "-Xshare:auto"} <= {*flags.split()}


def test_of_a_collector_for_each_jvm_the_users_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:+UseParallelGC")
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Dcompany.proxy=x")
    conf = {"spark.executor.extraJavaOptions": "-XX:+UseZGC", "spark.executor.extraClassPath": "/b.jar"}
    said, env = launched(tmp_path, replace(PIPELINE, conf=conf))
    assert "UseSerialGC" not in env["SPARK_SUBMIT_OPTS"] + env["SPARK_LAUNCHER_OPTS"]
    assert env["SPARK_SUBMIT_OPTS"].endswith(" -Dcompany.proxy=x")
    jit = [each for each in class_data.JIT if each != "-XX:+UseSerialGC"]
    assert said["spark.executor.extraJavaOptions"].split() == [*jit, "-XX:+UseZGC"]


def test_a_driver_in_a_container_is_given_what_its_table_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = replace(own(tmp_path), parts={}, agent="/a.sock")
    none = jars.Jars(broker=(), spark=(tmp_path / agent.NAME,), digest="")
    boxed = ContainerDefaults(user="1:1", passwd=tmp_path, folders={}, class_archives=tmp_path)
    monkeypatch.setattr(driver_container, "Container", lambda _, wanted: wanted)
    asked = replace(PIPELINE, conf=ASKED)
    driver = driver_container.launch(cast(Engine, None), boxed, none, given, asked, number=1, log=tmp_path / "log")
    said = given_to(cast(Wanted, driver.container).command)
    assert (said[MANAGER], said[DELEGATE]) == (agent.MANAGER, "a.Manager")
    table = driver_container.table(given, asked, boxed, none)
    ours = {each.name: each.value for each in table if each.where == SETTING and each.name != "spark.driver.host"}
    assert {name: value for name, value in said.items() if name in ours and name not in KEPT} == {
        name: value for name, value in ours.items() if name not in KEPT
    }
    assert all(ours[name] in said[name] for name in KEPT if name in ours)


def test_defaults_of_the_user_stand_before_the_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.sql.ansi.enabled false", encoding="utf-8")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    given = own(tmp_path, key="k")
    submit(given, {}, PIPELINE, beside.read(given, PIPELINE).defaults)
    assert (tmp_path / SECRETS).read_text(encoding="utf-8") == "spark.sql.ansi.enabled false\nkey=k\n"


@pytest.mark.subprocess
@pytest.mark.parametrize(("shell", "status"), [("exit 0", 0), ("exit 1", 1), ("exit 137", -9), ("kill -9 $$", -9)])
def test_a_driver_ends_as_its_program_did(shell: str, status: int, tmp_path: Path) -> None:
    """A JVM that has run a Python program to its end passes on what a shell would."""
    process = subprocess.Popen(["/bin/sh", "-c", shell])
    driver = ProcessDriver(1, tmp_path / "log", process)
    process.wait(PROCESS_S)
    assert driver.poll() == status
    assert driver.processes() == []


@pytest.mark.subprocess
def test_a_driver_has_the_processes_of_its_whole_tree(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("input()\n", encoding="utf-8")
    words = ["/bin/sh", "-c", '"$@"; true', "sh", sys.executable, str(tmp_path / "p.py")]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as process:
        driver = ProcessDriver(1, tmp_path / "log", process)
        until("the program to run", lambda: len(driver.processes(Victim.PYTHON)) == 1, within_s=PROCESS_S)
        top, python = driver.processes()
        assert top == LocalProcess(psutil.Process(process.pid))
        assert driver.processes(Victim.PYTHON) == [python]
        process.communicate(b"\n")
    assert driver.processes() == []


def test_on_yarn_the_agent_stands_before_the_manager_of_the_pipeline(tmp_path: Path) -> None:
    given = replace(own(tmp_path), parts={}, agent="a:1")
    none = jars.Jars(broker=(), spark=(tmp_path / agent.NAME,), digest="")
    found = java.Java(home=tmp_path, executable=tmp_path, feature=17, text="17")
    machine = submission.Machine(java=found, jars=none, flags=dict.fromkeys(class_data.Kind, ()))
    yarn = cast(Yarn, SimpleNamespace(home=tmp_path, master="yarn", folders=SimpleNamespace(conf=tmp_path)))
    session = cast(Session, SimpleNamespace(spawn=lambda *_, **__: None))
    asked = replace(PIPELINE, conf={MANAGER: "a.Manager", "spark.jars": "a.jar"})
    submission.submit(session, yarn, given, asked, machine, log=tmp_path / "log")
    said = dict(line.split("=", 1) for line in (tmp_path / "spark.properties").read_text().splitlines())
    assert (said[MANAGER], said[DELEGATE], said["spark.jars"]) == (agent.MANAGER, "a.Manager", "a.jar")
    for name in (f"spark.yarn.appMasterEnv.{AGENT}", f"spark.executorEnv.{AGENT}"):
        assert said[name] == "a:1"
