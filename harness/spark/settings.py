"""Everything that the harness changes of the user's Spark: settings, variables and JVM flags, each with its reason.

Drivers are started with these and nothing else; `driver_process.py` and `harness/machine/class_data.py` set them.
`run.json`, the page of a run and `docs/settings.md` have this table:

    python -m harness.spark.settings > docs/settings.md
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from harness import failpoint
from harness.resources import RunResources
from harness.scenario import Pipeline
from harness.session import reaper
from harness.stack import Change

RUN = "ONCEPROOF_RUN"
ATTEMPT = "ONCEPROOF_ATTEMPT"
AGENT = "ONCEPROOF_AGENT"
JARS, LISTENERS = "spark.jars", "spark.extraListeners"
DRIVER_OPTIONS, EXECUTOR_OPTIONS = "spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"
DRIVER_CLASS_PATH, EXECUTOR_CLASS_PATH = "spark.driver.extraClassPath", "spark.executor.extraClassPath"
JOINED: Mapping[str, str] = {
    JARS: ",",
    LISTENERS: ",",
    "spark.submit.pyFiles": ",",
    DRIVER_CLASS_PATH: os.pathsep,
    EXECUTOR_CLASS_PATH: os.pathsep,
    DRIVER_OPTIONS: " ",
    EXECUTOR_OPTIONS: " ",
}
"""By setting of several words, what stands between them: where the user gives some too, Spark has both."""
MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
DELEGATE = "spark.hadoop.onceproof.checkpointFileManagerClass"
KEPT = (*JOINED, MANAGER)
"""What Spark gets of ours also where the pipeline gives some."""
REPORTS = "where the agent in Spark reports"
SETTING, VARIABLE, FLAG, WORKER = "setting", "variable", "JVM flag", "variable of executors"
HEAD = """\
A driver is started by the `spark-submit` of the installed pyspark. Onceproof adds the settings, variables and JVM flags
below and nothing else. Executors inherit the variables of the third table from the worker or the NodeManager that
Onceproof starts; on `processes` they have of the user's environment `PATH`, `LANG`, `LC_ALL`, `TZ` and
`LD_LIBRARY_PATH` alone. Master and worker have `spark.master.rest.enabled=false` and, on `processes`,
`spark.port.maxRetries=0`. On YARN a variable of the driver is given as `spark.yarn.appMasterEnv.NAME`. `run.json`
(`changes`) and the page of a run list those of the run with their values.

`conf` and `env` of the pipeline win over them, and they win over `spark-defaults.conf`. Jars, listeners, class paths
and JVM flags of either come beside ours. So do the flags of `SPARK_SUBMIT_OPTS` and `SPARK_LAUNCHER_OPTS` in the
shell. On a class path the user's stand first, and of two garbage collectors the user's is taken. With a class path or a
`SPARK_CONF_DIR` of the user's no class data archive is mapped. What a `spark-env.sh` exports replaces a variable of
this table. The agent hands on to the user's checkpoint file manager. What the program sets in its session wins over
all.

`tests/test_driver_start.py` compares what a program sees under Onceproof and under plain `spark-submit` on a
plain master and worker: this table is the difference."""
COMPONENT = "a component of the run asks for it"
"""The reason for a variable that a component gives to the program."""
COMPONENTS = Path(__file__).parents[1] / "components"
OURS = "finds the processes of a run"
LEFT = "finds what the harness has started, also once the harness is dead"
OF_SESSION = "(of the session)"
"""What the table has as the value of `ONCEPROOF_SESSION`."""
WHY: Mapping[str, Mapping[str, str]] = {
    SETTING: {
        "spark.app.name": "tells the applications of one cluster apart; a name given by the program wins",
        "spark.cores.max": "several applications share one worker",
        "spark.driver.bindAddress": "keeps the driver's ports on one network",
        DRIVER_CLASS_PATH: "the jars that components ask for, and the agent",
        "spark.driver.host": "how executors reach the driver",
        "spark.driver.memory": "several JVMs share one machine",
        "spark.executor.cores": "divides the cores among the executors that the scenario asks for",
        EXECUTOR_CLASS_PATH: "the same jars as the driver's",
        EXECUTOR_OPTIONS: "the executors' JVM flags",
        "spark.executor.memory": "several JVMs share one machine",
        LISTENERS: "the agent reports tasks, executors and queries, beside the user's; it has a thread of Spark",
        MANAGER: "the agent reports each operation on a checkpoint, and hands it on to Spark's own manager",
        DELEGATE: "the file manager that the user asks for, to which the agent hands each operation on",
        f"spark.executorEnv.{AGENT}": REPORTS,
        f"spark.executorEnv.{ATTEMPT}": OURS,
        f"spark.executorEnv.{RUN}": OURS,
        f"spark.executorEnv.{failpoint.FOLDER}": "where failpoints are armed",
        "spark.executorEnv.PYTHONPATH": "the package `harness`, for failpoints, where executors lack it",
        "spark.hadoop.hadoop.tmp.dir": "what a killed process leaves goes with the run",
        JARS: "the same jars, for executors of another machine; on `external` alone",
        "spark.local.dir": "what a killed process leaves goes with the run",
        "spark.submit.pyFiles": "the package `harness`, for failpoints; on `external` alone",
        "spark.ui.enabled": "no port and no server that the run does not need",
        "spark.ui.showConsoleProgress": "a log without progress bars",
    },
    VARIABLE: {
        "JAVA_HOME": "the Java that `onceproof doctor` names",
        AGENT: REPORTS,
        ATTEMPT: OURS,
        RUN: OURS,
        reaper.MARKER: LEFT,
        failpoint.FOLDER: "where failpoints are armed",
        "PYSPARK_DRIVER_PYTHON": "the Python that runs Onceproof, or that of the version of Spark asked for",
        "PYSPARK_PYTHON": "the same Python in the executors",
        "PYTHONPATH": "the package `harness`, for failpoints, where that Python lacks it",
        "SPARK_HOME": "the installed pyspark",
        "SPARK_LAUNCHER_OPTS": "JVM flags of Spark's launcher",
        "SPARK_LOCAL_IP": "keeps ports on one network",
        "SPARK_SUBMIT_OPTS": "the driver's JVM flags",
        "TMPDIR": "what a killed process leaves goes with the run",
    },
    WORKER: {
        reaper.MARKER: LEFT,
        "JAVA_HOME": "the Java that `onceproof doctor` names",
        "JDK_JAVA_OPTIONS": "what a killed JVM leaves goes with the stack",
        "PYSPARK_PYTHON": "the Python of the driver",
        "PYTHONPATH": "the package `harness`, for failpoints; of another Spark version alone",
        "SPARK_CONF_DIR": "an empty folder, which stands on the class path of executors",
        "SPARK_DAEMON_JAVA_OPTS": "JVM flags of master and worker; in containers alone",
        "SPARK_DAEMON_MEMORY": "several JVMs share one machine; in containers alone",
        "SPARK_HOME": "the Spark of the driver",
        "SPARK_LOCAL_DIRS": "what a killed process leaves goes with the stack",
        "SPARK_LOCAL_IP": "keeps ports on loopback",
        "SPARK_NO_DAEMONIZE": "master and worker stay what their containers run; in containers alone",
        "SPARK_SCALA_VERSION": "Spark's own scripts set it too",
        "TMPDIR": "what a killed process leaves goes with the stack",
    },
    FLAG: {
        "-XX:TieredStopAtLevel=1": "a JVM that lives for seconds compiles with C1 alone",
        "-XX:+UseSerialGC": "several JVMs share two cores",
        "-Djdk.lang.Process.launchMechanism=VFORK": "Spark forks a child for each permission that it sets",
        "-XX:SharedArchiveFile": "class data (AppCDS) that the JVM maps instead of loading classes one by one",
        "-Xshare:auto": "a JVM that cannot map the archive starts without it",
        "-XX:-UsePerfData": "no file in /tmp that outlives a killed JVM",
        "-Djava.io.tmpdir": "what a killed process leaves goes with the run",
        "-Djava.net.preferIPv4Stack=true": "plain addresses in logs",
    },
}


@cache
def given_by() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """Return the same by component: what it gives to Spark, from the `spark_settings.json` in its folder. A `*` stands
    for a part of the name that is of each run. Data, since this lies below the components."""
    found = sorted(COMPONENTS.glob("*/spark_settings.json"))
    return {path.parent.name: json.loads(path.read_text(encoding="utf-8")) for path in found}


def why(where: str, name: str) -> str:
    """Return the reason for what Spark is given."""
    for reasons in (WHY, *given_by().values()):
        for each, reason in reasons.get(where, {}).items():
            if fnmatchcase(name, each):
                return reason
    return COMPONENT


def changes(
    conf: Mapping[str, str], variables: Mapping[str, str], own: RunResources, pipeline: Pipeline
) -> list[Change]:
    """Return the table of one run: its settings, then its variables, without those that the pipeline gives itself. Of
    a variable of a component the value may be secret, and is left out."""
    environment = {**variables, **dict.fromkeys(own.environment, "(for the program)")}
    given = [(SETTING, *item) for item in conf.items() if item[0] not in {*pipeline.conf} - {*KEPT}]
    given += [(VARIABLE, *item) for item in environment.items() if item[0] not in pipeline.env]
    return [Change(where, name, value, why(where, name)) for where, name, value in given]


def inherited(variables: Mapping[str, str]) -> list[Change]:
    """Return the table of what executors inherit from their worker."""
    return [Change(WORKER, name, value, why(WORKER, name)) for name, value in variables.items()]


def markdown() -> Iterator[str]:
    """Yield the lines of `docs/settings.md`."""
    yield "# What Onceproof changes of Spark"
    yield ""
    yield HEAD
    for where, names in WHY.items():
        yield from ("", f"| {where} | why |", "| --- | --- |")
        yield from (f"| `{name}` | {why} |" for name, why in names.items())
    yield from ("", "What components add:", "", "| component | name | why |", "| --- | --- | --- |")
    for component, tables in given_by().items():
        for names in tables.values():
            yield from (f"| `{component}` | `{name}` | {reason} |" for name, reason in names.items())
    yield ""
    yield "Variables that a component gives to the program, such as an address, are in `run.json` alone."


if __name__ == "__main__":
    print("\n".join(markdown()))
