"""Plays a small stateful query by plain `spark-submit`, with the agent in Spark and without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.machine import agent, java
from harness.machine.jars import spark_home
from harness.spark.settings import AGENT, LISTENERS, MANAGER

PROGRAMS = Path(__file__).parent / "programs"
PROGRAM = PROGRAMS / "counted.py"
KEYS, FILES = 5, 4
ENDS_S = 300.0


@dataclass(frozen=True)
class Played:
    """Where one run of the program left what it wrote."""

    checkpoint: Path
    out: Path
    events: Path
    status: int
    log: str


def laid_out(folder: Path, files: int = FILES) -> None:
    """Write the input, each file later than the one before."""
    (folder / "in").mkdir(parents=True)
    for number in range(files):
        lines = [json.dumps({"key": f"k{key}", "number": number + key}) for key in range(KEYS)]
        file = folder / "in" / f"{number}.json"
        file.write_text("\n".join(lines), encoding="utf-8")
        os.utime(file, (1_700_000_000 + number,) * 2)


def command(folder: Path, given: Mapping[str, str], program: Path = PROGRAM) -> list[str]:
    """Return the command that plays a program in `folder`, with these settings of Spark."""
    (folder / "events").mkdir()
    log = {"enabled": "true", "dir": f"{folder / 'events'}", "compress": "false"}
    said = {"spark.ui.enabled": "false", **{f"spark.eventLog.{name}": value for name, value in log.items()}}
    conf = [word for name, value in {**said, **given}.items() for word in ("--conf", f"{name}={value}")]
    out = [str(folder / each) for each in ("in", "checkpoint", "out")]
    return [str(spark_home() / "bin" / "spark-submit"), "--master", "local[2]", *conf, str(program), *out]


def with_agent() -> dict[str, str]:
    """Return the settings by which Spark loads the agent. Raises StackError."""
    jar = agent.jar(java.find(), spark_home())
    return {"spark.driver.extraClassPath": str(jar), MANAGER: agent.MANAGER, LISTENERS: agent.LISTENER}


def played(folder: Path, given: Mapping[str, str], address: str = "", program: Path = PROGRAM) -> Played:
    """Play a program on what `laid_out` has written."""
    home = {"JAVA_HOME": str(java.find().home), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    env = {**os.environ, **home, "PYSPARK_DRIVER_PYTHON": sys.executable, **({AGENT: address} if address else {})}
    done = subprocess.run(
        command(folder, given, program), env=env, capture_output=True, text=True, timeout=ENDS_S, check=False
    )
    (events,) = (folder / "events").rglob("events_*") if done.returncode == 0 else (folder,)
    return Played(folder / "checkpoint", folder / "out", events, done.returncode, done.stderr)
