"""The kinds that a repository registers in its `conftest.py`, for the command line; pytest loads that file itself."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path

from harness.errors import UsageError
from harness.fields.paths import project_root

FILE = "conftest.py"


def load_own_kinds(folder: Path) -> None:
    """Run the `conftest.py` of the project that `folder` is in, if it registers a kind with us; any other one is left
    to pytest. Raises UsageError if it cannot be run."""
    path = project_root(folder / FILE) / FILE
    if not path.is_file() or not registers(path):
        return
    # As pytest does, so that it finds what lies beside it.
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location("conftest", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["conftest"] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as failure:
        asked = f"asked {path} for the kinds that it registers"
        raise UsageError(
            f"{asked}; saw {type(failure).__name__}: {failure}. Mend it, or run pytest instead"
        ) from failure


def registers(path: Path) -> bool:
    """Does a file import something of ours and call a `register`?"""
    try:
        nodes = list(ast.walk(ast.parse(path.read_bytes(), str(path))))
    except (OSError, SyntaxError, ValueError):
        return False
    imported = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    imported += [name.name for node in nodes if isinstance(node, ast.Import) for name in node.names]
    called = [node.func.attr for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    return "register" in called and any(name.partition(".")[0] == "harness" for name in imported)
