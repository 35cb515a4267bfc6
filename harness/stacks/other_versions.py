"""The Spark versions that a scenario needs besides the installed one, and what of the scenario each cannot do."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.errors import StackError
from harness.fields.paths import SPARK_HOME, project_root
from harness.fields.placeholders import used
from harness.machine import jars, spark_versions
from harness.scenario import Pipeline, Scenario
from harness.scenario.progress import DSTREAMS
from harness.spark.settings import MANAGER
from harness.stack import RunsSparkVersions, Stack
from harness.stacks.needed_parts import component_names, needed

LATER = "spark from attempt 2 on"
OF_OUR_OWN = ("spark.home", "spark.master")
"""The placeholders that stand for the installed Spark."""
PYTHON_SOURCE, STATEFUL = "Python data sources", "transformWithState"
MODULES_SINCE_4 = {
    "pyspark.sql.datasource": PYTHON_SOURCE,
    "pyspark.sql.streaming.stateful_processor": STATEFUL,
}
READ_SINCE_4 = {
    "dataSource.register": PYTHON_SOURCE,
    "transformWithState": STATEFUL,
    "transformWithStateInPandas": "transformWithStateInPandas",
    "mergeInto": "DataFrame.mergeInto",
    "toArrow": "DataFrame.toArrow",
}
"""What Spark has from 4.0 on, by the module that a program imports, and by the attribute that it reads."""
MANAGERS, MOVED = "org.apache.spark.sql.execution.streaming.", (4, 1)
MANAGERS_MOVED = f"{MANAGERS}checkpointing."
"""The package of Spark's checkpoint file managers before 4.1, and from then on."""
IMPORTS = ("import_module", "__import__")
"""The functions that import a module by a string."""


def of_attempts(scenario: Scenario) -> tuple[str, ...]:
    """Return the other Spark versions that its attempts run on, the first attempt's first."""
    named = (scenario.pipeline.spark, scenario.restart.spark)
    return tuple(dict.fromkeys(name for name in named if spark_versions.is_other(name)))


def on(scenario: Scenario, version: str) -> Scenario:
    """Return the scenario on that Spark version, unless it names one itself."""
    named = scenario.pipeline.spark or scenario.restart.spark
    return scenario if named or not version else replace(scenario, pipeline=replace(scenario.pipeline, spark=version))


def program(pipeline: Pipeline, restart: str, number: int) -> Pipeline:
    """Return the program of attempt `number`, with the Spark version of that attempt."""
    return replace(pipeline, spark=restart) if restart and number > 1 else pipeline


def described(stack: Stack, scenario: Scenario) -> dict[str, Any]:
    """Return what a stack with all that the scenario needs describes of itself. The Spark of its attempts is under
    `spark`, and under `spark from attempt 2 on` if that is another one."""
    out = stack.describe(needed([scenario]))
    if not of_attempts(scenario) or not isinstance(stack, RunsSparkVersions):
        return out
    by_version = {**stack.spark_versions, "": out["spark"], spark_versions.own(): out["spark"]}
    first = scenario.pipeline.spark
    then = scenario.restart.spark or first
    later = {name: part for name, part in by_version[then].items() if name != "settings"} | _connectors(scenario, then)
    spark = {**by_version[first], **_connectors(scenario, first)}
    return {**out, "spark": spark, **({LATER: later} if by_version[then] != by_version[first] else {})}


def _connectors(scenario: Scenario, name: str) -> dict[str, list[str]]:
    """Return the coordinates by which another Spark version reaches components; they replace the components' own."""
    version = spark_versions.there(name) if spark_versions.is_other(name) else None
    paths = [path for each in component_names(scenario) for path in jars.for_spark(each, name)] if version else []
    return (
        {"connectors": [text for path in paths for text in jars.coordinates(path, version)]}
        if version and paths
        else {}
    )


def provide(work: Sequence[Scenario], notify: Callable[[str], object]) -> None:
    """Make the environments that the scenarios need, and fetch the jars by which their Spark reaches components.
    `notify` gets a message about what takes long. Raises StackError."""
    for name in dict.fromkeys(version for scenario in work for version in of_attempts(scenario)):
        version = spark_versions.made(name, notify)
        for component in needed([scenario for scenario in work if name in of_attempts(scenario)]):
            for class_path in jars.for_spark(component, name):
                jars.fetched(class_path, version=version)


def refusals(scenario: Scenario) -> list[tuple[str, str]]:
    """Return each Spark version that its attempts run on, the installed one too, with what of the scenario this
    version cannot do, and the reason."""
    first = scenario.pipeline.spark
    versions = dict.fromkeys(name or spark_versions.own() for name in (first, scenario.restart.spark or first))
    return [(version, words) for version in versions for words in _refusals(scenario, version)]


def _refusals(scenario: Scenario, version: str) -> Iterator[str]:
    own, pipeline = spark_versions.own(), scenario.pipeline
    for name in component_names(scenario):
        try:
            jars.for_spark(name, version)
        except StackError as failure:
            yield f"{name}: {failure}"
    yield from _elsewhere(pipeline.conf.get(MANAGER, ""), version)
    if spark_versions.is_other(version):
        texts = (pipeline.entry, *pipeline.args, *pipeline.env.values(), *pipeline.conf.values())
        for name in dict.fromkeys(each for text in texts for each in used(text) if each in OF_OUR_OWN):
            yield f"{{{name}}}: it is that of Spark {own}"
        if pipeline.progress == DSTREAMS:
            yield f"progress: dstreams (its checkpoint files are read as Spark {own} writes them)"
    if version.startswith("3."):
        yield from (f"{what}: Spark has them from 4.0 on ({where})" for what, where in _newer(scenario).items())


def _elsewhere(manager: str, version: str) -> Iterator[str]:
    """Yield a refusal if Spark has this checkpoint file manager in another package in that version."""
    moved = tuple(map(int, version.split("."))) >= MOVED
    if manager.startswith(MANAGERS) and manager.startswith(MANAGERS_MOVED) is not moved:
        yield f"{manager}: it is {MANAGERS_MOVED if moved else MANAGERS}{manager.rpartition('.')[2]} there"


def _newer(scenario: Scenario) -> dict[str, str]:
    """Return the features from Spark 4.0 on that the program and the modules beside it use, each with its place:
    `feed.py:12`."""
    if scenario.pipeline.entry.startswith(SPARK_HOME):
        return {}
    first = project_root(Path(scenario.path)) / scenario.pipeline.entry
    left, seen, out = [first], set[Path](), dict[str, str]()
    while left:
        path = left.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError, OSError):
            continue  # Python reports it when the program runs
        imported = list(_imported(tree))
        for names, since in ((imported, MODULES_SINCE_4), (_read(tree), READ_SINCE_4)):
            for name, at in names:
                if name in since:
                    out.setdefault(since[name], f"{path.name}:{at}")
        left += (first.parent / f"{name}.py" for name, _ in imported if name.isidentifier())
    return out


def _imported(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the modules that are imported, each with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((each.name, node.lineno) for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module, node.lineno
            yield from ((f"{node.module}.{each.name}", node.lineno) for each in node.names)
        elif isinstance(node, ast.Call) and _called(node) in IMPORTS:
            constants = [each.value for each in node.args[:1] if isinstance(each, ast.Constant)]
            yield from ((name, node.lineno) for name in constants if isinstance(name, str))


def _called(node: ast.Call) -> str:
    """Return the last name of the called function."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _read(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the attributes that are read, each alone and after the attribute it is read of, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr, node.lineno
            if isinstance(node.value, ast.Attribute):
                yield f"{node.value.attr}.{node.attr}", node.lineno
