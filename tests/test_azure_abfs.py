"""Spark on `abfs://`: Hadoop's own driver, and a stand-in for the account. It shows that Spark has the address, jars
and key, by itself and on the stack `external`. How Azure answers is not shown: no account was asked."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.components.azure.address import AzureThere
from harness.load import load
from harness.machine import jars, java
from harness.machine.jars import spark_home
from harness.resources import RunResources
from harness.run.loop import run
from harness.scenario import Pipeline, Scenario, Word
from harness.spark.driver_process import Machine, environment, submit
from harness.stacks.addresses import Where
from harness.stacks.external.stack import ExternalStack
from harness.stacks.needed_parts import needed
from harness.stacks.processes.stack import ProcessesStack
from tests.limits import PROCESS_S
from tests.provided import broker, database
from tests.storage_account import CONTAINER, KEY, NAME, Asked, StorageAccount, in_its_place
from tests.test_azure_account import AT, AZURES

PROGRAM = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
made = spark._jvm.org.apache.hadoop.fs.Path
temporary, final = (made(f"{sys.argv[1]}/commits/{name}") for name in (".0.x y.tmp", "0"))
files = temporary.getFileSystem(spark._jsc.hadoopConfiguration())
out = files.create(temporary)
out.write(bytearray(b"v1"))
out.close()
assert files.rename(temporary, final)
print([row.value for row in spark.read.text(final.toString()).collect()])
"""


def by_http(port: int) -> dict[str, str]:
    """What has Hadoop's driver ask at a port of loopback."""
    return {
        "spark.hadoop.fs.azure.always.use.https": "false",
        "spark.hadoop.fs.azure.abfs.endpoint": f"127.0.0.1:{port}",
    }


def rename_of(asked: Asked) -> str:
    """What is renamed; empty for any other request."""
    return next((value for name, value in asked.headers.items() if name.lower() == "x-ms-rename-source"), "")


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[StorageAccount, int]]:
    """A stand-in for the account, with files of somebody else's, and where it answers."""
    account = StorageAccount(there={"others": None, "others/x": b"theirs"})
    with in_its_place(account, monkeypatch) as port:
        yield account, port


@pytest.mark.stack
@pytest.mark.prove
@pytest.mark.parametrize("key", [KEY, "b3RoZXI="], ids=["its key", "another key"])
def test_hadoops_driver_asks_for_what_it_is_told(key: str, there: tuple[StorageAccount, int], tmp_path: Path) -> None:
    account, port = there
    azure = AzureThere(AT)
    part = azure.provide("r1", {"": {"checkpoint": True}})[""]
    part = replace(part, secret_conf=dict.fromkeys(part.secret_conf, key))
    own = RunResources(
        run_id="r1", parts={"azure": part}, spark_master="local[1]", spark_home=spark_home(), folder=tmp_path,
        checkpoint=tmp_path / "checkpoint",
    )  # fmt: skip
    conf = {"spark.jars": part.placeholders["jars"], **by_http(port)}
    machine = Machine(java=java.find(), jars=jars.Jars((), (), ""), flags=())
    (tmp_path / "program.py").write_text(PROGRAM)
    pipeline = Pipeline(entry=str(tmp_path / "program.py"), args=(part.placeholders["checkpoint"],))
    done = subprocess.run(
        submit(own, {**own.conf, **conf}, pipeline),
        env=environment(own, pipeline, machine, 1),
        cwd=tmp_path, capture_output=True, text=True, timeout=PROCESS_S, check=False,
    )  # fmt: skip
    first = account.asked[0]
    assert first.whole.startswith(f"/{NAME}/{CONTAINER}/")
    if key != KEY:
        # Of a program both outputs are spark-submit's first. What it asks first, Hadoop's lines do not agree on.
        refused = rf", 403, (HEAD|PUT), http://127\.0\.0\.1:{port}/"
        assert done.returncode != 0 and re.search(refused, done.stdout)
        return
    assert (done.returncode, done.stdout) == (0, "['v1']\n"), done.stderr
    assert azure.service.read(CONTAINER, "onceproof-r1/plain/checkpoint/commits/0") == b"v1"
    assert [name.rpartition("/")[2] for name in filter(None, map(rename_of, account.asked))] == [".0.x%20y.tmp"]
    azure.drop("r1", [""])
    assert account.there == {"others": None, "others/x": b"theirs"}


@pytest.mark.stack
@pytest.mark.prove
@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("checkpoint_append_before_offset_commit", Word.VIOLATED),
        ("source_upsert_before_offset_commit", Word.HELD),
        ("sink_manifest_mid_batch", Word.HELD),
    ],
)
def test_a_scenario_runs_there_and_nothing_is_left(
    name: str, word: Word, there: tuple[StorageAccount, int], stack: ProcessesStack, tmp_path: Path
) -> None:
    account, port = there
    # As a service elsewhere takes its time: else the file before a rename is gone before anybody has listed it.
    account.late_s = 0.3
    before = dict(account.there)
    stack.ensure(["kafka", "postgres"])
    at = {"kafka": broker(stack).bootstrap, "postgres": database(stack).databases.whole(), "azure": AT}
    where = Where(at=at, spark_master=stack.spark.master, executor_python=sys.executable)
    scenario = told(load(AZURES / f"{name}.yaml"), by_http(port))
    with ExternalStack(where, tmp_path / "logs", needs=needed([scenario])) as external:
        result = run(scenario, external, reports=tmp_path / "reports")
    assert (result.verdict.word, result.verdict.as_expected) == (word, True), result.verdict.reasons
    assert account.there == before
    found = json.loads((result.folder / "run.json").read_text())
    assert found["stack"]["azure"] == {
        "at": AT,
        "account": "hierarchical namespace",
        "spark": f"abfs://{CONTAINER}@{NAME}.dfs.core.windows.net",
    }
    # A commit is a rename, which is one request.
    assert any("/commits/" in rename_of(each) for each in account.asked)
    whole = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert KEY.encode() not in whole


def told(scenario: Scenario, conf: dict[str, str]) -> Scenario:
    """The scenario, whose Spark is told more."""
    return replace(scenario, pipeline=replace(scenario.pipeline, conf={**scenario.pipeline.conf, **conf}))
