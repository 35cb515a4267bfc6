"""Class data archives: offered only when they fit, and then really used by every JVM of the stack."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from harness import wait
from harness.components.kafka.process import Kafka
from harness.errors import StackError
from harness.machine import cache, class_data, jars, java
from harness.machine.class_data import Kind
from harness.machine.spark_versions import SparkVersion
from harness.session.session import Session
from harness.spark import driver_process
from harness.spark.standalone_processes import Spark
from harness.training import application, containers
from harness.training import processes as training

if TYPE_CHECKING:
    from harness.stacks.containers.stack import ContainersStack


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[java.Java, jars.Jars]:
    """A Java and jars of which only the files exist, beside an empty cache."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    (tmp_path / "jars").mkdir()
    monkeypatch.setattr(class_data, "spark_home", lambda: tmp_path)
    jar = tmp_path / "one.jar"
    jar.write_text("jar", encoding="utf-8")
    (tmp_path / "release").write_text("17.0.1", encoding="utf-8")
    return java.Java(tmp_path, tmp_path / "bin" / "java", 17, "17.0.1"), jars.Jars((jar,), (jar,), "digest")


def test_without_an_archive_only_the_short_life_flags(here: tuple[java.Java, jars.Jars]) -> None:
    assert class_data.flags(Kind.BROKER, *here) == class_data.JIT
    assert not class_data.trained(*here)
    assert not class_data.folder(*here).exists()


def test_an_archive_that_fits_is_offered_to_its_kind_alone(here: tuple[java.Java, jars.Jars]) -> None:
    archive = class_data.folder(*here) / "driver.jsa"
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"")
    assert class_data.flags(Kind.DRIVER, *here) == (*class_data.JIT, f"-XX:SharedArchiveFile={archive}", "-Xshare:auto")
    assert class_data.flags(Kind.EXECUTOR, *here) == class_data.JIT
    assert not class_data.trained(*here)


def test_another_version_of_spark_has_archives_of_its_own(here: tuple[java.Java, jars.Jars], tmp_path: Path) -> None:
    """Its broker is the installed one's."""
    (tmp_path / "other" / "jars").mkdir(parents=True)
    (tmp_path / "other" / "jars" / "spark.jar").write_text("jar", encoding="utf-8")
    version = SparkVersion("4.0", "4.0.0", tmp_path / "python", tmp_path / "other")
    folder = class_data.folder(*here, version)
    assert folder != class_data.folder(*here)
    folder.mkdir(parents=True)
    for kind in class_data.OF_SPARK:
        assert not class_data.trained(*here, version)
        (folder / f"{kind}.jsa").write_bytes(b"")
    assert class_data.trained(*here, version)
    assert not class_data.trained(*here)
    assert class_data.flags(Kind.DRIVER, *here, version) != class_data.flags(Kind.DRIVER, *here)


@pytest.mark.parametrize("name", ["one.jar", "release"])
def test_another_time_of_a_jar_or_of_the_jdk_is_another_archive(here: tuple[java.Java, jars.Jars], name: str) -> None:
    before = class_data.folder(*here)
    assert class_data.folder(*here) == before
    os.utime(here[0].home / name, (1, 1))
    assert class_data.folder(*here) != before


def test_another_order_of_the_jars_is_another_archive(here: tuple[java.Java, jars.Jars], tmp_path: Path) -> None:
    found, one = here
    two = tmp_path / "two.jar"
    two.write_text("jar", encoding="utf-8")
    forth, back = (*one.broker, two), (two, *one.broker)
    assert class_data.folder(found, jars.Jars(forth, (), "d")) != class_data.folder(found, jars.Jars(back, (), "d"))


def test_no_flag_touches_the_jdks_own_archive(here: tuple[java.Java, jars.Jars]) -> None:
    flags = [*class_data.flags(Kind.DRIVER, *here), *class_data.training_flags(Path("a.jsa"))]
    assert not any("dump" in flag.lower() for flag in flags)


def test_containers_without_archives_say_so_make_them_and_go_on_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack, said = cast("ContainersStack", SimpleNamespace(class_archives=tmp_path)), list[str]()
    monkeypatch.setattr(containers, "train", fails)
    containers.after(stack, said.append)
    assert said == [training.MAKING, training.WITHOUT.format("no archive was written")]
    for kind in class_data.IN_CONTAINERS:
        (tmp_path / f"{kind}.jsa").write_bytes(b"x")
    containers.after(stack, said.append)
    assert len(said) == 2, "nothing is missing"


def fails(stack: object) -> Path:
    raise StackError("no archive was written")


def jar(path: Path, *names: str) -> str:
    with zipfile.ZipFile(path, "w") as made:
        for name in names:
            made.writestr(name, b"")
    return str(path)


def test_what_is_trained_of_jdbc_is_sparks_and_each_driver_beside_its_jars(tmp_path: Path) -> None:
    """And nothing of a driver that Spark itself ships, of copies for other JDKs, and of what is no jar."""
    service = "META-INF/services/java.sql.Driver"
    writer = "org/apache/spark/sql/execution/datasources/jdbc/JdbcUtils$.class"
    shipped = jar(
        tmp_path / "shipped.jar", service, "org/derby/Shipped.class", writer, "org/apache/spark/sql/Row.class"
    )
    copies = ("META-INF/versions/11/a/b/Driver.class", "module-info.class", "a/b/messages.properties")
    beside = jar(tmp_path / "beside.jar", service, "a/b/Driver.class", "a/b/Driver$1.class", *copies)
    connector = jar(tmp_path / "connector.jar", "c/Connector.class")
    (tmp_path / "text.jar").write_text("no jar", encoding="utf-8")
    added = os.pathsep.join([beside, connector])
    whole = os.pathsep.join([str(tmp_path), str(tmp_path / "text.jar"), shipped, added, str(tmp_path / "gone.jar")])
    system = SimpleNamespace(getProperty={"java.class.path": whole}.get)
    jvm = SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=system)))
    for conf, drivers in (({"spark.driver.extraClassPath": added}, ["a.b.Driver", "a.b.Driver$1"]), ({}, [])):
        context = SimpleNamespace(getConf=lambda conf=conf: SimpleNamespace(get=conf.get))
        spark: Any = SimpleNamespace(sparkContext=context, _jvm=jvm)
        spoken = "org.apache.spark.sql.execution.datasources.jdbc.JdbcUtils$"
        assert application.jdbc_classes(spark) == [*drivers, spoken]


JDBC = ("org.postgresql.Driver", "org.apache.spark.sql.execution.datasources.jdbc.JdbcUtils$")


@pytest.mark.stack
@pytest.mark.prove
def test_every_jvm_of_the_stack_uses_its_archive(tmp_path: Path) -> None:
    found = java.find()
    resolved = jars.resolve(found)
    training.train(found, resolved)

    def flags(kind: Kind) -> tuple[str, ...]:
        return (*class_data.flags(kind, found, resolved), f"-Xlog:class+load:file={tmp_path}/{kind}-%p.classes")

    with Session() as session:
        broker = Kafka(session, found, resolved, logs=tmp_path, flags=flags(Kind.BROKER))
        spark = Spark(session, found, logs=tmp_path, flags=flags(Kind.DAEMON))
        try:
            broker.start()
            spark.start()
            own = training.resources(session, broker, spark)
            training.feed(own)
            conf = {
                "spark.executor.extraJavaOptions": " ".join(flags(Kind.EXECUTOR)),
            }
            pipeline = training.training_app(own, conf=conf)
            machine = driver_process.Machine(java=found, jars=resolved, flags=flags(Kind.DRIVER))
            started = driver_process.launch(session, own, pipeline, machine, number=1, log=tmp_path / "driver.log")
            wait.until("the driver to end", lambda: started.poll() is not None, within_s=training.DRIVER_S)
            assert started.poll() == 0, (tmp_path / "driver.log").read_text(encoding="utf-8")
        finally:
            spark.close()
            broker.close()
    logs = {path: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.classes")}
    assert {path.name.split("-")[0] for path in logs} == set(Kind)
    for path, text in logs.items():
        assert text.count("shared objects file (top)") > 2000, path.name
        if path.name.split("-")[0] in (Kind.DRIVER, Kind.EXECUTOR):
            # What writes through JDBC too, though no database was there to train with.
            found_at = dict(re.findall(r"(\S+) source: (.*)$", text, re.MULTILINE))
            assert [found_at.get(name) for name in JDBC] == ["shared objects file (top)"] * len(JDBC), path.name
