"""What the source of a PySpark program says: options of its readers and writers, its calls, its arguments and
variables, and the tables that its SQL writes.

Files beside the program that it imports are read too. Names are followed within a file, if they are assigned once.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum, auto

INSERT = re.compile(
    r"(?:^|[;(\n])\s*(?:insert\s+into|merge\s+into|replace\s+into|copy)\s+([\w.]+)\s*(?:\(([\w\s,]+)\))?", re.IGNORECASE
)
CREATE = re.compile(r"\bcreate\s+table\s+(?:if\s+not\s+exists\s+)?([\w.]+)", re.IGNORECASE)
CONFLICT = re.compile(r"\bon\s+conflict\s*\(([\w\s,]+)\)", re.IGNORECASE)
ENTRIES = {"readStream", "writeStream", "read", "write"}
PATHS = {"parquet", "json", "csv", "orc", "text"}
"""Methods of a reader or writer that name a format and take a path."""
DEEPEST, A_CALL = 20, 8
"""How far a value is followed through names; a call counts as so many, for each may have many callers."""


class Origin(StrEnum):
    """Where a value comes from."""

    ARGUMENT = auto()
    POSITION = auto()
    VARIABLE = auto()
    LITERAL = auto()
    UNKNOWN = auto()


@dataclass(frozen=True)
class Value:
    """A value: `text` is the flag, the number of the position, the variable, the literal, or the source of what is not
    known; `at` is `file:line`."""

    origin: Origin
    text: str
    at: str


@dataclass(frozen=True, kw_only=True)
class Chain:
    """The calls of one reader or writer: `kind` is `readStream`, `writeStream`, `read` or `write`."""

    kind: str
    format: str = ""
    options: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call of a function of another module, by its whole name; `given` has its first argument as `""`."""

    name: str
    given: Mapping[str, Value]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table that SQL writes: its columns and its key, as far as the SQL names them."""

    name: str
    columns: tuple[str, ...] = ()
    key: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Program:
    """What a program says. `arguments` are its flags, true for those that it needs; `positions` how many arguments
    without a flag; `variables` are read from the environment, true for those without a default."""

    chains: Sequence[Chain] = ()
    calls: Sequence[Call] = ()
    options: Mapping[str, Value] = field(default_factory=dict)
    """Entries of dictionaries and options, by their key: `kafka.bootstrap.servers`."""
    arguments: Mapping[str, bool] = field(default_factory=dict)
    positions: int = 0
    variables: Mapping[str, bool] = field(default_factory=dict)
    tables: Sequence[Table] = ()
    created: Sequence[str] = ()


def imported(source: str) -> list[str]:
    """Return the modules that a source imports, by their whole names. Raises SyntaxError."""
    tree = ast.parse(source)
    names = [each.name for node in ast.walk(tree) if isinstance(node, ast.Import) for each in node.names]
    return names + [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]


def read(sources: Mapping[str, str]) -> Program:
    """Return what the sources of a program say, by file, its own first. Raises SyntaxError."""
    readers = [_Reader(file, ast.parse(source)) for file, source in sources.items()]
    arguments = {name: needed for reader in readers for name, needed in reader.arguments.items()}
    for reader in readers:
        reader.arguments, reader.family = arguments, readers
    texts = [text for reader in readers for text in _texts(reader.tree)]
    return Program(
        chains=[chain for reader in readers for chain in reader.chains()],
        calls=[call for reader in readers for call in reader.calls()],
        options={key: value for reader in reversed(readers) for key, value in reader.entries().items()},
        arguments=arguments,
        positions=max(reader.positions() for reader in readers),
        variables={name: needed for reader in readers for name, needed in reader.variables().items()},
        tables=[*_tables(texts)],
        created=[match[1].lower() for text in texts for match in CREATE.finditer(text)],
    )


def _texts(tree: ast.Module) -> Iterator[str]:
    """Yield the texts that are values, and no docstrings."""
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node.value


def _tables(texts: Sequence[str]) -> Iterator[Table]:
    found: dict[str, Table] = {}
    for text in texts:
        for match in INSERT.finditer(text):
            name, columns, conflict = match[1].lower(), _names(match[2]), CONFLICT.search(text)
            before = found.get(name, Table(name=name))
            key = _names(conflict[1]) if conflict else ()
            found[name] = Table(name=name, columns=columns or before.columns, key=key or before.key)
    yield from found.values()


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(filter(None, (each.strip().lower() for each in (text or "").split(","))))


class _Reader:
    """One tree, with the names that are assigned once."""

    def __init__(self, file: str, tree: ast.Module) -> None:
        self.file = file
        self.tree = tree
        self.nodes = [*ast.walk(tree)]
        self.called = [node for node in self.nodes if isinstance(node, ast.Call)]
        self.modules = dict(_imports(tree))
        self.assigned = _assigned(tree)
        self.parameters = _parameters(tree)
        self.family: Sequence[_Reader] = (self,)
        """Those of all files of the program."""
        self.arguments = dict(self._arguments())
        """By flag, whether it is needed."""

    def chains(self) -> Iterator[Chain]:
        """Yield the readers and writers; each whole, and not its parts."""
        inner = {id(node.func.value) for node in self.called if isinstance(node.func, ast.Attribute)}
        for node in self.nodes:
            if id(node) in inner:
                continue
            if isinstance(node, ast.Call) and (chain := self._chain(node)):
                yield chain

    def _chain(self, node: ast.Call) -> Chain | None:
        links, seen, at = list[ast.Call](), set[int](), self._followed(node)
        while isinstance(at, ast.Call | ast.Attribute) and id(at) not in seen:
            seen.add(id(at))
            if isinstance(at, ast.Attribute):
                if at.attr in ENTRIES:
                    return self._of(at, links[::-1])
                at = self._followed(at.value)
            else:
                links.append(at)
                at = at.func
        return None

    def _followed(self, node: ast.expr) -> ast.expr:
        """Return what a name stands for; a reader or writer may be built in steps."""
        return self.assigned.get(node.id, node) if isinstance(node, ast.Name) else node

    def _of(self, begin: ast.Attribute, links: Sequence[ast.Call]) -> Chain:
        options, format_ = dict[str, Value](), ""
        for call in links:
            name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            first = self.value(call.args[0]) if call.args else None
            if name == "format" and first and first.origin is Origin.LITERAL:
                format_ = first.text
            elif name == "option" and first and len(call.args) > 1:
                options[first.text] = self.value(call.args[1])
            elif name == "jdbc":
                format_ = name
                given = [*map(self.value, call.args[:2])]
                options |= dict(zip(("url", "dbtable"), given, strict=False))
            elif name in PATHS and first:
                format_, options["path"] = name, first
            elif name in ("start", "load", "save") and first:
                options["path"] = first
            elif name in ("toTable", "saveAsTable", "table", "insertInto") and first:
                options["dbtable"] = first
            if name in ("option", "options", "jdbc", "start", "load", "save"):
                options |= {each.arg: self.value(each.value) for each in call.keywords if each.arg}
        return Chain(kind=begin.attr, format=format_, options=options)

    def calls(self) -> Iterator[Call]:
        """Yield the calls of functions of other modules."""
        for node in self.called:
            if name := self._dotted(node.func):
                given = {each.arg: self.value(each.value) for each in node.keywords if each.arg}
                first = {"": self.value(node.args[0])} if node.args else {}
                yield Call(name=name, given=first | given)

    def entries(self) -> dict[str, Value]:
        """Return the entries of dictionaries, and what `.option` is called with, by key."""
        out: dict[str, Value] = {}
        for node in self.nodes:
            pairs: list[tuple[ast.expr | None, ast.expr]] = []
            if isinstance(node, ast.Dict):
                pairs = [*zip(node.keys, node.values, strict=True)]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "option":
                pairs = [(node.args[0], node.args[1])] if len(node.args) > 1 else []
            for key, value in pairs:
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    out.setdefault(key.value, self.value(value))
        return out

    def positions(self) -> int:
        """Return how many arguments it takes by their position."""
        found = [int(value.text) for node in self.nodes if (value := self._position(node))]
        return max(found, default=0)

    def variables(self) -> dict[str, bool]:
        """Return by name whether it has no default."""
        found = (self._variable(node) for node in self.nodes if isinstance(node, ast.expr))
        out: dict[str, bool] = {}
        for each in found:
            if each is not None:
                out[each[0]] = out.get(each[0], False) or each[1]
        return out

    def value(self, node: ast.expr, depth: int = 0) -> Value:
        """Return where a value comes from."""
        at = self._at(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return Value(Origin.LITERAL, node.value, at)
        if position := self._position(node):
            return position
        if variable := self._variable(node):
            return Value(Origin.VARIABLE, variable[0], at)
        # A folder below what is given is found with it.
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Div):
            return self.value(node.left, depth + 1)
        if isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.FormattedValue):
            return self.value(node.values[0].value, depth + 1)
        if isinstance(node, ast.IfExp):
            return self.value(node.body, depth + 1)
        if isinstance(node, ast.BoolOp):
            each = [self.value(value, depth + 1) for value in node.values]
            return next((value for value in each if value.origin is not Origin.UNKNOWN), each[0])
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            name = str(node.slice.value)
        if isinstance(node, ast.Name) and node.id in self.assigned and depth < DEEPEST:
            return self.value(self.assigned[node.id], depth + 1)
        if isinstance(node, ast.Name) and (given := self._given(node.id, depth)):
            return given
        flag = f"--{name.replace('_', '-')}"
        for known in (flag, f"--{name}", name):
            if name and known in self.arguments:
                return Value(Origin.ARGUMENT, known, at)
        if isinstance(node, ast.Attribute) and self._parsed(node.value):
            return Value(Origin.ARGUMENT, flag, at)
        return Value(Origin.UNKNOWN, ast.unparse(node), at)

    def _given(self, parameter: str, depth: int) -> Value | None:
        """Return what a call gives for a parameter of a function, of the first call of which that is known."""
        if parameter not in self.parameters or depth >= DEEPEST:
            return None
        function, place = self.parameters[parameter]
        for reader in self.family:
            for call in reader.called:
                name = _function(call)
                if name != function:
                    continue
                given = [each.value for each in call.keywords if each.arg == parameter] or call.args[place : place + 1]
                found = reader.value(given[0], depth + A_CALL) if given else None
                if found and found.origin is not Origin.UNKNOWN:
                    return found
        return None

    def _at(self, node: ast.expr) -> str:
        return f"{self.file}:{node.lineno}"

    def _parsed(self, node: ast.expr) -> bool:
        """Return whether it is what some function has parsed of the arguments, by the function's name."""
        call = self.assigned.get(node.id) if isinstance(node, ast.Name) else None
        return isinstance(call, ast.Call) and "arg" in _function(call).lower()

    def _position(self, node: ast.AST) -> Value | None:
        """Return the place that `sys.argv[1]` and its like name; None for anything else."""
        if not (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)):
            return None
        if self._dotted(node.value) != "sys.argv" or not isinstance(node.slice.value, int) or node.slice.value < 1:
            return None
        return Value(Origin.POSITION, str(node.slice.value), self._at(node))

    def _variable(self, node: ast.expr) -> tuple[str, bool] | None:
        """Return the name of `os.environ["X"]`, `os.environ.get("X")` or `os.getenv("X")`, and whether it has no
        default."""
        if isinstance(node, ast.Subscript) and self._dotted(node.value) == "os.environ":
            return (str(node.slice.value), True) if isinstance(node.slice, ast.Constant) else None
        if isinstance(node, ast.Call) and self._dotted(node.func) in ("os.environ.get", "os.getenv") and node.args:
            first = node.args[0]
            return (str(first.value), len(node.args) < 2) if isinstance(first, ast.Constant) else None
        return None

    def _dotted(self, node: ast.expr) -> str:
        """Return the whole name of something of an imported module; empty for anything else."""
        parts = list[str]()
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.modules:
            return ""
        return ".".join((self.modules[node.id], *reversed(parts)))

    def _arguments(self) -> Iterator[tuple[str, bool]]:
        """Yield the flags and names of arguments that argparse or click gets, and whether they are needed."""
        loops = {
            node.target.id: [each.value for each in node.iter.elts if isinstance(each, ast.Constant)]
            for node in self.nodes
            if isinstance(node, ast.For)
            and isinstance(node.target, ast.Name)
            and isinstance(node.iter, ast.Tuple | ast.List)
        }
        for call in self.called:
            name = _function(call)
            if name not in ("add_argument", "option", "argument", "Option", "Argument"):
                continue
            needed = any(
                each.arg == "required" and isinstance(each.value, ast.Constant) and each.value.value is True
                for each in call.keywords
            )
            for flag in self._flags(call, loops):
                if flag.startswith("--") or name in ("add_argument", "argument"):
                    yield flag, needed or not flag.startswith("-")

    def _flags(self, call: ast.Call, loops: Mapping[str, Sequence[object]]) -> Iterator[str]:
        for each in call.args:
            if (
                isinstance(each, ast.Constant)
                and isinstance(each.value, str)
                and re.fullmatch(r"--[\w-]+|\w+", each.value)
            ):
                yield each.value
            elif isinstance(each, ast.JoinedStr) and len(each.values) == 2:
                before, after = each.values
                if isinstance(before, ast.Constant) and isinstance(after, ast.FormattedValue):
                    looped = after.value.id if isinstance(after.value, ast.Name) else ""
                    yield from (f"{before.value!s}{name}" for name in loops.get(looped, ()))


def _function(call: ast.Call) -> str:
    """Return the last name of what is called; empty for what has none."""
    func = call.func
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the names that stand for modules and what is in them, with their whole names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                yield (each.asname, each.name) if each.asname else (each.name.partition(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for each in node.names:
                yield each.asname or each.name, f"{node.module}.{each.name}"


def _assigned(tree: ast.Module) -> dict[str, ast.expr]:
    """Return the names that are assigned once, with what they stand for; a parameter of a function is none."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
                elif isinstance(target, ast.Tuple | ast.List):
                    for place, each in enumerate(target.elts):
                        if isinstance(each, ast.Name):
                            found.setdefault(each.id, []).append(_part(node.value, place))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            found.setdefault(node.target.id, []).append(node.value)
        elif isinstance(node, ast.arg):
            found.setdefault(node.arg, []).extend([ast.Constant(value=None)] * 2)
        elif isinstance(node, ast.For | ast.comprehension | ast.withitem):
            bound = node.optional_vars if isinstance(node, ast.withitem) else node.target
            for name in ast.walk(bound) if bound else ():
                if isinstance(name, ast.Name):
                    found.setdefault(name.id, []).extend([ast.Constant(value=None)] * 2)
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def _parameters(tree: ast.Module) -> dict[str, tuple[str, int]]:
    """Return the parameters that one function alone has, with its name and their place."""
    found: dict[str, list[tuple[str, int]]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for place, each in enumerate([*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]):
                found.setdefault(each.arg, []).append((node.name, place))
    return {name: places[0] for name, places in found.items() if len(places) == 1}


def _part(value: ast.expr, place: int) -> ast.expr:
    """Return the part of what is unpacked: `a, b = sys.argv[1:3]`, `a, b = x, y`."""
    if isinstance(value, ast.Tuple | ast.List) and place < len(value.elts):
        return value.elts[place]
    begin = 0
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
        lower = value.slice.lower
        begin = lower.value if isinstance(lower, ast.Constant) and isinstance(lower.value, int) else 0
        value = value.value
    out = ast.Subscript(value=value, slice=ast.Constant(value=begin + place), ctx=ast.Load())
    return ast.copy_location(out, value)
