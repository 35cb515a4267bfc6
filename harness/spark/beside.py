"""The settings of the user beside ours: those of `spark-defaults.conf`, and those of the pipeline, which win."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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

CONF = "SPARK_CONF_DIR"
LINE = re.compile(r"\s*([^\s=:#!][^\s=:]*)[\s=:]\s*(.*?)\s*")
OF_SPARK = ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS")
OF_ANY_JVM = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""The variables from which Spark's JVMs, and all, take flags."""
COLLECTOR = re.compile(r"-XX:\+Use\w*GC\b")
ANY = "surrogateescape"
"""How a byte that is no UTF-8 is read and written again: it is the user's, in a comment perhaps."""


def conf_folder(env: Mapping[str, str], home: Path) -> Path:
    """Return the folder of Spark's configuration for a driver with this environment; it is on the class path."""
    return Path(env.get(CONF) or home / "conf")


@dataclass(frozen=True, kw_only=True)
class Users:
    """What the user gives to Spark: the settings of the `pipeline`, the text of `spark-defaults.conf`, the JVM flags of
    the `shell`; `configured`: there is a configuration folder of the user's."""

    pipeline: Mapping[str, str]
    defaults: str = ""
    shell: str = ""
    configured: bool = False

    @cached_property
    def conf(self) -> dict[str, str]:
        """Every setting, by name."""
        found = map(LINE.fullmatch, self.defaults.splitlines())
        return {**{each[1]: each[2] for each in found if each}, **self.pipeline}

    def merged(self, ours: Mapping[str, str]) -> dict[str, str]:
        """Return the settings that Spark is started with: ours and the pipeline's, which win. What is joined has the
        user's too; the agent stands before the user's checkpoint file manager."""
        both = {name: _joined(name, ours[name], self.conf[name]) for name in JOINED if self._both(name, ours)}
        first = {MANAGER: ours[MANAGER]} if MANAGER in ours else {}
        return {**ours, **self.pipeline, **both, **first}

    def driver_flags(self, ours: Sequence[str]) -> list[str]:
        """Return our flags of the driver's JVM. A class data archive fits the class path that it was made with: one
        without configuration and jars of the user's."""
        given = f"{self.conf.get(DRIVER_OPTIONS, '')} {self.shell}"
        return _fitting(ours, given, own_class_path=self.configured or DRIVER_CLASS_PATH in self.conf)

    def executor_flags(self, ours: Sequence[str]) -> list[str]:
        """Return our flags of an executor's JVM."""
        given = self.conf.get(EXECUTOR_OPTIONS, "")
        return _fitting(ours, given, own_class_path=EXECUTOR_CLASS_PATH in self.conf)

    def _both(self, name: str, ours: Mapping[str, str]) -> bool:
        return bool(ours.get(name) and self.conf.get(name))


def read(own: RunResources, pipeline: Pipeline) -> Users:
    """Return what the user gives to a driver that is started on this machine."""
    env = {**os.environ, **pipeline.env}
    folder = conf_folder(env, own.spark_home)
    path = folder / "spark-defaults.conf"
    return Users(
        pipeline=pipeline.conf,
        defaults=f"{path.read_text(encoding='utf-8', errors=ANY)}\n" if path.is_file() else "",
        shell=" ".join(env.get(name, "") for name in (*OF_SPARK, *OF_ANY_JVM)),
        configured=folder != own.spark_home / "conf" or folder.exists(),
    )


def _fitting(ours: Sequence[str], given: str, *, own_class_path: bool) -> list[str]:
    return [each for each in _flags(ours, given) if not (own_class_path and class_data.maps(each))]


def _flags(ours: Sequence[str], given: str) -> list[str]:
    """Our JVM flags beside the user's: a JVM takes one garbage collector, and the user's is taken."""
    return [each for each in ours if not (COLLECTOR.fullmatch(each) and COLLECTOR.search(given))]


def _joined(name: str, ours: str, given: str) -> str:
    separator = JOINED[name]
    if separator == os.pathsep:
        # Of two classes of one name, the user's is loaded.
        return separator.join([given, ours])
    return separator.join([*(_flags(ours.split(), given) if separator == " " else [ours]), given])


def properties(settings: Mapping[str, str]) -> str:
    """As a file of Java properties."""
    return "".join(f"{_escaped(name, key=True)}={_escaped(value)}\n" for name, value in settings.items())


def _escaped(text: str, *, key: bool = False) -> str:
    signs = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
    if key:
        signs |= {" ": "\\ ", ":": "\\:", "=": "\\=", "#": "\\#", "!": "\\!"}
    body = "".join(signs.get(sign, sign) if sign.isascii() else _code(sign) for sign in text)
    # Spark trims nothing, but Java's reader drops blanks before a value.
    return f"\\{body}" if body.startswith(" ") and not key else body


def _code(sign: str) -> str:
    units = sign.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
