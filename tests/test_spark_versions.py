"""Another Spark version beside the installed one: who asks for it, what is made once, what is refused by name."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from harness.errors import ScenarioError, StackError, UsageError
from harness.history import AttemptStarted, History, read
from harness.hosts.local import carrying
from harness.load import dump, load
from harness.machine import cache, jars, java, spark_versions
from harness.report import claims
from harness.resources import Resources, RunResources
from harness.run.plan import in_its_file
from harness.run.run_or_baseline import planned
from harness.run.supervisor import Supervisor
from harness.run_folder import command
from harness.scenario import Pipeline, Restart, Scenario
from harness.session import reaper
from harness.session.session import Session
from harness.spark import driver_process, other_version
from harness.spark.driver_process import Machine
from harness.stacks import other_versions
from harness.stacks.processes.stack import ProcessesStack
from harness.stacks.supported import refuse, unsupported
from harness.wait import until
from harness.workloads import make
from tests.limits import PROCESS_S
from tests.strategies import project

ROOT = Path(__file__).resolve().parent.parent
OWN = spark_versions.own()
HOUSE = Path(__file__).parents[1]
FILE = """\
name: n
pipeline: {entry: pipelines/pay.py%s}
sink: {postgres: t, expected: select id from ledger, key: [id]}
input: {records: 9}
schedule: [{when: {batch: 2}, do: crash before offset commit}]
"""
VERSION = spark_versions.SparkVersion("3.5", "3.5.7", Path("there/bin/python"), Path("there/pyspark"))


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    return tmp_path


@dataclass
class Maker:
    """In the place of venv and pip: leaves what they would, and notes what was asked."""

    commands: list[list[str]] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    says: str = "3.5.7"

    def __call__(self, name: str, command: list[str]) -> str:
        self.commands.append(command)
        if "venv" in command:
            python = Path(command[-1]) / "bin" / "python"
            python.parent.mkdir(parents=True, exist_ok=True)
            python.symlink_to(sys.executable)
            self.folders.append(Path(command[-1]))
        if "-r" in command:
            (self.folders[-1] / "lib" / "python3.11" / "site-packages" / "pyspark").mkdir(parents=True)
        return self.says if "-c" in command else ""


@pytest.fixture
def maker(empty: Path, monkeypatch: pytest.MonkeyPatch) -> Maker:
    made = Maker()
    monkeypatch.setattr(spark_versions, "_run", made)
    return made


class TestTheEnvironment:
    def test_is_made_once_and_then_taken_as_it_is(self, maker: Maker) -> None:
        told: list[object] = []
        assert spark_versions.there("3.5") is None
        first = spark_versions.made("3.5", told.append)
        assert spark_versions.made("3.5", told.append) == first == spark_versions.there("3.5")
        assert (first.name, first.release, first.python.exists()) == ("3.5", "3.5.7", True)
        assert first.wheel.is_relative_to(cache.root() / "spark-3.5.7")
        assert (len(maker.folders), len(told)) == (1, 1)

    def test_is_made_once_by_two_at_once(self, maker: Maker) -> None:
        gate = threading.Barrier(4)

        def one(_: int) -> spark_versions.SparkVersion:
            gate.wait(timeout=60)
            return spark_versions.made("3.5")

        with ThreadPoolExecutor(4) as pool:
            assert len({each.python for each in pool.map(one, range(4))}) == 1
        assert len(maker.folders) == 1

    def test_is_not_there_where_it_was_made_by_half(self, maker: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
        def fails(name: str, command: list[str]) -> str:
            maker(name, command)
            if "-r" in command:
                raise StackError("no network")
            return ""

        monkeypatch.setattr(spark_versions, "_run", fails)
        with pytest.raises(StackError, match="no network"):
            spark_versions.made("3.5")
        assert spark_versions.there("3.5") is None
        # As a maker leaves it that was killed.
        left = maker.folders[-1]
        maker("3.5", ["venv", str(left)])
        monkeypatch.setattr(spark_versions, "_run", maker)
        found = spark_versions.made("3.5")
        assert not left.exists()
        assert [path.name for path in (cache.root() / "spark-3.5.7").iterdir() if path.is_dir()] == [
            found.python.parents[1].name
        ]

    def test_is_made_anew_where_its_python_has_gone(self, maker: Maker) -> None:
        python = spark_versions.made("3.5").python
        python.unlink()
        python.symlink_to("nowhere")
        assert spark_versions.there("3.5") is None
        assert spark_versions.made("3.5").python == python
        assert python.exists()

    def test_that_says_it_has_another_pyspark_is_refused(self, maker: Maker) -> None:
        maker.says = "4.0.0"
        with pytest.raises(StackError, match=r"with pyspark 3\.5\.7; its pyspark says it is 4\.0\.0"):
            spark_versions.made("3.5")
        assert spark_versions.there("3.5") is None

    def test_has_nothing_that_is_not_locked(self) -> None:
        for name, version in spark_versions.PINNED.items():
            text = "\n".join(each.read_text(encoding="utf-8") for each in spark_versions.locks(name))
            wanted = re.split(r"(?m)^(?=[a-z0-9])", re.sub(r"(?m)^ *#.*\n", "", text))
            assert all(re.match(r"[a-z0-9-]+==\S+( ; [^\\]+)? \\\n    --hash=", each) for each in wanted if each)
            assert f"\npyspark=={version} \\" in text

    def test_says_what_pip_said(self, empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            spark_versions, "_make", lambda name, folder: spark_versions._run(name, ["sh", "-c", "exit 3"])
        )
        with pytest.raises(StackError, match=r"asked for .* Spark 3\.5 \(pyspark 3\.5\.7\); saw: it said nothing"):
            spark_versions.made("3.5")

    @pytest.mark.subprocess
    def test_that_is_being_made_goes_with_who_makes_it(self, empty: Path) -> None:
        code = "from harness.machine import spark_versions; spark_versions._run('3.5', ['sleep', '86.401'])"
        maker = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)

        def asleep() -> list[psutil.Process]:
            found = psutil.process_iter(["cmdline"])
            return [each for each in found if each.info["cmdline"] == ["sleep", "86.401"]]

        until("what is run for it", asleep, within_s=PROCESS_S)
        maker.kill()
        maker.wait(PROCESS_S)
        until("it to be gone", lambda: not asleep(), within_s=PROCESS_S)

    @pytest.mark.subprocess
    def test_is_made_without_the_packages_of_others(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in spark_versions.ASTRAY:
            monkeypatch.setenv(name, "elsewhere")
        assert "elsewhere" not in spark_versions._run("3.5", ["env"])


@pytest.mark.parametrize(
    ("text", "name"), [("3.5", "3.5"), ("3.5.7", "3.5"), (OWN, OWN), (spark_versions.installed(), OWN)]
)
def test_a_version_goes_by_its_name_or_by_its_whole_version(text: str, name: str) -> None:
    assert spark_versions.chosen(text) == name


@pytest.mark.parametrize("text", ["3.4", "3", "", "3.5.6", "latest"])
def test_a_version_that_there_is_none_of_is_refused_with_those_that_there_are(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        spark_versions.chosen(text)
    assert str(refused.value).startswith(f"asked for Spark {text}; there are 3.5 (3.5.7), 4.0 (4.0.0), ")


def test_spark_3_5_is_refused_on_a_java_that_it_does_not_run_on() -> None:
    def found(feature: int) -> java.Java:
        return java.Java(home=Path("/jdk"), executable=Path("/jdk/bin/java"), feature=feature, text="")

    spark_versions.fits("3.5", found(17))
    with pytest.raises(StackError, match=r"Spark 3\.5 needs Java 17; found java 21 at /jdk"):
        spark_versions.fits("3.5", found(21))


def wheel(folder: Path) -> spark_versions.SparkVersion:
    """A version whose pyspark ships three jars."""
    (folder / "jars").mkdir(parents=True)
    for name in ("scala-library-2.12.18", "hadoop-client-api-3.3.4", "spark-tags_2.12-3.5.7"):
        (folder / "jars" / f"{name}.jar").touch()
    return replace(VERSION, wheel=folder)


def test_a_version_has_its_own_connector_and_shares_the_broker(tmp_path: Path) -> None:
    (broker, own), (same, other) = jars.jar_folders(), jars.jar_folders(wheel(tmp_path / "pyspark"))
    assert "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.7" in map(str, other.wanted)
    assert broker.key() == same.key()
    assert own.key() != other.key()


def test_of_its_jars_none_comes_twice_that_its_own_pyspark_ships(tmp_path: Path) -> None:
    version = wheel(tmp_path / "pyspark")
    for name in ("spark-tags_2.12-3.5.7.jar", "spark-sql-kafka-0-10_2.12-3.5.7.jar"):
        (tmp_path / name).touch()
    jars._drop_shipped(tmp_path, version.wheel)
    assert [path.name for path in tmp_path.glob("*.jar")] == ["spark-sql-kafka-0-10_2.12-3.5.7.jar"]


def test_a_version_has_its_own_of_what_spark_reaches_components_by(tmp_path: Path) -> None:
    version = wheel(tmp_path / "pyspark")
    found = {name: jars.coordinates(f"spark-{name}", version) for name in ("delta", "iceberg", "s3", "azure")}
    assert found["delta"] == ["io.delta:delta-spark_2.12:3.3.2"]
    assert found["iceberg"] == ["org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.11.0"]
    assert {"org.apache.hadoop:hadoop-aws:3.3.4@jar", "org.apache.spark:spark-hadoop-cloud_2.12:3.5.7@jar"} < {
        *found["s3"]
    }
    assert "org.apache.hadoop:hadoop-azure:3.3.4@jar" in found["azure"]
    assert all(jars.for_spark(name, "3.5") == jars.for_spark(name, OWN) == [f"spark-{name}"] for name in found)
    assert jars.for_spark("kafka", "3.5") == jars.for_spark("no_component", "3.5") == []


def test_a_program_gets_the_jars_of_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetched(name: str, found: java.Java, version: spark_versions.SparkVersion) -> tuple[Path, ...]:
        return tuple(Path(f"/{version.name}/{name}-{part}.jar") for part in (1, 2))

    monkeypatch.setattr(jars, "fetched", fetched)
    machine: Any = SimpleNamespace(java=None)
    cluster: Any = SimpleNamespace()
    parts = {
        "delta.tables": Resources(label="delta.tables", at=None, placeholders={"path": "/t", "jars": "/4.0/a.jar"}),
        "kafka": Resources(label="kafka", at=None, placeholders={"bootstrap": "b"}),
    }
    own = RunResources(
        run_id="r1", parts=parts, spark_master="", spark_home=tmp_path, folder=tmp_path, checkpoint=tmp_path
    )  # fmt: skip
    pipeline = Pipeline(
        entry="p.py", args=("--to", "/t"), env={"JARS": "/4.0/a.jar"}, conf={"spark.jars": "/4.0/a.jar,/mine.jar"}
    )
    given = other_version.OtherVersion(VERSION, cluster, machine).with_own_jars(own, pipeline)
    theirs = "/3.5/spark-delta-1.jar,/3.5/spark-delta-2.jar"
    assert given == replace(pipeline, env={"JARS": theirs}, conf={"spark.jars": f"{theirs},/mine.jar"})


class TestAScenario:
    def read(self, tmp_path: Path, said: str = "", more: str = "", program: str = "") -> Scenario:
        folder = tmp_path if tmp_path.name == "scenarios" else project(tmp_path)
        (folder.parent / "pipelines" / "pay.py").write_text(program, encoding="utf-8")
        (folder / "s.yaml").write_text(FILE % said + more, encoding="utf-8")
        return load(folder / "s.yaml")

    def test_names_the_version_of_its_first_attempt_and_of_those_after_it(self, tmp_path: Path) -> None:
        found = self.read(tmp_path, ", spark: 3.5", f"restart: {{spark: '{OWN}'}}\n")
        assert (found.pipeline.spark, found.restart.spark) == ("3.5", OWN)
        assert other_versions.of_attempts(found) == ("3.5",)
        at = [other_versions.program(found.pipeline, found.restart.spark, number).spark for number in (1, 2, 3)]
        assert at == ["3.5", OWN, OWN]
        (tmp_path / "scenarios" / "s.yaml").write_text(dump(found), encoding="utf-8")
        assert load(tmp_path / "scenarios" / "s.yaml") == found

    def test_without_a_version_runs_on_the_installed_one(self, tmp_path: Path) -> None:
        found = self.read(tmp_path)
        assert other_versions.of_attempts(found) == ()
        assert other_versions.of_attempts(other_versions.on(found, OWN)) == ()
        assert other_versions.of_attempts(other_versions.on(found, "3.5")) == ("3.5",)

    def test_that_names_a_version_keeps_it(self, tmp_path: Path) -> None:
        upgrade = self.read(tmp_path, more="restart: {spark: 3.5}\n")
        assert other_versions.on(upgrade, OWN) == upgrade

    def test_with_an_unknown_version_is_one_mistake(self, tmp_path: Path) -> None:
        with pytest.raises(ScenarioError) as refused:
            self.read(tmp_path, ", spark: 2.4")
        (mistake,) = refused.value.mistakes
        assert (mistake.line, mistake.column) == (2, 44)
        assert mistake.text.startswith("pipeline.spark asked for Spark 2.4; there are 3.5 (3.5.7), 4.0 (4.0.0), ")

    @pytest.mark.parametrize(
        ("installed", "name", "lacks"),
        [pytest.param("3.5.7", "sources/python_source_counter_in_memory_after_offset_commit", "Python data sources",
                      id="record_log"),
         ("4.2.0", "sinks/iceberg_appended", "iceberg"),
         ("4.0.0", "hadoop/hdfs_fs_upsert_rename_commits_held", "org.apache.spark.sql.execution.streaming.")],
    )  # fmt: skip
    def test_what_the_installed_version_does_not_do_is_refused_by_name(
        self, monkeypatch: pytest.MonkeyPatch, installed: str, name: str, lacks: str
    ) -> None:
        scenario = load(HOUSE / "scenarios" / f"{name}.yaml")
        assert unsupported(scenario, "processes") == []
        monkeypatch.setattr(spark_versions, "installed", lambda: installed)
        (words,) = unsupported(load(HOUSE / "scenarios" / f"{name}.yaml"), "processes")
        assert words.startswith(f"Spark {installed[:3]}, which has no {lacks}")

    @pytest.mark.parametrize(
        ("said", "program", "words"),
        [
            (", args: ['{spark.master}']", "", r"which has no \{spark.master\}: it is that of Spark "),
            (", progress: dstreams", "", "which has no progress: dstreams "),
            ("", "\n\ndf.toArrow()\n", r"which has no DataFrame.toArrow: Spark has them from 4.0 on \(pay.py:3\)"),
            ("", "import beside\n", r"which has no Python data sources: .* \(beside.py:1\)"),
            ("", "from beside import DataSource\n", r"which has no Python data sources: .* \(beside.py:1\)"),
            ("", "import importlib\nimportlib.import_module('beside')\n", r"which has no .* \(beside.py:1\)"),
            ("", "spark.dataSource.register(Own)\n", r"which has no Python data sources: .* \(pay.py:1\)"),
        ],
    )
    def test_is_refused_by_name_what_its_version_does_not_do(
        self, tmp_path: Path, said: str, program: str, words: str
    ) -> None:
        folder = project(tmp_path)
        (tmp_path / "pipelines" / "beside.py").write_text("from pyspark.sql.datasource import DataSource\n")
        source = "input: {records: 9, source: files}\n" if "dstreams" in said else ""
        text = FILE.replace("input: {records: 9}\n", source) if source else FILE
        (tmp_path / "pipelines" / "pay.py").write_text(program, encoding="utf-8")
        path = folder / "s.yaml"
        if "dstreams" in said:
            text = text.replace(
                "{batch: 2}, do: crash before offset commit", "{batch: 2, point: batch-planned}, do: kill driver"
            )
        path.write_text(text % (said + ", spark: 3.5"), encoding="utf-8")
        with pytest.raises(ScenarioError, match=f"pipeline.spark is 3.5, {words}"):
            load(path)
        # Nobody but its file has asked for it: then the command is refused, before anything starts.
        path.write_text(text % said, encoding="utf-8")
        asked = other_versions.on(load(path), "3.5")
        with pytest.raises(UsageError, match=f"asked for `Spark 3.5, {words}"):
            refuse([asked], "processes")

    @pytest.mark.parametrize(
        "program",
        [
            "print(parsed.beside)\n",
            "print(parsed.dataSource, parsed.dataSource.name, registry.register)\n",
            "import dataSource\nimport toArrow\n",
            "import importlib\nimportlib.import_module(name)\nimportlib.import_module('../beside')\nload('beside')\n",
        ],
    )
    def test_is_not_refused_for_a_name_that_is_of_something_else(self, tmp_path: Path, program: str) -> None:
        folder = project(tmp_path)
        (folder.parent / "pipelines" / "beside.py").write_text("from pyspark.sql.datasource import DataSource\n")
        asked = other_versions.on(self.read(folder, program=program), "3.5")
        assert other_versions.refusals(asked) == []

    @pytest.mark.parametrize(
        ("only", "words"),
        [
            (
                '{"spark-delta": ["io.delta:delta-spark_{line:4.0 4.1}_{scala}:4.0.0"]}',
                "needs delta-spark: Maven Central has it for Spark 4.0, 4.1, and not for 3.5; take one of these",
            ),
            ('{"spark-delta": ["a:b:1"], "spark-delta@3.5": []}', "has no jars for Spark 3.5"),
        ],
    )
    def test_is_refused_where_a_component_has_no_jars_for_its_version(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, only: str, words: str
    ) -> None:
        (tmp_path / "asked" / "delta").mkdir(parents=True)
        (tmp_path / "asked" / "delta" / "jars.json").write_text(only, encoding="utf-8")
        said = ", args: ['{delta.path}']"
        assert other_versions.refusals(other_versions.on(self.read(tmp_path, said), "3.5")) == []
        monkeypatch.setattr(jars, "COMPONENTS", tmp_path / "asked")
        with pytest.raises(ScenarioError, match=re.escape(f"pipeline.spark is 3.5, which has no delta: {words}")):
            self.read(tmp_path / "scenarios", f"{said}, spark: 3.5")

    def test_is_refused_where_the_stack_has_one_spark_only(self, tmp_path: Path) -> None:
        found = self.read(tmp_path, ", spark: 3.5")
        assert unsupported(found, "processes") == []
        assert {name: unsupported(found, name) for name in ("containers", "external", "yarn")} == {
            name: ["Spark 3.5"] for name in ("containers", "external", "yarn")
        }

    def test_and_its_version_are_in_the_command_that_repeats_it(self, tmp_path: Path) -> None:
        asked = other_versions.on(self.read(tmp_path), "3.5")
        assert in_its_file(asked)
        stack: Any = SimpleNamespace(describe=lambda names: {"stack": "processes", "spark": {}})
        workload = make(asked.input, seed=7, root=tmp_path)
        told = planned(asked, workload, stack, seed=7, run_id="r1")
        assert told["run"]["command"] == f"onceproof run {asked.path} --seed 7 --spark 3.5"
        assert command.typed(told["run"]) == told["run"]["command"]
        # What its file says needs no option.
        named = self.read(tmp_path / "scenarios", ", spark: 3.5")
        told = planned(named, workload, stack, seed=7, run_id="r1")
        assert told["run"]["command"] == f"onceproof run {asked.path} --seed 7"

    def test_tells_its_versions_on_its_page(self, tmp_path: Path) -> None:
        plain = self.read(tmp_path)
        upgrade = replace(other_versions.on(plain, "3.5"), restart=Restart(spark=OWN))
        told = {claims.spark(each) for each in (plain, other_versions.on(plain, "3.5"), upgrade)}
        assert told == {"", "3.5", f"3.5, {OWN} from attempt 2 on"}
        assert claims.spark(replace(plain, restart=Restart(spark="3.5"))) == (
            "the installed one, 3.5 from attempt 2 on"
        )


class TestADriver:
    def own(self, folder: Path) -> RunResources:
        return RunResources(
            run_id="r1", parts={}, spark_master="spark://a:1", spark_home=folder, folder=folder,
            checkpoint=folder / "checkpoint",
        )  # fmt: skip

    def machine(self, **more: Any) -> Machine:
        jdk = java.Java(home=Path("/jdk"), executable=Path("/jdk/bin/java"), feature=17, text="")
        return Machine(java=jdk, jars=jars.Jars((), (), ""), flags=(), **more)

    def test_of_another_version_has_its_python_and_no_pyspark_of_the_users(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "packages" / "pyspark").mkdir(parents=True)
        (tmp_path / "mine").mkdir()
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "packages"), str(tmp_path / "mine")]))
        other = self.machine(python="/35/python", program="/35/python", modules=tmp_path / "modules")
        found = driver_process.environment(self.own(tmp_path), Pipeline(entry="p.py"), other, 1)
        assert {found[name] for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")} == {"/35/python"}
        assert found["PYTHONPATH"] == os.pathsep.join([str(tmp_path / "modules"), str(tmp_path / "mine")])
        installed = driver_process.environment(self.own(tmp_path), Pipeline(entry="p.py"), self.machine(), 1)
        assert installed["PYSPARK_DRIVER_PYTHON"] == sys.executable
        assert installed["PYTHONPATH"] == os.environ["PYTHONPATH"]

    @pytest.mark.subprocess
    def test_of_another_version_is_started_by_its_spark_and_its_python(self, tmp_path: Path) -> None:
        said = '#!/bin/sh\necho "$SPARK_HOME $PYSPARK_DRIVER_PYTHON"\nfor last; do :; done\necho "$last"\n'
        submit, log = tmp_path / "bin" / "spark-submit", tmp_path / "log"
        submit.parent.mkdir()
        submit.write_text(said, encoding="utf-8")
        submit.chmod(0o755)
        pipeline = Pipeline(entry=str(tmp_path / "p.py"), args=("word",))
        with Session() as session:
            machine = self.machine(program="/35/python", python="/35/python", modules=tmp_path)
            driver = driver_process.launch(session, self.own(tmp_path), pipeline, machine, number=1, log=log)
            until("the program to end", lambda: driver.poll() is not None, within_s=PROCESS_S)
        assert log.read_text(encoding="utf-8").splitlines() == [f"{tmp_path} /35/python", "word"]

    @pytest.mark.subprocess
    def test_finds_the_failpoints_and_nothing_else_of_ours(self, tmp_path: Path) -> None:
        other_version.install(tmp_path)
        code = "from harness import failpoint; failpoint.reach('here'); import harness.errors"
        done = subprocess.run(
            [sys.executable, "-S", "-c", code],
            env={"PYTHONPATH": str(tmp_path)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PROCESS_S,
            check=False,
        )
        assert "No module named 'harness.errors'" in done.stderr


@dataclass
class Started:
    """A driver of no process."""

    number: int
    log: Path
    status: int | None = None

    def poll(self) -> int | None:
        return self.status

    def processes(self, victim: object = None) -> list[Any]:
        return []


@dataclass
class Cluster:
    """A stack of no processes: notes on which Spark each attempt begins."""

    sparks: list[str] = field(default_factory=list)
    drivers: list[Started] = field(default_factory=list)

    def launch(self, own: Any, pipeline: Pipeline, *, number: int, log: Path) -> Started:
        self.sparks.append(pipeline.spark)
        self.drivers.append(Started(number, log))
        return self.drivers[-1]

    def executors(self, own: Any, *, attempt: int | None = None) -> list[Any]:
        return []

    processes = executors


@pytest.mark.parametrize(("then", "sparks"), [(OWN, ["3.5", OWN, OWN]), ("", ["3.5", "3.5", "3.5"])])
def test_attempts_begin_on_the_version_that_is_theirs(tmp_path: Path, then: str, sparks: list[str]) -> None:
    stack, own = Cluster(), SimpleNamespace(folder=tmp_path, secrets=())
    history = History(tmp_path / "history.jsonl")
    pipeline = Pipeline(entry="program", spark="3.5")
    supervisor = Supervisor(stack, own, pipeline, history=history, logs=tmp_path)  # type: ignore[arg-type]
    supervisor.start(Restart(spark=then), lambda number: None)
    try:
        for number in (1, 2):
            stack.drivers[-1].status = -9
            until("the next attempt", lambda: len(stack.drivers) > number, within_s=PROCESS_S)  # noqa: B023
            until("it to be known", lambda: supervisor.driver is stack.drivers[-1], within_s=PROCESS_S)
    finally:
        supervisor.stop()
        history.close()
    told = [line.event for line in read(tmp_path / "history.jsonl")]
    assert stack.sparks == sparks == [each.spark for each in told if isinstance(each, AttemptStarted)]


class Other:
    """In place of another Spark version: what a stack uses of it."""

    def __init__(self, name: str, *given: object, **more: object) -> None:
        self.name, self.starts = name, 0
        self.cluster = SimpleNamespace(check=lambda: None, close=lambda: None, executors=lambda *marks: [])
        self.machine = SimpleNamespace(python=f"python of {name}")

    def start(self) -> None:
        self.starts += 1

    def describe(self) -> dict[str, Any]:
        return {"version": f"{self.name}.7", "settings": {"a": "b"}}


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProcessesStack:
    """One that says it is up, and starts nothing."""
    monkeypatch.setattr("harness.stacks.processes.stack.other_version", Other)
    made = ProcessesStack(tmp_path / "logs")
    made._session, made._java = cast_any(object()), cast_any(None)
    monkeypatch.setattr(made, "describe", lambda names: {"stack": "processes", "spark": {"version": "own"}})
    return made


def cast_any(value: object) -> Any:
    return value


def test_a_stack_starts_a_version_once_when_it_is_needed(stack: ProcessesStack) -> None:
    wanted = Pipeline(entry="p", spark="3.5")
    with pytest.raises(StackError, match=r"asked for a driver of Spark 3\.5; the stack has none up"):
        stack._other(wanted)
    stack.need(["3.5", "3.5"])
    stack.need(["3.5"])
    assert stack._other(wanted).starts == 1  # type: ignore[union-attr]
    assert stack._other(Pipeline(entry="p")) is stack._other(Pipeline(entry="p", spark=OWN)) is None


def test_a_stack_tells_which_spark_each_attempt_has(stack: ProcessesStack, tmp_path: Path) -> None:
    stack.need(["3.5"])
    plain = Scenario(name="n", pipeline=Pipeline(entry="p"))
    under = replace(plain, pipeline=Pipeline(entry="p", spark="3.5"))

    def told(scenario: Scenario) -> tuple[str, str | None]:
        found = other_versions.described(stack, scenario)
        return found["spark"]["version"], found.get(other_versions.LATER, {}).get("version")

    assert told(plain) == ("own", None)
    assert told(under) == ("3.5.7", None)
    assert told(replace(under, restart=Restart(spark=OWN))) == ("3.5.7", "own")
    assert told(replace(plain, restart=Restart(spark="3.5"))) == ("own", "3.5.7")


@pytest.mark.stack
@pytest.mark.prove
def test_a_real_driver_and_its_executors_have_the_python_the_jvm_and_the_jars_of_their_version(tmp_path: Path) -> None:
    program = Pipeline(entry=str(ROOT / "tests" / "programs" / "versions.py"), spark="3.5")
    with ProcessesStack(tmp_path / "logs") as stack:
        stack.need(["3.5"])
        own = stack.provide("r1", {})
        log = tmp_path / "driver-1.log"
        driver = stack.launch(own, program, number=1, log=log)
        until("an executor", lambda: stack.executors(own) or driver.poll() is not None, within_s=PROCESS_S)
        until("the program to end", lambda: driver.poll() is not None, within_s=PROCESS_S)
        said = log.read_text(encoding="utf-8")
        assert driver.poll() == 0, said
        python = str(spark_versions.made("3.5").python)
        (found,) = re.findall(r"^versions: (.*)$", said, re.MULTILINE)
        told = json.loads(found)
        assert told.pop("scala").startswith("2.12.")
        assert told == {
            "program": ["3.5.7", python],
            "executor": ["3.5.7", python],
            "spark": "3.5.7",
            "connector": "org.apache.spark.sql.kafka010.KafkaSourceProvider",
        }
        assert stack.spark_versions["3.5"]["version"] == "3.5.7"
        assert {path.name for path in jars.resolve(version=spark_versions.made("3.5")).spark} <= {*jars.pins()}
        session = stack.describe()["session"]
        stack.release(own)
    assert carrying(f"{reaper.MARKER}={session}") == []
