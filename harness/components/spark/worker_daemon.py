"""Starts PySpark's worker daemon on an executor without Spark's own archives on the import path.

Spark puts its copy of pyspark (`pyspark.zip`) and its core jar before everything else on that path. Python keeps no
compiled modules for an archive, and each task makes every archive that was touched read its table of contents again:
nine tenths of what a short task costs. The installed pyspark, or the folder that Spark's distribution has beside the
archives, takes their place: the same code. PySpark also collects garbage after each task; what the daemon has imported
is none, so the collector need not look at it.

This file is copied into a folder of its own on the executors' import path, so that any Python finds it; it imports
nothing of ours.
"""

from __future__ import annotations

import filecmp
import gc
import importlib
import importlib.util
import os
import runpy
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path

MODULE = "onceproof_workers"
DAEMON = "pyspark.daemon"
ARCHIVE = Path("python/lib/pyspark.zip")
SETTINGS = {"spark.python.daemon.module": MODULE}


def install(folder: Path) -> None:
    """Put this file where executors find it: `folder` is to be on their PYTHONPATH."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{MODULE}.py").write_bytes(Path(__file__).read_bytes())


def lighter(path: Sequence[str], home: str) -> list[str]:
    """`path` without the archives under `home`, Spark's folder; py4j is the last where it is nowhere else."""
    archives = [entry for entry in path if entry.startswith(f"{home}/") and entry.endswith((".zip", ".jar"))]
    light = [entry for entry in path if entry not in archives]
    elsewhere = PathFinder.find_spec("py4j", light) is not None
    return light + [entry for entry in archives if Path(entry).name.startswith("py4j-") and not elsewhere]


def same(package: Path, home: Path) -> bool:
    """Is this package `pyspark` the one of Spark's home: its own, or of a wheel with the very archive that home has?"""
    if package == home / "python" / "pyspark":
        return True
    try:
        return filecmp.cmp(package / ARCHIVE, home / ARCHIVE, shallow=False)
    except OSError:
        return False


def main() -> None:
    """Become the daemon. Where the installed pyspark is not the Spark that runs, its archives stay."""
    home, before = os.environ.get("SPARK_HOME", ""), list(sys.path)
    sys.path[:] = lighter(before, home)
    found = importlib.util.find_spec("pyspark")
    if not home or found is None or not found.origin or not same(Path(found.origin).parent, Path(home)):
        sys.path[:] = before
    else:
        # Whoever was asked for a module once is kept, on the path or not, and reads its archive again for each task.
        for entry in set(before) - set(sys.path):
            sys.path_importer_cache.pop(entry, None)
        importlib.import_module("pyspark.worker")
        gc.collect()
        gc.freeze()
    runpy.run_module(DAEMON, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
