"""What a run was of, as one digest: the scenario, and the program with the modules of pipelines/ that it imports.

Prose is left out: comments, docstrings, a scenario's name, its `why`, and what it expects. Of a file it is the tree of
its syntax, and its header block.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from harness.load.pipeline_header import OPENS, block
from harness.load.yaml_tree import grow

PROSE = ("name", "why", "expect")
"""Keys of a scenario that say nothing to the program."""
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def digest(root: Path, scenario: str) -> str:
    """Of a scenario below `root`, by its place below scenarios/, as the files of that tree are now; 12 hex digits."""
    text = (root / "scenarios" / f"{scenario}.yaml").read_text(encoding="utf-8")
    said = {key: each for key, each in _tree(text).items() if key not in PROSE}
    pipeline = said["pipeline"]
    entry = root / (pipeline if isinstance(pipeline, str) else pipeline["entry"])
    # A program of Spark's own is no file here.
    files = [entry] if entry.is_file() else []
    files += _modules(root, entry, {*_readers(said), *(name for path in files for name in _readers(_header(path)))})
    for path in files:
        files += [each for each in _modules(root, path, _imports(path)) if each not in files]
    told = {path.relative_to(root).as_posix(): [_header(path), _shape(_parsed(path))] for path in files}
    return sha256(json.dumps([said, told], sort_keys=True).encode()).hexdigest()[:12]


def _modules(root: Path, beside: Path, names: set[str]) -> list[Path]:
    """Where modules lie that a file names: beside it, or elsewhere in pipelines/; those that are not ours left out."""
    near = {path.stem: path for path in beside.parent.glob("*.py")}
    return [path for name in sorted(names) if (path := near.get(name) or _named(root).get(name))]


@cache
def _named(root: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted(root.glob("pipelines/**/*.py"))}


def _tree(text: str) -> Any:
    tree = grow(text, file="", mistakes=[])
    return {} if tree is None else tree.plain()


@cache
def _header(path: Path) -> Any:
    lines = path.read_text(encoding="utf-8").splitlines()
    return _tree("\n".join(block(lines, lines.index(OPENS) + 1, file="", mistakes=[]))) if OPENS in lines else {}


def _readers(said: Any) -> Iterator[str]:
    """The modules of readers of one's own, `python: module:function`, wherever a scenario has them."""
    if isinstance(said, dict):
        yield from [str(said["python"]).partition(":")[0]] if "python" in said else []
    for each in said.values() if isinstance(said, dict) else said if isinstance(said, list) else ():
        yield from _readers(each)


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _imports(path: Path) -> set[str]:
    nodes = [*ast.walk(_parsed(path))]
    names = {alias.name for each in nodes if isinstance(each, ast.Import) for alias in each.names}
    return names | {each.module or "" for each in nodes if isinstance(each, ast.ImportFrom)}


def _shape(node: Any) -> Any:
    """A tree as lists, the same on every Python: what a newer one adds is empty in older code."""
    if isinstance(node, list):
        return [_shape(each) for each in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = dict(ast.iter_fields(node))
    if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
        fields["body"] = node.body[1:]
    return [type(node).__name__, [[name, _shape(each)] for name, each in fields.items() if each not in (None, [])]]
