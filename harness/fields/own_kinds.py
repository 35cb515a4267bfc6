"""The kinds that a repository registers in its `conftest.py`, for all but pytest, which loads that file itself."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from harness.errors import HarnessError, UsageError
from harness.fields.paths import project_root

FILE = "conftest.py"
_LOADED: set[Path] = set()


def load_own_kinds(paths: Iterable[Path]) -> None:
    """Run, once, the `conftest.py` of each project that one of `paths` is in. Raises UsageError if one cannot be
    run."""
    for path in paths:
        if (found := conftest_of(path)) is not None:
            load_conftest(found)


def load_conftest(path: Path) -> None:
    """Run this `conftest.py`, once. Raises UsageError if it cannot be run."""
    if path not in _LOADED:
        _run(path)
        _LOADED.add(path)


def conftest_of(path: Path) -> Path | None:
    """Return the `conftest.py` that registers kinds for `path`: that of the folder itself, of its project, or else of
    the current folder's. One that registers none is left to pytest."""
    files = (folder.resolve() / FILE for folder in _folders(path))
    return next((file for file in files if file.is_file() and registers(file)), None)


def _folders(path: Path) -> Iterator[Path]:
    yield from _above(path)
    with suppress(FileNotFoundError):  # a current folder that was removed
        yield from _above(Path.cwd())


def _above(path: Path) -> Iterator[Path]:
    """Yield the folder itself, and its project's."""
    if path.is_dir():
        yield path
        yield project_root(path / FILE)
    else:
        yield project_root(path)


def _run(path: Path) -> None:
    # As pytest does, so that it finds what lies beside it.
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location("conftest", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["conftest"] = importlib.util.module_from_spec(spec)
    request = f"asked {path} for the kinds that it registers"
    try:
        spec.loader.exec_module(module)
    except HarnessError as failure:
        raise UsageError(f"{request}: {failure}") from failure
    except KeyboardInterrupt:
        raise
    except BaseException as failure:  # one that ends pytest, or skips in it, too
        raise UsageError(
            f"{request}; saw {type(failure).__name__}: {failure}. Mend it, or run pytest instead"
        ) from failure


@cache
def registers(conftest: Path) -> bool:
    """Return whether it, or a module beside it that it imports, imports something of ours and calls a `register`."""
    todo, seen = [conftest], set[Path]()
    ours = conftest.parent / "harness"
    while todo:
        path = todo.pop()
        seen.add(path)
        try:
            nodes = list(ast.walk(ast.parse(path.read_bytes(), str(path))))
        except SyntaxError as failure:
            if path == conftest and b"harness" in path.read_bytes():
                saw = f"{failure.msg} in its line {failure.lineno}"
                raise UsageError(f"asked {path} for the kinds that it registers; saw {saw}. Mend it") from failure
            continue
        except (OSError, ValueError):
            continue
        imported = set(_imported(nodes, path, conftest.parent))
        others = {module for module in imported if not module.is_relative_to(ours)}
        calls = (node.func for node in nodes if isinstance(node, ast.Call))
        if imported != others and any(isinstance(each, ast.Attribute) and each.attr == "register" for each in calls):
            return True
        files = {file for each in others for file in (each.with_name(f"{each.name}.py"), each / "__init__.py")}
        todo += [file for file in files - seen if file.is_file()]
    return False


def _imported(nodes: Iterable[ast.AST], path: Path, root: Path) -> Iterator[Path]:
    """Yield what a file imports, each as where it would lie beside the conftest, without its suffix."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (root.joinpath(*each.name.split(".")) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            folder = (root if node.level == 0 else path.parents[node.level - 1]).joinpath(
                *filter(None, (node.module or "").split("."))
            )
            yield from (folder, *(folder / each.name for each in node.names))
