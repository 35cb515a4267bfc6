"""Finds the Java that runs Spark and Kafka: 17 or 21, and says in one line what to install when there is none.

Java 25 is too new for the Hadoop client inside pyspark, Java 11 too old for Spark 4. Imports nothing that is not in
every Python, so that the Makefile can ask before anything is installed: `python3 -m harness.machine.java`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from harness.errors import StackError

FEATURES = (17, 21)
VARIABLE = "ONCEPROOF_JAVA_HOME"
CURE = f"install Java 17 or 21 (Debian and Ubuntu: openjdk-17-jre-headless), or set {VARIABLE} to one"
SYSTEM = Path("/usr/lib/jvm")
ANSWER_S = 30.0


@dataclass(frozen=True)
class Java:
    """One Java installation. `text` is what it says about itself; `feature` the number people call it by (17).
    `instead` is a sentence on the JAVA_HOME that does not fit, where this one is taken instead."""

    home: Path
    executable: Path
    feature: int
    text: str
    instead: str = ""


def find(environ: Mapping[str, str] | None = None, *, system: Path = SYSTEM) -> Java:
    """Return the first fitting Java. `ONCEPROOF_JAVA_HOME`, if set, is the only place.

    Otherwise JAVA_HOME, `java` on the PATH and `/usr/lib/jvm/*`. Raises StackError with one line if none fits."""
    found: list[str] = []
    environ = os.environ if environ is None else environ
    preferred = "" if environ.get(VARIABLE) else environ.get("JAVA_HOME", "")
    for executable in _candidates(environ, system):
        java = probed(executable)
        if java is not None and java.feature in FEATURES:
            taken = f"JAVA_HOME: {found[0]}; Spark and Kafka run on {java.home}" if preferred and found else ""
            return replace(java, instead=taken)
        found.append(f"java {java.feature} at {java.home}" if java else f"no working java at {executable}")
    raise StackError(f"needs Java 17 or 21; found {', '.join(dict.fromkeys(found)) or 'no java'}; {CURE}")


def probed(executable: Path) -> Java | None:
    """Return the Java that `executable` is; None if it does not answer as a Java does."""
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=ANSWER_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    output = done.stderr + done.stdout
    version = re.search(r'^\S.* version "(?:1\.)?(\d+)[^"]*".*$', output, re.MULTILINE)
    if done.returncode != 0 or version is None:
        return None
    home = re.search(r"^\s+java\.home = (.+)$", output, re.MULTILINE)
    place = Path(home[1].strip()) if home else executable.resolve().parent.parent
    return Java(home=place, executable=executable, feature=int(version[1]), text=version[0].strip())


def _candidates(environ: Mapping[str, str], system: Path) -> Iterator[Path]:
    if wish := environ.get(VARIABLE):
        yield Path(wish) / "bin" / "java"
        return
    if home := environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java", path=environ.get("PATH", "")):
        yield Path(on_path)
    yield from sorted(path for path in system.glob("*/bin/java") if path.is_file())


def main() -> int:
    """Print the Java that would be used; 0, or 4 with one line."""
    try:
        java = find()
    except StackError as error:
        print(f"onceproof: {error}", file=sys.stderr)
        return error.exit_code
    print(f"java {java.feature} at {java.home}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
