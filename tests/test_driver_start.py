"""What a program can see under Onceproof and under plain `spark-submit` differs by the table of settings alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.machine import agent, class_data, jars, java
from harness.resources import RunResources
from harness.run.progress.agent import AgentServer
from harness.scenario import Pipeline
from harness.session.reaper import MARKER
from harness.session.session import Session
from harness.spark import driver_process, settings
from harness.spark.driver_process import Machine
from harness.spark.settings import EXECUTOR_OPTIONS, LISTENERS, OF_SESSION, SETTING, VARIABLE, WORKER, inherited
from harness.spark.standalone_processes import Spark
from harness.wait import Waiting, until

pytestmark = pytest.mark.stack
PROGRAM = Path(__file__).parent / "programs" / "observed.py"
START_S = 300.0
Seen = dict[str, Any]
EACH_ITS_OWN = {
    "environment": {"MASTER", "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"},
    "jvm.environment": {"PWD", "OLDPWD", "SHLVL", "_"},
    "executor.environment": {
        "PWD",
        "PYTHON_WORKER_FACTORY_PORT",
        "PYTHON_WORKER_FACTORY_SECRET",
        "PYTHON_WORKER_FACTORY_SOCK_DIR",
        "PYTHON_WORKER_FACTORY_SOCK_PATH",
        "SPARK_EXECUTOR_DIRS",
        "SPARK_LOCAL_DIRS",
        "SPARK_LOG_URL_STDERR",
        "SPARK_LOG_URL_STDOUT",
    },
    "jvm.properties": {
        "sun.java.command",
        "spark.app.id",
        "spark.app.startTime",
        "spark.app.submitTime",
        "spark.master",
    },
    "conf": {"spark.app.id", "spark.app.startTime", "spark.app.submitTime", "spark.driver.port", "spark.master"},
    "sql": {"spark.app.id", "spark.app.startTime", "spark.app.submitTime", "spark.driver.port", "spark.master"},
}
"""By what, names of which each start, or each of the two clusters, has a value of its own."""
FROM_THE_USER = {"PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH"}
SCRATCH = re.compile(r"/[^\s:]*/(spark-[0-9a-f-]{36}|app-\d+-\d+)(/[^\s:]*)?")


@dataclass(frozen=True)
class Shell:
    """A user's shell with the environment of the tests active, which has nothing of the harness."""

    session: Session
    root: Path
    java: java.Java

    def spawn(self, command: str, *words: str, name: str, cwd: Path) -> subprocess.Popen[bytes]:
        path = os.pathsep.join([str(Path(sys.executable).parent), str(self.java.executable.parent), os.environ["PATH"]])
        return self.session.spawn(
            ["env", "-u", MARKER, str(jars.spark_home() / "bin" / command), *words],
            name=name,
            log=self.root / f"{name}.log",
            env={**os.environ, "PATH": path, "PYSPARK_PYTHON": sys.executable},
            cwd=cwd,
        )

    def started(self, part: str, *words: str, told: str) -> str:
        """What the log of a master or a worker tells, once it is there."""
        main = f"org.apache.spark.deploy.{part.lower()}.{part}"
        self.spawn("spark-class", main, "--host", "127.0.0.1", *words, name=part, cwd=self.root)

        def found() -> Any:
            text = (self.root / f"{part}.log").read_text(encoding="utf-8")
            return re.findall(told, text) or Waiting(text[-500:])

        return str(until(f"a plain {part}", found, within_s=START_S)[0])


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Seen, Seen, Mapping[str, Mapping[str, str]]]]:
    """What a program saw under Onceproof and under plain spark-submit; and the table, by kind and name."""
    root = tmp_path_factory.mktemp("place")
    found = java.find()
    resolved = agent.resolve(found)
    folder = root / "run"
    folder.mkdir()
    with Session() as session, closing(AgentServer(lambda event: None)) as server:
        spark = Spark(session, found, logs=root)
        spark.start()
        own = RunResources(
            run_id="observed", parts={}, spark_master=spark.master, spark_home=spark.home, folder=folder,
            checkpoint=folder / "checkpoint", agent=server.address,
        )  # fmt: skip
        flags = {kind: class_data.flags(kind, found, resolved) for kind in class_data.Kind}
        machine = Machine(
            java=found,
            jars=resolved,
            flags=flags[class_data.Kind.DRIVER],
            executor_flags=flags[class_data.Kind.EXECUTOR],
        )
        pipeline = Pipeline(entry=str(PROGRAM), args=(str(folder / "seen.json"),))
        driver = driver_process.launch(session, own, pipeline, machine, number=1, log=root / "ours.log")
        until("the program to end", lambda: driver.poll() is not None, within_s=START_S)
        assert driver.poll() == 0, (root / "ours.log").read_text(encoding="utf-8")
        ours: Seen = json.loads((folder / "seen.json").read_text(encoding="utf-8"))
        shell = Shell(session, root, found)
        master = shell.started("Master", "--port", "0", "--webui-port", "0", told=r"(spark://\S+)")
        shell.started("Worker", "--webui-port", "0", "--memory", "2g", master, told="Successfully registered with (.*)")
        bare = shell.spawn("spark-submit", "--master", master, str(PROGRAM), *pipeline.args, name="bare", cwd=folder)
        until("the program to end", lambda: bare.poll() is not None, within_s=START_S)
        assert bare.poll() == 0, (root / "bare.log").read_text(encoding="utf-8")
        plain: Seen = json.loads((folder / "seen.json").read_text(encoding="utf-8"))
        table: dict[str, dict[str, str]] = {SETTING: {}, VARIABLE: {}, WORKER: {}}
        for each in driver_process.table(own, pipeline, machine) + inherited({MARKER: OF_SESSION, **spark.variables()}):
            table[each.where][each.name] = each.value
        spark.close()
        yield ours, plain, table


def differ(ours: Any, plain: Any) -> set[str]:
    """The names that have another value in one of the two."""
    return {name for name in {*ours, *plain} if ours.get(name) != plain.get(name)}


def test_settings_are_those_of_the_table(seen: tuple[Seen, Seen, Mapping[str, Mapping[str, str]]]) -> None:
    ours, plain, table = seen
    given = set(table[SETTING])
    # What the program names itself, it has in both.
    assert differ(ours["conf"], plain["conf"]) - EACH_ITS_OWN["conf"] == given - {"spark.app.name"}
    assert ours["conf"]["spark.app.name"] == plain["conf"]["spark.app.name"] == "observed"
    assert differ(ours["sql"], plain["sql"]) - EACH_ITS_OWN["sql"] <= given
    # Spark puts options of its own before those of a JVM.
    values = {name: value for name, value in ours["conf"].items() if name in given}
    values |= {
        name: table[SETTING][name] for name in (EXECUTOR_OPTIONS,) if values[name].endswith(table[SETTING][name])
    }
    assert values == {**table[SETTING], "spark.app.name": "observed"}


def test_variables_are_those_of_the_table(seen: tuple[Seen, Seen, Mapping[str, Mapping[str, str]]]) -> None:
    ours, plain, table = seen
    path = {"PATH"}  # the test's own, see above
    for part in ("environment", "jvm.environment"):
        # spark-submit sets SPARK_HOME by itself, to the same.
        given = {name for name, value in table[VARIABLE].items() if plain[part].get(name) != value}
        assert differ(ours[part], plain[part]) - EACH_ITS_OWN[part] - path == given, part
    executors = {
        name.removeprefix("spark.executorEnv.") for name in table[SETTING] if name.startswith("spark.executorEnv")
    }
    mine, bare = ours["executor.environment"], plain["executor.environment"]
    more = {name for name in mine if mine[name] != bare.get(name)} - EACH_ITS_OWN["executor.environment"] - path
    inherited = {name for name, value in table[WORKER].items() if bare.get(name) != value}
    assert more == executors | inherited - EACH_ITS_OWN["executor.environment"]
    assert {name: mine[name] for name in inherited & more - {MARKER}} == {
        name: table[WORKER][name] for name in inherited & more - {MARKER}
    }
    # A plain worker hands on all that its shell has, and what Spark's scripts set; ours a part of the user's.
    less = {*bare} - {*mine} - EACH_ITS_OWN["executor.environment"]
    assert less <= {*os.environ} - FROM_THE_USER | {"SPARK_BEELINE_OPTS", "SPARK_ENV_LOADED"}


def test_flags_are_those_of_the_table(seen: tuple[Seen, Seen, Mapping[str, Mapping[str, str]]]) -> None:
    ours, plain, table = seen
    more = [each for each in ours["jvm.arguments"] if each not in plain["jvm.arguments"]]
    assert table[VARIABLE]["SPARK_SUBMIT_OPTS"].split() == [each for each in more if not each.startswith("-Xmx")]
    assert [each for each in plain["jvm.arguments"] if each not in ours["jvm.arguments"]] == ["-Xmx1g"]
    assert {each.partition("=")[0] if "=/" in each else each for each in more} - {"-Xmx512m"} <= set(
        settings.WHY[settings.FLAG]
    )
    given = {each.removeprefix("-D").partition("=")[0] for each in more if each.startswith("-D")}
    # The JVM says itself whether it maps an archive.
    assert differ(ours["jvm.properties"], plain["jvm.properties"]) - EACH_ITS_OWN["jvm.properties"] - {
        "java.vm.info"
    } == (given | set(table[SETTING]) | {"java.class.path"})


def test_executors_have_the_flags_and_the_class_path_of_the_table(
    seen: tuple[Seen, Seen, Mapping[str, Mapping[str, str]]],
) -> None:
    ours, plain, table = seen
    both = [{_bare(each) for each in one["executor.jvm.arguments"]} for one in (ours, plain)]
    port = re.compile(r"-Dspark\.driver\.port=\d+")
    more, less = (
        {each for each in these if not port.fullmatch(each)} for these in (both[0] - both[1], both[1] - both[0])
    )
    (class_path,) = [each for each in more if each.startswith(table[SETTING]["spark.executor.extraClassPath"])]
    flags = {*table[SETTING]["spark.executor.extraJavaOptions"].split()}
    assert more - {class_path} == flags | {f"-Xmx{table[SETTING]['spark.executor.memory'].upper()}"}
    own = class_path.removeprefix(table[SETTING]["spark.executor.extraClassPath"] + ":")
    plain_conf = own.replace(f"{table[WORKER]['SPARK_CONF_DIR']}/", f"{table[VARIABLE]['SPARK_HOME']}/conf")
    assert less == {plain_conf, "-Xmx1024M"}


def test_the_jvm_has_the_same_threads_but_for_those_of_listeners_and_of_the_user_interface(
    seen: tuple[Seen, Seen, Mapping[str, Mapping[str, str]]],
) -> None:
    # Those of pools, which are numbered, and what waits for a child come and go.
    both = [{each for each in one["jvm.threads"] if not re.search(r"N|[Pp]ool|reaper", each)} for one in seen[:2]]
    assert "dag-scheduler-event-loop" in both[0]
    differs = {each for each in both[0] ^ both[1] if not each.startswith("SparkUI")}
    # Spark's, for listeners that are not its own.
    assert differs == {"spark-listener-group-shared"}


def test_nothing_else_differs(seen: tuple[Seen, Seen, Mapping[str, Mapping[str, str]]]) -> None:
    ours, plain, table = seen
    apart = {"conf", "sql", "environment", "jvm.environment", "executor.environment", "jvm.arguments", "jvm.properties"}
    apart |= {"executor.jvm.arguments", "jvm.threads"}
    assert (
        ours["jvm.class_path"].removeprefix(table[SETTING]["spark.driver.extraClassPath"] + ":")
        == (plain["jvm.class_path"])
    )
    for part in sorted({*ours, *plain} - apart - {"jvm.class_path", "jvm.listeners"}):
        assert _bare(ours[part]) == _bare(plain[part]), part
    listeners = [[re.sub(r"@[0-9a-f]+", "", each) for each in one["jvm.listeners"]] for one in (ours, plain)]
    # The user interface keeps what it shows by a listener, and there is none.
    assert {*listeners[0]} - {*listeners[1]} == {seen[2][SETTING][LISTENERS]}


def test_the_page_of_settings_is_the_table() -> None:
    page = Path(__file__).parent.parent / "docs" / "settings.md"
    assert page.read_text(encoding="utf-8").rstrip("\n") == "\n".join(settings.markdown()), (
        "python -m harness.spark.settings > docs/settings.md"
    )


def _bare(value: Any) -> Any:
    """Without the folders that each application has for itself."""
    if isinstance(value, list):
        return [_bare(each) for each in value]
    return SCRATCH.sub("SCRATCH", value) if isinstance(value, str) else value
