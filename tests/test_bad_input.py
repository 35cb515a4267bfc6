"""What a user gets wrong is answered by one clear message and the right exit code, on the real stack too."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import HarnessError
from harness.suite import only_suite
from harness.wait import until

HOUSE = Path(__file__).parents[1]
PROVING = HOUSE / "scenarios" / "proving" / "upsert_before_offset_commit.yaml"

SCENARIO = """
name: bad
pipeline: {{entry: job.py, args: ["{{kafka.bootstrap}}", "{{topic}}"]}}
setup: {{postgres: "create table t (id bigint)"}}
sink: {{postgres: t, expected: select id from ledger, key: [id]}}
schedule: [{{when: {{point: sink-committed, batch: 1}}, do: kill driver}}]
timeout: {within}
"""


def onceproof(folder: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    """Exit code and everything it said."""
    argv = [sys.executable, "-m", "harness", *arguments]
    done = subprocess.run(
        argv, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=500, check=False
    )
    return done.returncode, done.stdout + done.stderr


def project(folder: Path, program: str, *, within: str = "60s") -> Path:
    """A folder with one scenario and its pipeline; returns the scenario."""
    (folder / "scenarios").mkdir()
    (folder / "job.py").write_text(program)
    path = folder / "scenarios" / "bad.yaml"
    path.write_text(SCENARIO.format(within=within))
    return path


Disk = Callable[..., tuple[int, str]]


@pytest.fixture
def small_disk(tmp_path: Path) -> Disk:
    """Runs a scenario with its reports on a file system of the size asked for, which is filled to the last byte when
    the run has said something. It is mounted in a namespace of its own and gone with the run."""
    reports = tmp_path / "reports"
    reports.mkdir()
    mount = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size="$0" tmpfs "$1" && shift && exec "$@"']
    tried = subprocess.run([*mount, "1m", str(reports), "true"], capture_output=True, text=True, timeout=120)
    if tried.returncode:
        pytest.skip(f"no file system can be mounted here: {tried.stderr.strip()}")

    def run(size: str, *, until_said: str) -> tuple[int, str]:
        argv = [sys.executable, "-m", "harness", "run", str(PROVING), "--reports", str(reports)]
        with (tmp_path / "said").open("wb") as said:
            harness = subprocess.Popen([*mount, size, str(reports), *argv], cwd=HOUSE, stderr=said)

        def over() -> bool:
            return harness.poll() is not None or until_said in (tmp_path / "said").read_text()

        try:
            until(f"the run to say {until_said}", over, within_s=300.0)
            if harness.poll() is None:
                fill(Path(f"/proc/{harness.pid}/root{reports}/filler"))
            code = harness.wait(300)
        finally:
            harness.terminate()
            harness.wait(300)
        return code, (tmp_path / "said").read_text()

    return run


def fill(path: Path) -> None:
    """Write until the disk is full."""
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as filler:
        while True:
            filler.write(bytes(65536))


@pytest.mark.subprocess
def test_an_unknown_key_and_a_wrong_type_are_told_together_with_their_places(tmp_path: Path) -> None:
    path = project(tmp_path, "")
    path.write_text(path.read_text().replace("timeout: 60s", "timout: 60s\nquiet_period: soon"))
    code, said = onceproof(tmp_path, "run", "scenarios/bad.yaml")
    assert code == 2
    assert "scenarios/bad.yaml:7:1: unknown key 'timout'; did you mean 'timeout'?" in said
    assert "scenarios/bad.yaml:8:15: quiet_period must be a duration such as 250ms, 3s or 2m, not 'soon'" in said
    assert "Traceback" not in said


@pytest.mark.subprocess
def test_a_missing_pipeline_file_is_told_with_its_place(tmp_path: Path) -> None:
    path = project(tmp_path, "")
    (tmp_path / "job.py").unlink()
    code, said = onceproof(tmp_path, "validate", str(path))
    assert code == 2
    assert "bad.yaml:3:" in said and "job.py" in said and "no such file" in said


def test_two_suites_in_one_reports_folder_are_refused(tmp_path: Path) -> None:
    with (
        only_suite(tmp_path),
        pytest.raises(HarnessError, match=r"another suite is writing to .*--reports"),
        only_suite(tmp_path),
    ):
        pass
    with only_suite(tmp_path):
        pass


@pytest.mark.stack
def test_a_pipeline_that_crashes_at_import_is_an_error_of_the_set_up(tmp_path: Path) -> None:
    path = project(tmp_path, "import nowhere_to_be_found\n")
    code, said = onceproof(tmp_path, "run", str(path))
    assert code == 4
    assert "ended with status 1 before any fault was injected" in said
    assert "No module named 'nowhere_to_be_found'" in said
    assert "harness/run" not in said


@pytest.mark.stack
@pytest.mark.prove
def test_a_pipeline_that_ends_at_once_is_not_started_for_ever(tmp_path: Path) -> None:
    path = project(tmp_path, 'print("no query is waited for")\n')
    code, said = onceproof(tmp_path, "run", str(path))
    assert code == 4
    assert "the pipeline ended with status 0, and began no query that has a checkpoint" in said
    assert "a query lives only while its program waits" in said and "driver 3 launched" not in said


@pytest.mark.stack
def test_a_pipeline_that_never_commits_a_batch_is_an_error_of_the_set_up(tmp_path: Path) -> None:
    path = project(tmp_path, "import threading\nthreading.Event().wait(100)\n", within="6s")
    code, said = onceproof(tmp_path, "run", str(path))
    assert code == 4
    assert "waited 6 s for the pipeline's query to begin" in said
    assert "harness/run" not in said


POISONED = """
import sys
from pyspark.sql import SparkSession

def save(rows, batch):
    if batch > 0:
        raise ValueError("a poisoned record")

spark = SparkSession.builder.getOrCreate()
source = {"kafka.bootstrap.servers": sys.argv[1], "subscribe": sys.argv[2], "startingOffsets": "earliest"}
stream = spark.readStream.format("kafka").options(**source).load()
stream.writeStream.foreachBatch(save).start().awaitTermination()
"""


@pytest.mark.stack
@pytest.mark.prove
def test_a_pipeline_that_dies_without_faults_after_its_first_batch_is_an_error_too(tmp_path: Path) -> None:
    path = project(tmp_path, POISONED)
    code, said = onceproof(tmp_path, "run", str(path))
    assert code == 4
    assert "ended with status 1 before any fault was injected" in said
    assert "a poisoned record" in said
    assert "harness/run" not in said


@pytest.mark.stack
def test_a_kafka_port_that_is_taken_is_named(tmp_path: Path) -> None:
    path = project(tmp_path, "")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, said = onceproof(tmp_path, "run", str(path), ONCEPROOF_KAFKA_PORT=str(port))
    assert code == 4
    assert str(port) in said and "Traceback" not in said
    assert len([line for line in said.splitlines() if line.startswith("Error")]) == 1


@pytest.mark.subprocess
def test_a_disk_that_is_full_before_the_start_is_told(small_disk: Disk) -> None:
    code, said = small_disk("100m", until_said="never")
    assert code == 4
    assert re.fullmatch(r"Error: needs 512 MiB free at .*, found 100 MiB; .*\n", said)


@pytest.mark.stack
def test_a_disk_that_fills_up_in_the_middle_of_a_run_is_told_once(small_disk: Disk) -> None:
    code, said = small_disk("600m", until_said="] warm-up")
    errors = [line for line in said.splitlines() if not line.startswith(("1/1 ", "["))]
    assert code == 4
    assert len(errors) == 1
    assert "the disk is full at" in errors[0]
