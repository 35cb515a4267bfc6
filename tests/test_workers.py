"""PySpark's worker daemon is started without Spark's archives on its path, and with them where they are needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.components.spark import worker_daemon as workers
from harness.machine.jars import spark_home as wheel
from harness.machine.spark_home import spark_home

LOOK = "import sys, pyspark; print(pyspark.__file__); print([p for p in sys.path if p.endswith(('.zip', '.jar'))])"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An executor's import path, with a daemon that only says where it found pyspark."""
    workers.install(tmp_path / "path")
    module = tmp_path / "path" / f"{workers.MODULE}.py"
    module.write_text(module.read_text().replace(f'DAEMON = "{workers.DAEMON}"', 'DAEMON = "look"'))
    (tmp_path / "path" / "look.py").write_text(LOOK)
    return tmp_path / "path"


def daemon(folder: Path, home: Path) -> list[str]:
    archives = [home / "python" / "lib" / "pyspark.zip", home / "jars" / "spark-core.jar"]
    path = os.pathsep.join(str(entry) for entry in (*archives, "/elsewhere/own.zip", folder))
    ran = subprocess.run(
        [sys.executable, "-m", workers.MODULE, "pyspark.worker"],
        env={**os.environ, "PYTHONPATH": path, "SPARK_HOME": str(home)},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return ran.stdout.splitlines()


def test_the_installed_pyspark_takes_the_place_of_sparks_archives(folder: Path) -> None:
    found, archives = daemon(folder, spark_home())
    assert Path(found) == wheel() / "__init__.py"
    assert "pyspark.zip" not in archives
    assert "spark-core" not in archives
    assert "/elsewhere/own.zip" in archives


def test_a_spark_from_elsewhere_keeps_its_archives(folder: Path, tmp_path: Path) -> None:
    _, archives = daemon(folder, tmp_path / "another")
    assert "pyspark.zip" in archives
    assert "spark-core.jar" in archives
