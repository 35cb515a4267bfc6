"""The settings of the user beside ours: those of his `spark-defaults.conf`, and those of the pipeline, which win."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.resources import RunResources
from harness.scenario import Pipeline
from harness.spark.settings import JOINED, MANAGER

LINE = re.compile(r"\s*([^\s=:#!][^\s=:]*)[\s=:]\s*(.*?)\s*")
COLLECTOR = re.compile(r"-XX:\+Use\w*GC\b")


def defaults(own: RunResources, pipeline: Pipeline) -> str:
    """Return the text of the user's `spark-defaults.conf`; empty without one."""
    folder = {**os.environ, **pipeline.env}.get("SPARK_CONF_DIR") or own.spark_home / "conf"
    path = Path(folder) / "spark-defaults.conf"
    return f"{path.read_text(encoding='utf-8')}\n" if path.is_file() else ""


def users(own: RunResources, pipeline: Pipeline) -> dict[str, str]:
    """Return every setting that the user gives, by name."""
    found = map(LINE.fullmatch, defaults(own, pipeline).splitlines())
    return {**{each[1]: each[2] for each in found if each}, **pipeline.conf}


def merged(ours: Mapping[str, str], pipelines: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that Spark is started with: ours and the pipeline's, which win. What is joined has `given`
    too, all that the user gives; the agent stands before his checkpoint file manager."""
    both = {name: _joined(name, ours[name], given[name]) for name in JOINED if ours.get(name) and given.get(name)}
    first = {MANAGER: ours[MANAGER]} if MANAGER in ours else {}
    return {**ours, **pipelines, **both, **first}


def flags(ours: Sequence[str], given: str) -> list[str]:
    """Return our JVM flags beside the user's: a JVM takes one garbage collector, and that is his."""
    return [each for each in ours if not (COLLECTOR.fullmatch(each) and COLLECTOR.search(given))]


def _joined(name: str, ours: str, given: str) -> str:
    separator = JOINED[name]
    if separator == os.pathsep:
        # Of two classes of one name, the user's is loaded.
        return separator.join([given, ours])
    return separator.join([*(flags(ours.split(), given) if separator == " " else [ours]), given])
