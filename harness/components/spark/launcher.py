"""What Spark's launcher answers when a driver's JVM is to be started, asked once and kept in our cache.

`spark-submit` starts a JVM for each driver, only to put the command of the driver's own JVM together. For the same
settings it is the same command. So it is taken from Spark's own scripts, with a `java` in their way that hands the
launcher through and keeps what would be started then; `harness/machine/spark-submit.sh` uses it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.machine import cache
from harness.machine.spark_home import SPARKS_OWN
from harness.wait import Deadline

VARIABLE = "ONCEPROOF_LAUNCH"
READS = ("SPARK_", "_SPARK_", "PYSPARK_", "HADOOP_", "YARN_", "JAVA_", "_JAVA_", "JDK_", "LD_LIBRARY_PATH")
"""What the names of the variables begin with that Spark's scripts, its launcher or the JVM may read."""
ADDED = {"SPARK_CONNECT_MODE": "0"}
"""What PySpark adds to the environment when it calls spark-submit, from 4.0 on."""
OPTIONS = "SPARK_SUBMIT_OPTS"
ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
MARK = "-Donceproof.options"
MAIN = "org.apache.spark.deploy.SparkSubmit"
LAUNCHER = "org.apache.spark.launcher.Main"
CLASS_PATH = "spark.driver.extraClassPath"
DECIDES = ("spark.master", "spark.submit.", "spark.remote", "spark.api.mode", "spark.driver.")
"""What the names of the settings begin with that the launcher reads."""
KNOWN = (CLASS_PATH, "spark.driver.host", "spark.driver.bindAddress")
"""Those of them that the harness sets; for others, which may be secrets, Spark is asked each time."""
SHELLS_OWN = {"_", "OLDPWD", "PWD", "SHLVL"}
ASK_S = 120.0
JAVA = """#!/bin/sh
for word in "$@"; do [ "$word" = {launcher} ] && exec {java} "$@"; done
printf '%s\\0' "$@" > {folder}/command
env -0 > {folder}/environment
"""


@dataclass(frozen=True)
class Answer:
    """The options of the driver's JVM, its main class the last, and what is exported for it."""

    options: tuple[str, ...]
    exported: Mapping[str, str]


def prepare(
    path: Path,
    environment: Mapping[str, str],
    conf: Mapping[str, str],
    memory: str,
    *,
    added: Mapping[str, str] = ADDED,
) -> dict[str, str]:
    """Write down at `path` how a driver with this environment is started, to which its PySpark adds what is `added`;
    the variable that says where.

    Empty where Spark has to be asked itself: it is no copy of ours, or the launcher would read more than is here."""
    home = Path(environment["SPARK_HOME"])
    unknown = [name for name in conf if name.startswith(DECIDES) and name not in KNOWN]
    configured = "SPARK_CONF_DIR" in environment or (home / "conf").exists()
    if not (home / SPARKS_OWN).is_file() or configured or unknown or _quoted(environment[OPTIONS]):
        return {}
    try:
        reads = {**_read(environment), **added}
        answer = _asked(path.parent, reads, conf[CLASS_PATH], memory)
        return _written(path, environment, answer, reads) if answer is not None else {}
    except UnicodeError:
        return {}  # a variable that is no text


def _written(path: Path, environment: Mapping[str, str], answer: Answer, reads: Mapping[str, str]) -> dict[str, str]:
    options = environment[OPTIONS].split()
    at = answer.options.index(MARK)
    command = [_java(environment), *answer.options[:at], *options, *answer.options[at + 1 :]]
    texts: list[str] = []
    exported = [f"{name}={value}" for name, value in answer.exported.items()]
    for part in (shlex.split(environment[ARGUMENTS]), [f"{n}={value}" for n, value in reads.items()], exported):
        texts += [str(len(part)), *part]
    # It holds variables that only the processes of the run could see.
    path.touch(mode=0o600)
    path.write_text("".join(f"{text}\0" for text in (*texts, *command)), encoding="utf-8")
    return {VARIABLE: str(path)}


def _quoted(options: str) -> bool:
    """Would a shell take these options apart otherwise than at their spaces?"""
    return any(sign in options for sign in "'\"\\")


def _java(environment: Mapping[str, str]) -> str:
    return str(Path(environment["JAVA_HOME"]) / "bin" / "java")


def _read(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(READS)}


def _asked(folder: Path, environment: Mapping[str, str], class_path: str, memory: str) -> Answer | None:
    """What the launcher answers that reads this environment, from the cache if it was asked before. None: it failed, or
    answers nothing of use."""
    arguments = ["--master", "spark://127.0.0.1:1", "--driver-memory", memory, "--conf", f"{CLASS_PATH}={class_path}"]
    reads = {**environment, OPTIONS: MARK}
    reads.pop(ARGUMENTS)
    key = json.dumps([arguments, sorted(reads.items()), _version(environment)])
    kept = cache.folder("launcher") / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
    try:
        return _answer(json.loads(kept.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError):
        pass
    found = _ask(folder, [*arguments, "pyspark-shell"], reads)
    if found is not None:
        with tempfile.NamedTemporaryFile("w", dir=kept.parent, delete=False, encoding="utf-8") as file:
            json.dump(found, file)
        Path(file.name).rename(kept)
    return _answer(found) if found is not None else None


def _version(environment: Mapping[str, str]) -> str:
    """What tells one JDK at the same place from another."""
    try:
        return (Path(environment["JAVA_HOME"]) / "release").read_text(encoding="utf-8")
    except OSError:
        return ""


def _answer(found: Any) -> Answer | None:
    options = tuple(map(str, found["options"]))
    return Answer(options, dict(found["exported"])) if options.count(MARK) == 1 and options[-1] == MAIN else None


def _ask(own: Path, arguments: Sequence[str], reads: Mapping[str, str]) -> dict[str, Any] | None:
    """Have Spark's own scripts start a JVM, and take down which."""
    limit = Deadline(ASK_S)
    with tempfile.TemporaryDirectory(prefix="launcher-", dir=own) as name:
        folder = Path(name)
        java = folder / "bin" / "java"
        java.parent.mkdir()
        words = {"launcher": LAUNCHER, "java": shlex.quote(_java(reads)), "folder": shlex.quote(name)}
        java.write_text(JAVA.format(**words), encoding="utf-8")
        java.chmod(0o755)
        given = {"PATH": os.environ.get("PATH", os.defpath), **reads, "JAVA_HOME": name}
        command = [str(Path(reads["SPARK_HOME"]) / SPARKS_OWN), *arguments]
        try:
            subprocess.run(command, env=given, capture_output=True, timeout=limit.left_s(), check=True)
            options, left = (_texts(folder / part) for part in ("command", "environment"))
        except (OSError, subprocess.SubprocessError):
            return None
    if MAIN not in options:
        return None
    after = dict(entry.partition("=")[::2] for entry in left)
    exported = {name: value for name, value in after.items() if name not in given and name not in SHELLS_OWN}
    return {"options": options[: options.index(MAIN) + 1], "exported": exported}


def _texts(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\0")[:-1]
