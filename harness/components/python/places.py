"""Where the user's own code lies, and what is wrong with it as it is written. Nothing of it is run here."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.errors import UsageError

BESIDE = ("prepare", "remove", "busy")
"""What else a module may have that is called, as `callee.OTHERS` has it."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
IMPORTS = (ast.Import, ast.ImportFrom)
VALUES = (ast.Constant, ast.JoinedStr, ast.List, ast.Tuple, ast.Dict, ast.Set)


def split(target: str) -> tuple[str, str]:
    """Return module and function of `module:function`."""
    module, _, function = target.partition(":")
    return module, function


def located(module: str, folders: Sequence[Path]) -> tuple[Path, Path]:
    """Return the file of a module, and the folder that Python imports it from: the first of `folders` that has it.
    Raises UsageError if none has."""
    inside = Path(*module.split("."))
    for folder in folders:
        for path in (folder / inside / "__init__.py", folder / inside.with_suffix(".py")):
            if path.is_file():
                return path, folder
    within = ", ".join(dict.fromkeys(map(str, folders)))
    raise UsageError(f"names the module {module}, and there is no {inside}.py in {within}")


def files(module: str, folders: Sequence[Path]) -> list[Path]:
    """Return its file, and what it may import from beside it: every Python file of its folder, and of the packages
    there that it is in. Raises UsageError if it is not there."""
    path, folder = located(module, folders)
    top = folder / module.partition(".")[0]
    inside = top.rglob("*.py") if top.is_dir() else ()
    return sorted({path, *folder.glob("*.py"), *inside})


def wrong_in(target: str, folders: Sequence[Path]) -> str:
    """Return why `target` cannot be called; empty if nothing shows before it is."""
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
    if function not in names and "*" not in names:
        return f"names the function {function}, and {path.name} has none of that name"
    if is_value(tree, function):
        return f"names {function}, which is no function in {path.name}, but a value"
    strange = ((name, why) for name in BESIDE if (why := not_own(tree, name, folders)))
    uncallable = ((name, why) for name in (function, *BESIDE) if (why := not_called(tree, name)))
    return next((f"names {path.name}, whose function {name} {why}" for name, why in (*strange, *uncallable)), "")


def own(file: Path, folders: Sequence[Path]) -> list[str]:
    """Return which functions of `BESIDE` a module may have: it binds them itself, or imports them from beside it.
    Another one that is there comes with the `*` of another package."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return list(BESIDE)
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"]
    stars = [_elsewhere(_from(node), folders) for node in nodes]
    bound = {*_bound(tree.body)} if stars and all(stars) else BESIDE
    return [name for name in BESIDE if name in bound and not not_own(tree, name, folders)]


def not_own(tree: ast.Module, name: str, folders: Sequence[Path]) -> str:
    """Return why a name that is bound once is no function of the module's own; empty if it is, or if that is not
    known."""
    # What `import` itself binds is no function.
    where = "" if isinstance(_once(tree, name), ast.Import) else _origin(tree, name, folders)
    cure = f"Write `def {name}(namespace)` in the module or beside it, or call what you import otherwise"
    return f"is that of {where}, which lies elsewhere. {cure}" if where else ""


def _origin(tree: ast.Module, name: str, folders: Sequence[Path]) -> str:
    """Return the module from elsewhere that a name, or what it is set to, is imported from; empty if there is none."""
    statement = _once(tree, name)
    if isinstance(statement, ast.Import):
        return _elsewhere(next(each.name for each in statement.names if name == (each.asname or each.name)), folders)
    if isinstance(statement, ast.ImportFrom):
        return _elsewhere(_from(statement), folders)
    value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
    while isinstance(value, ast.Attribute):
        value = value.value
    return _origin(tree, value.id, folders) if isinstance(value, ast.Name) and value.id != name else ""


def _from(statement: ast.ImportFrom) -> str:
    """Return the module that it names; empty for a relative import."""
    return "" if statement.level else statement.module or ""


def _elsewhere(module: str, folders: Sequence[Path]) -> str:
    """Return a module that is in none of `folders`; empty if it is in one."""
    inside = Path(*module.split("."))
    there = (folder / each for folder in folders for each in (inside, inside.with_suffix(".py")))
    return "" if not module or any(path.exists() for path in there) else module


def is_value(tree: ast.Module, name: str) -> bool:
    """Return whether it is bound once, to what is written out as a value."""
    statement = _once(tree, name)
    if isinstance(statement, ast.Assign) and not all(isinstance(each, ast.Name) for each in statement.targets):
        return False
    return isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(statement.value, VALUES)


def not_called(tree: ast.Module, name: str) -> str:
    """Return why a function that is bound once cannot be called with the namespace alone. Empty if it can, or if
    that is not known."""
    statement = _once(tree, name)
    if not isinstance(statement, FUNCTIONS) or statement.decorator_list:
        return ""
    if isinstance(statement, ast.AsyncFunctionDef):
        return "is async, and is called without awaiting it. Let it call asyncio.run()"
    given = statement.args
    places = [*given.posonlyargs, *given.args]
    named = [each for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default is None]
    if (places or given.vararg) and len(places) - len(given.defaults) <= 1 and not named:
        return ""
    return f"takes ({ast.unparse(given)}), and is called with the namespace alone"


def _once(tree: ast.Module, name: str) -> ast.stmt | None:
    """Return the module's statement that binds a name; None where several do, or that is not known."""
    binding = [each for each in tree.body if name in _binds(each)]
    moved = any(isinstance(node, ast.Global) and name in node.names for node in ast.walk(tree))
    return binding[0] if len(binding) == 1 and not moved and "*" not in _bound(tree.body) else None


def _binds(statement: ast.stmt) -> set[str]:
    """Return the names that a statement binds in the module, and perhaps more."""
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        return {statement.name}
    nodes = list(ast.walk(statement))
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    defined = {node.name for node in nodes if isinstance(node, (*FUNCTIONS, ast.ClassDef))}
    imported = {each.asname or each.name for node in nodes if isinstance(node, IMPORTS) for each in node.names}
    return stored | defined | imported


def _bound(body: Sequence[ast.stmt]) -> Iterator[str]:
    """Yield the names that a module's own statements bind; `*` where that is not known."""
    for each in body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield each.name
        elif isinstance(each, ast.Import | ast.ImportFrom):
            yield from (name.asname or name.name for name in each.names)
        else:
            yield from (node.id for node in ast.walk(each) if isinstance(node, ast.Name))
            inner = (node for node in ast.walk(each) if isinstance(node, ast.stmt) and node is not each)
            yield from _bound([node for node in inner if not isinstance(node, ast.Expr | ast.Assign)])
