"""Where the user's own code lies, and what is wrong with it as it is written. Nothing of it is run here."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.errors import UsageError


def split(target: str) -> tuple[str, str]:
    """Module and function of `module:function`."""
    module, _, function = target.partition(":")
    return module, function


def located(module: str, folders: Sequence[Path]) -> tuple[Path, Path]:
    """The file of a module, and the folder that Python imports it from: the first of `folders` that has it. Raises
    UsageError if none has."""
    inside = Path(*module.split("."))
    for folder in folders:
        for path in (folder / inside / "__init__.py", folder / inside.with_suffix(".py")):
            if path.is_file():
                return path, folder
    looked = ", ".join(dict.fromkeys(map(str, folders)))
    raise UsageError(f"names the module {module}, and there is no {inside}.py in {looked}")


def files(module: str, folders: Sequence[Path]) -> list[Path]:
    """Its file, and what it may import from beside it: every Python file of its folder, and of the packages there that
    it is in. Raises UsageError if it is not there."""
    path, folder = located(module, folders)
    top = folder / module.partition(".")[0]
    inside = top.rglob("*.py") if top.is_dir() else ()
    return sorted({path, *folder.glob("*.py"), *inside})


def wrong_in(target: str, folders: Sequence[Path]) -> str:
    """Why `target` cannot be called; empty if nothing shows before it is."""
    module, function = split(target)
    try:
        path, _ = located(module, folders)
        tree = ast.parse(path.read_bytes(), filename=path.name)
    except UsageError as refused:
        return str(refused)
    except (SyntaxError, ValueError) as wrong:
        line = f" (line {wrong.lineno})" if isinstance(wrong, SyntaxError) else ""
        return f"names {path.name}, which is no Python: {getattr(wrong, 'msg', wrong)}{line}"
    except (OSError, RecursionError) as refused:
        return f"names {path}, which cannot be read: {refused}"
    names = set(_bound(tree.body))
    if function in names or "*" in names:
        return ""
    return f"names the function {function}, and {path.name} has none of that name"


def _bound(body: Sequence[ast.stmt]) -> Iterator[str]:
    """The names that a module's own statements bind; `*` where nobody can tell."""
    for each in body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield each.name
        elif isinstance(each, ast.Import | ast.ImportFrom):
            yield from (name.asname or name.name for name in each.names)
        else:
            yield from (node.id for node in ast.walk(each) if isinstance(node, ast.Name))
            inner = (node for node in ast.walk(each) if isinstance(node, ast.stmt) and node is not each)
            yield from _bound([node for node in inner if not isinstance(node, ast.Expr | ast.Assign)])
