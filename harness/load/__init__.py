"""Scenario files: YAML in, a frozen `Scenario` out, or every mistake at once as `file:line:col`.

load(path)                  one file, its pipeline's header block included; nothing is run, no socket opened
load_all(paths)             several, with the mistakes of all
find(paths)                 the scenario files in folders
dump(scenario)              a file again, complete in itself
schema()                    the JSON Schema; `python -m harness.load > scenarios/scenario.schema.json` writes it again
filled(text, placeholders)  `{topic}` and its like replaced
project_root(path)          the folder that a scenario's paths count from
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.errors import Mistake, ScenarioError
from harness.fields.paths import SPARK_HOME, find, missing, project_root
from harness.fields.placeholders import filled
from harness.fields.programs import no_python
from harness.load.build import scenario
from harness.load.cross_checks import check
from harness.load.dump import dump
from harness.load.json_schema import schema
from harness.load.models import shapes
from harness.load.pipeline_header import header
from harness.load.reader import Section, read
from harness.load.with_header import Claim
from harness.load.yaml_tree import BYTES_MAX, Node, decoded, grow
from harness.scenario import Scenario

__all__ = ["dump", "filled", "find", "load", "load_all", "near", "project_root", "schema"]


def load(path: Path, *, queries: bool = False) -> Scenario:
    """Return the scenario in the file at `path`. Raises ScenarioError with every mistake in it and in its pipeline's
    header. With `queries` its SQL is tried too, over no record: DuckDB is loaded for that.

    Its `path` is `path` as given; pipeline and replayed file are searched for from `project_root(path)`."""
    file, mistakes = str(path), list[Mistake]()
    top = parsed(path, file=file, mistakes=mistakes)
    if top is None:
        raise ScenarioError(mistakes)
    root = project_root(path)
    found = defaults(top, root=root)
    claim = Claim(top, found or nothing(top), whole=found is not None)
    check(claim, root=root, queries=queries)
    if mistakes:
        raise ScenarioError(mistakes)
    return scenario(claim, path=file)


def load_all(paths: Sequence[Path], *, queries: bool = False) -> list[Scenario]:
    """Return every scenario, or a ScenarioError with the mistakes of all files."""
    scenarios: list[Scenario] = []
    mistakes: set[Mistake] = set()
    for path in paths:
        try:
            scenarios.append(load(path, queries=queries))
        except ScenarioError as failure:
            # Two scenarios of one pipeline both report what is wrong with its header.
            mistakes.update(failure.mistakes)
    if mistakes:
        raise ScenarioError(tuple(mistakes))
    return scenarios


def parsed(path: Path, *, file: str, mistakes: list[Mistake]) -> Section | None:
    """Return the file's own section; None, with the mistakes, if it cannot be read as one."""
    try:
        # One byte more than may be there tells that there is too much, however much that is.
        with path.open("rb") as stream:
            data = stream.read(BYTES_MAX + 1)
    except (OSError, ValueError) as failure:
        mistakes.append(Mistake(file, 1, 1, f"cannot be read: {getattr(failure, 'strerror', None) or failure}"))
        return None
    text = decoded(data, file=file, mistakes=mistakes)
    if text is None:
        return None
    tree = grow(text, file=file, mistakes=mistakes)
    if tree is None:
        if not mistakes:
            mistakes.append(Mistake(file, 1, 1, "the file is empty: `onceproof new NAME` writes one that works"))
        return None
    return read(tree, shapes().scenario, file=file, path="", mistakes=mistakes)


def defaults(top: Section, *, root: Path) -> Section | None:
    """Return the header block of the pipeline, empty if there is none; None, with the mistake, if it cannot be read."""
    pipeline = top.section("pipeline")
    entry = pipeline.get("entry")
    if entry is None:
        return None if top.has("pipeline") else nothing(top)
    if why := missing(entry, root):
        pipeline.wrong(f"pipeline {why}", "entry")
        return None
    if entry.startswith(SPARK_HOME):
        return nothing(top)
    program = root / entry
    try:
        if why := no_python(program.read_bytes()):
            pipeline.wrong(f"pipeline names {entry!r}, {why}", "entry")
        return header(program, file=near(program), mistakes=top.mistakes)
    except OSError as failure:
        pipeline.wrong(f"pipeline {entry!r} cannot be read: {failure.strerror}", "entry")
        return None


def nothing(top: Section) -> Section:
    """Return a header block that says nothing."""
    return Section(top.file, Node(1, 1), "", top.mistakes)


def near(path: Path) -> str:
    """Return a path as someone in the current folder would write it."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
