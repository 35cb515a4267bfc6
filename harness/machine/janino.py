"""Spark's own Java compiler, Janino: it compiles a component's launcher where there is a JRE and no JDK."""

from __future__ import annotations

from pathlib import Path

from harness.errors import StackError
from harness.machine.jars import spark_home

PATTERNS = ("commons-compiler-*.jar", "janino-*.jar")
COMPILES = "org.codehaus.janino.SimpleCompiler"
"""Its main class. It takes the file of a class, whose main it calls, and that one's arguments."""


def compiler() -> list[Path]:
    """Return the compiler's jars. Raises StackError."""
    folder = spark_home() / "jars"
    found = [next(iter(sorted(folder.glob(pattern))), None) for pattern in PATTERNS]
    if None in found:
        raise StackError(f"asked for {' and '.join(PATTERNS)} of pyspark; not in {folder}; reinstall pyspark")
    return [path for path in found if path is not None]
