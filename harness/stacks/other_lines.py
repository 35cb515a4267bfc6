"""Which Spark versions a scenario asks for besides the installed one, and what of it a line does not do, by name."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.errors import StackError
from harness.fields.paths import SPARK_HOME, project_root
from harness.fields.placeholders import used
from harness.machine import jars, spark_lines
from harness.scenario import Pipeline, Scenario
from harness.scenario.progress import DSTREAMS
from harness.spark.settings import MANAGER
from harness.stack import RunsLines, Stack
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
"""The functions that import what they are told."""


def asked(scenario: Scenario) -> tuple[str, ...]:
    """The other lines that attempts of it run on, the first attempt's first."""
    named = (scenario.pipeline.spark, scenario.restart.spark)
    return tuple(dict.fromkeys(name for name in named if spark_lines.is_other(name)))


def on(scenario: Scenario, line: str) -> Scenario:
    """The same on that line, unless it names one itself."""
    named = scenario.pipeline.spark or scenario.restart.spark
    return scenario if named or not line else replace(scenario, pipeline=replace(scenario.pipeline, spark=line))


def program(pipeline: Pipeline, restart: str, number: int) -> Pipeline:
    """The program of attempt `number`, on the line that it has then."""
    return replace(pipeline, spark=restart) if restart and number > 1 else pipeline


def described(stack: Stack, scenario: Scenario) -> dict[str, Any]:
    """What a stack that has all that the scenario needs says of itself, and of the Spark that its attempts run on:
    under `spark`, and under `spark from attempt 2 on` where that is another one."""
    out = stack.describe(needed([scenario]))
    if not asked(scenario) or not isinstance(stack, RunsLines):
        return out
    lines = {**stack.lines, "": out["spark"], spark_lines.own(): out["spark"]}
    first = scenario.pipeline.spark
    then = scenario.restart.spark or first
    later = {name: part for name, part in lines[then].items() if name != "settings"} | _connectors(scenario, then)
    told = {**lines[first], **_connectors(scenario, first)}
    return {**out, "spark": told, **({LATER: later} if lines[then] != lines[first] else {})}


def _connectors(scenario: Scenario, name: str) -> dict[str, list[str]]:
    """By what another line reaches components in the place of the jars that these tell of themselves."""
    line = spark_lines.there(name) if spark_lines.is_other(name) else None
    paths = [path for each in component_names(scenario) for path in jars.for_spark(each, name)] if line else []
    return {"connectors": [text for path in paths for text in jars.coordinates(path, line)]} if line and paths else {}


def provide(work: Sequence[Scenario], say: Callable[[str], object]) -> None:
    """Make the environments that the scenarios ask for, and fetch what their Spark reaches components by; `say` is told
    what takes long. Raises StackError."""
    for name in dict.fromkeys(line for scenario in work for line in asked(scenario)):
        line = spark_lines.made(name, say)
        for component in needed([scenario for scenario in work if name in asked(scenario)]):
            for class_path in jars.for_spark(component, name):
                jars.fetched(class_path, line=line)


def refusals(scenario: Scenario) -> list[tuple[str, str]]:
    """Each line that its attempts run on, the installed one too, with what this one does not do of it, and the
    reason."""
    first = scenario.pipeline.spark
    lines = dict.fromkeys(name or spark_lines.own() for name in (first, scenario.restart.spark or first))
    return [(line, words) for line in lines for words in _refusals(scenario, line)]


def _refusals(scenario: Scenario, line: str) -> Iterator[str]:
    own, pipeline = spark_lines.own(), scenario.pipeline
    for name in component_names(scenario):
        try:
            jars.for_spark(name, line)
        except StackError as failure:
            yield f"{name}: {failure}"
    yield from _elsewhere(pipeline.conf.get(MANAGER, ""), line)
    if spark_lines.is_other(line):
        texts = (pipeline.entry, *pipeline.args, *pipeline.env.values(), *pipeline.conf.values())
        for name in dict.fromkeys(each for text in texts for each in used(text) if each in OF_OUR_OWN):
            yield f"{{{name}}}: it is that of Spark {own}"
        if pipeline.progress == DSTREAMS:
            yield f"progress: dstreams (its checkpoint files are read as Spark {own} writes them)"
    if line.startswith("3."):
        yield from (f"{what}: Spark has them from 4.0 on ({where})" for what, where in _newer(scenario).items())


def _elsewhere(manager: str, line: str) -> Iterator[str]:
    """That a checkpoint file manager of Spark's is in another package there."""
    moved = tuple(map(int, line.split("."))) >= MOVED
    if manager.startswith(MANAGERS) and manager.startswith(MANAGERS_MOVED) is not moved:
        yield f"{manager}: it is {MANAGERS_MOVED if moved else MANAGERS}{manager.rpartition('.')[2]} there"


def _newer(scenario: Scenario) -> dict[str, str]:
    """What the program and the modules beside it that it imports use that Spark has from 4.0 on, and where:
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
            continue  # Python says it, when it is run
        imported = list(_imported(tree))
        for names, since in ((imported, MODULES_SINCE_4), (_read(tree), READ_SINCE_4)):
            for name, at in names:
                if name in since:
                    out.setdefault(since[name], f"{path.name}:{at}")
        left += (first.parent / f"{name}.py" for name, _ in imported if name.isidentifier())
    return out


def _imported(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The modules that are imported, each with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((each.name, node.lineno) for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module, node.lineno
            yield from ((f"{node.module}.{each.name}", node.lineno) for each in node.names)
        elif isinstance(node, ast.Call) and _called(node) in IMPORTS:
            said = [each.value for each in node.args[:1] if isinstance(each, ast.Constant)]
            yield from ((name, node.lineno) for name in said if isinstance(name, str))


def _called(node: ast.Call) -> str:
    """The last name of what is called."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _read(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The attributes that are read, each alone and after the one that it is read of, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr, node.lineno
            if isinstance(node.value, ast.Attribute):
                yield f"{node.value.attr}.{node.attr}", node.lineno
