"""PySpark's worker daemon is started without Spark's archives on its path, and with them where they are needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.components.spark import worker_daemon as workers
from harness.machine.jars import spark_home as wheel
from harness.machine.spark_home import spark_home
from tests.limits import PROCESS_S

LOOK = """
import gc, json, sys, pyspark
own = [entry for entry in sys.path if entry.startswith(sys.base_prefix)]
def archives(entries):
    return [entry for entry in entries if entry.endswith((".zip", ".jar")) and entry not in own]
read = archives(entry for entry, finder in sys.path_importer_cache.items() if finder is not None)
print(json.dumps([pyspark.__file__, archives(sys.path), read, gc.get_freeze_count()]))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An executor's import path, with a daemon that only says where it found pyspark."""
    workers.install(tmp_path / "path")
    module = tmp_path / "path" / f"{workers.MODULE}.py"
    module.write_text(module.read_text().replace(f'DAEMON = "{workers.DAEMON}"', 'DAEMON = "look"'))
    (tmp_path / "path" / "look.py").write_text(LOOK)
    return tmp_path / "path"


def daemon(folder: Path, home: Path) -> tuple[str, list[str], list[str], int]:
    """Where it finds pyspark, the archives on its path, those that each task reads again, and how much is frozen."""
    archives = [*(home / "python" / "lib").glob("*.zip"), *(home / "jars").glob("spark-core_*.jar")]
    archives = archives or [home / "python" / "lib" / "pyspark.zip", home / "jars" / "spark-core.jar"]
    path = os.pathsep.join(str(entry) for entry in (*archives, "/elsewhere/own.zip", folder))
    ran = subprocess.run(
        [sys.executable, "-m", workers.MODULE, "pyspark.worker"],
        env={**os.environ, "PYTHONPATH": path, "SPARK_HOME": str(home)},
        capture_output=True, text=True, timeout=PROCESS_S, check=True,
    )  # fmt: skip
    found, archives, read, frozen = json.loads(ran.stdout)
    return found, archives, read, frozen


def test_the_installed_pyspark_takes_the_place_of_sparks_archives(folder: Path) -> None:
    found, archives, read, frozen = daemon(folder, spark_home())
    assert Path(found) == wheel() / "__init__.py"
    assert archives == ["/elsewhere/own.zip"]
    assert not read
    assert frozen > 10_000


def test_a_spark_from_elsewhere_keeps_its_archives(folder: Path, tmp_path: Path) -> None:
    _, archives, _, frozen = daemon(folder, tmp_path / "another")
    assert frozen == 0
    assert [Path(archive).name for archive in archives] == ["pyspark.zip", "spark-core.jar", "own.zip"]
