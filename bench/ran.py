"""What a run was of, as one digest: the scenario, the program, and what that uses of other modules of pipelines/.

Prose is left out: comments, docstrings, a scenario's name, its `why`, and what it expects. Of a file it is the tree of
its syntax, and its header block. A file of Java that a program names is taken as it is.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from harness.load.pipeline_header import OPENS, block
from harness.load.yaml_tree import grow

PROSE = ("name", "why", "verdict")
"""Keys of a scenario that say nothing to the program."""
IMPORTS = (ast.Import, ast.ImportFrom)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def digest(root: Path, scenario: str) -> str:
    """Of a scenario below `root`, by its place below scenarios/, as the files of that tree are now; 12 hex digits."""
    text = (root / "scenarios" / f"{scenario}.yaml").read_text(encoding="utf-8")
    claim = {key: each for key, each in _tree(text).items() if key not in PROSE}
    pipeline = claim["pipeline"]
    entry = root / (pipeline if isinstance(pipeline, str) else pipeline["entry"])
    readers = {*_readers(claim), *(_readers(_header(entry)) if entry.is_file() else ())}
    # A program of Spark's own is no file here.
    whole = [*([entry] if entry.is_file() else []), *filter(None, (_module(root, entry, name) for name in readers))]
    parts = {path: _tops(path) for path in whole}
    left = [*whole]
    while left:
        path = left.pop()
        for module, names in _uses(root, path, parts[path]).items():
            found = _closure(module, names) | parts.get(module, set())
            if found != parts.get(module):
                parts[module] = found
                left.append(module)
    code = {path.relative_to(root).as_posix(): _statements(path, parts[path]) for path in parts}
    java = {source for path in parts for source in _java(path, parts[path])}
    code |= {source.relative_to(root).as_posix(): source.read_text(encoding="utf-8") for source in java}
    return sha256(json.dumps([claim, code], sort_keys=True).encode()).hexdigest()[:12]


def _module(root: Path, beside: Path, name: str) -> Path | None:
    """Where a module lies that a file names: beside it, or elsewhere in pipelines/; None for one that is not ours."""
    near = beside.parent / f"{name}.py"
    return near if near.is_file() else _named(root).get(name)


def _statements(path: Path, places: set[int]) -> Any:
    """Return the header block of a file, and the statements at those places."""
    return [_header(path), [_shape(_parsed(path).body[place]) for place in sorted(places)]]


def _java(path: Path, places: set[int]) -> Iterator[Path]:
    """The files of Java beside a file that its statements at those places name."""
    nodes = (node for at in places for node in ast.walk(_parsed(path).body[at]) if isinstance(node, ast.Constant))
    names = (str(node.value) for node in nodes if str(node.value).endswith(".java"))
    yield from (source for name in names if (source := path.with_name(name)).is_file())


def _tops(path: Path) -> set[int]:
    """The places of all statements of a file but its docstring and what it imports."""
    body = _parsed(path).body
    documented = ast.get_docstring(_parsed(path)) is not None
    return {at for at, each in enumerate(body) if not isinstance(each, IMPORTS) and not (documented and at == 0)}


def _closure(path: Path, names: set[str]) -> set[int]:
    """The places of the statements of a file that make these names, and of those that they use themselves."""
    body = _parsed(path).body
    made = {name: at for at, each in enumerate(body) for name in _makes(each)}
    found, left = set[int](), [made[name] for name in names if name in made]
    while left:
        at = left.pop()
        if at not in found:
            found.add(at)
            left += [made[each.id] for each in ast.walk(body[at]) if isinstance(each, ast.Name) and each.id in made]
    return found


def _makes(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}


def _uses(root: Path, path: Path, places: set[int]) -> dict[Path, set[str]]:
    """Return what the statements at those places use of the project's own modules."""
    tree, used_names = _parsed(path), dict[Path, set[str]]()
    used = [node for at in places for node in ast.walk(tree.body[at])]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (module := _module(root, path, node.module or "")):
            used_names.setdefault(module, set()).update(alias.name for alias in node.names)
        for alias in node.names if isinstance(node, ast.Import) else ():
            if module := _module(root, path, alias.name):
                used_names.setdefault(module, set()).update(_attributes(used, alias.asname or alias.name))
    return used_names


def _attributes(nodes: Iterable[ast.AST], name: str) -> Iterator[str]:
    for each in nodes:
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id == name:
            yield each.attr


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


def _readers(block: Any) -> Iterator[str]:
    """The modules of readers of one's own, `python: module:function`, wherever a scenario has them."""
    if isinstance(block, dict):
        yield from [str(block["python"]).partition(":")[0]] if "python" in block else []
    for each in block.values() if isinstance(block, dict) else block if isinstance(block, list) else ():
        yield from _readers(each)


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


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
