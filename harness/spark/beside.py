"""The settings of the user beside ours: those of `spark-defaults.conf`, and those of the pipeline, which win."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.machine import class_data
from harness.resources import RunResources
from harness.scenario import Pipeline
from harness.spark.settings import (
    DRIVER_CLASS_PATH,
    DRIVER_OPTIONS,
    EXECUTOR_CLASS_PATH,
    EXECUTOR_OPTIONS,
    JOINED,
    MANAGER,
)

LINE = re.compile(r"\s*([^\s=:#!][^\s=:]*)[\s=:]\s*(.*?)\s*")
OF_SPARK = ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS")
OF_ANY_JVM = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""The variables from which Spark's JVMs, and all, take flags."""
COLLECTOR = re.compile(r"-XX:\+Use\w*GC\b")
ANY = "surrogateescape"
"""How a byte that is no UTF-8 is read and written again: it is the user's, in a comment perhaps."""


def conf_folder(own: RunResources, pipeline: Pipeline) -> Path:
    """Return the folder of the user's configuration, which stands on the driver's class path."""
    return Path({**os.environ, **pipeline.env}.get("SPARK_CONF_DIR") or own.spark_home / "conf")


def defaults(own: RunResources, pipeline: Pipeline) -> str:
    """Return the text of the user's `spark-defaults.conf`; empty without one."""
    path = conf_folder(own, pipeline) / "spark-defaults.conf"
    return f"{path.read_text(encoding='utf-8', errors=ANY)}\n" if path.is_file() else ""


def users(own: RunResources, pipeline: Pipeline) -> dict[str, str]:
    """Return every setting that the user gives, by name."""
    found = map(LINE.fullmatch, defaults(own, pipeline).splitlines())
    return {**{each[1]: each[2] for each in found if each}, **pipeline.conf}


def merged(ours: Mapping[str, str], pipelines: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that Spark is started with: ours and the pipeline's, which win. What is joined has `given`
    too, all that the user gives; the agent stands before the user's checkpoint file manager."""
    both = {name: _joined(name, ours[name], given[name]) for name in JOINED if ours.get(name) and given.get(name)}
    first = {MANAGER: ours[MANAGER]} if MANAGER in ours else {}
    return {**ours, **pipelines, **both, **first}


def flags(ours: Sequence[str], given: str) -> list[str]:
    """Return our JVM flags beside the user's: a JVM takes one garbage collector, and the user's is taken."""
    return [each for each in ours if not (COLLECTOR.fullmatch(each) and COLLECTOR.search(given))]


def driver_flags(own: RunResources, pipeline: Pipeline, ours: Sequence[str]) -> list[str]:
    """Return our flags of the driver's JVM. A class data archive fits the class path that it was made with: one without
    configuration and jars of the user's."""
    env, conf, given = {**os.environ, **pipeline.env}, conf_folder(own, pipeline), users(own, pipeline)
    words = " ".join([given.get(DRIVER_OPTIONS, ""), *(env.get(name, "") for name in (*OF_SPARK, *OF_ANY_JVM))])
    own_class_path = conf != own.spark_home / "conf" or conf.exists() or DRIVER_CLASS_PATH in given
    return _fitting(flags(ours, words), own_class_path)


def executor_flags(ours: Sequence[str], given: Mapping[str, str]) -> list[str]:
    """Return our flags of an executor's JVM, where the user gives these settings."""
    return _fitting(flags(ours, given.get(EXECUTOR_OPTIONS, "")), EXECUTOR_CLASS_PATH in given)


def _fitting(ours: Sequence[str], own_class_path: bool) -> list[str]:
    return [each for each in ours if not (own_class_path and class_data.maps(each))]


def _joined(name: str, ours: str, given: str) -> str:
    separator = JOINED[name]
    if separator == os.pathsep:
        # Of two classes of one name, the user's is loaded.
        return separator.join([given, ours])
    return separator.join([*(flags(ours.split(), given) if separator == " " else [ours]), given])
