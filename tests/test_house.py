"""The house rules, held by tests: sizes, annotations, imports, lint, types, and words that stand in no file."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from statistics import median

import pytest

from tests.limits import PROCESS_S

ROOT = Path(__file__).resolve().parent.parent
MODULE_LINES = 400
MODULE_LINES_MEDIAN = 120
FUNCTION_LINES = 60
FOLDER_FILES = 12
FUNCTION_LINES_MEDIAN = 10
POSITIONAL = 5
TOOL_S = 550
# In pieces, so that this file does not hold what it bans.
HOSTS = [
    "pypi" + ".org",
    "python" + "hosted.org",
    "repo1." + "maven",
    "maven" + ".org",
    "npmjs" + ".org",
    "proxy." + "golang",
]
HOMES = re.compile(r"(?<![\w./}$*-])/" + r"(?:root|work)/")


@dataclass(frozen=True)
class Module:
    """One source file, parsed."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def dotted(self) -> str:
        return self.name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def modules(*rooms: str) -> list[Module]:
    """Every Python file of these top-level folders."""
    return [parsed(path) for path in sorted(path for room in rooms for path in (ROOT / room).rglob("*.py"))]


@cache
def parsed(path: Path) -> Module:
    """A file, once for all tests."""
    text = path.read_text(encoding="utf-8")
    return Module(path, text, ast.parse(text))


Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(*rooms: str) -> Iterator[tuple[str, Function]]:
    """Every function of these folders with its place."""
    for module in modules(*rooms):
        for node in ast.walk(module.tree):
            if isinstance(node, Function):
                yield f"{module.name}:{node.lineno} {node.name}", node


def lines(node: Function) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def positional(node: Function) -> list[ast.arg]:
    return [each for each in (*node.args.posonlyargs, *node.args.args) if each.arg not in ("self", "cls")]


def imports(tree: ast.AST) -> Iterator[str]:
    """What is imported when it runs, within functions too: each `from a import b` as `a.b`."""
    if isinstance(tree, ast.Import):
        yield from (each.name for each in tree.names)
    if isinstance(tree, ast.ImportFrom):
        yield from (f"{tree.module}.{each.name}" for each in tree.names)
    types_only = isinstance(tree, ast.If) and ast.unparse(tree.test) == "TYPE_CHECKING"
    for node in tree.orelse if types_only else ast.iter_child_nodes(tree):  # type: ignore[attr-defined]
        yield from imports(node)


@cache
def committed() -> list[Path]:
    """Every file that stands in the repository or is about to."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=TOOL_S)
    return [path for name in done.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def tool(*command: str) -> None:
    """Run a tool of this virtual environment at the root; what it says is the failure."""
    path = Path(sys.executable).with_name(command[0])
    done = subprocess.run(
        [str(path), *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False, timeout=TOOL_S
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"


def test_modules_are_small() -> None:
    sizes = {module.name: module.text.count("\n") for module in modules("harness", "pipelines")}
    assert {name: size for name, size in sizes.items() if size > MODULE_LINES} == {}
    assert median(sizes.values()) <= MODULE_LINES_MEDIAN


def test_folders_are_small() -> None:
    counts = Counter(str(path.parent.relative_to(ROOT)) for path in committed() if (ROOT / "harness") in path.parents)
    assert {folder: count for folder, count in counts.items() if count > FOLDER_FILES} == {}


def test_functions_are_small() -> None:
    sizes = {name: lines(node) for name, node in functions("harness", "pipelines")}
    assert {name: size for name, size in sizes.items() if size > FUNCTION_LINES} == {}
    assert median(sizes.values()) <= FUNCTION_LINES_MEDIAN


def test_functions_take_few_positional_arguments() -> None:
    counts = {name: len(positional(node)) for name, node in functions("harness", "pipelines")}
    assert {name: count for name, count in counts.items() if count > POSITIONAL} == {}


def test_everything_is_annotated() -> None:
    bare = []
    for name, node in functions("harness", "pipelines", "tests"):
        extra = [each for each in (node.args.vararg, node.args.kwarg) if each is not None]
        arguments = [*positional(node), *node.args.kwonlyargs, *extra]
        if node.returns is None or any(each.annotation is None for each in arguments):
            bare.append(name)
    assert bare == []


def test_every_file_says_what_it_is_for() -> None:
    rooms = ("harness", "pipelines", "tests")
    assert [module.name for module in modules(*rooms) if not ast.get_docstring(module.tree)] == []


def test_the_modules_that_a_package_lists_are_there() -> None:
    listed = {
        module.path.parent / name.rstrip("/")
        for module in modules("harness")
        if module.path.name == "__init__.py"
        for name in re.findall(r"^([a-z_]+/?)  +\S", ast.get_docstring(module.tree) or "", re.MULTILINE)
    }
    assert len(listed) > 40
    assert [path for path in listed if not (path.is_dir() or path.with_suffix(".py").is_file())] == []


def test_nothing_sleeps() -> None:
    sleeps = []
    for module in modules("harness", "tests"):
        for node in ast.walk(module.tree):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            taken = (
                isinstance(node, ast.ImportFrom) and node.module == "time" and "sleep" in {a.name for a in node.names}
            )
            if called == "time.sleep" or taken:
                sleeps.append(f"{module.name}:{node.lineno}: sleep is banned, use harness.wait")  # type: ignore[attr-defined]
    assert sleeps == []


WORDS = re.compile(r"[A-Za-z]{3}| ")


def words(node: ast.expr) -> bool:
    """Is it a literal with a word or a blank in it?"""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return any(isinstance(each, ast.Constant) and WORDS.search(str(each.value)) for each in parts)


def reads(node: ast.AST, texts: set[str]) -> bool:
    """Does it ask a text for words of ours: how it begins or ends, or whether one of the `texts` holds them?"""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in ("startswith", "endswith") and any(map(words, node.args))
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.In | ast.NotIn):
        return False
    return words(node.left) and ast.unparse(node.comparators[0]) in texts


def test_no_decision_reads_prose() -> None:
    found = []
    for name, node in functions(*(f"harness/{room}" for room in ("checkers", "faults", "judge", "report", "triggers"))):
        arguments = [*positional(node), *node.args.kwonlyargs]
        texts = {each.arg for each in arguments if each.annotation and ast.unparse(each.annotation) == "str"}
        found += [f"{name}: {ast.unparse(each)}" for each in ast.walk(node) if reads(each, texts)]
    assert found == []


def test_pipelines_import_only_the_failpoint() -> None:
    found = []
    for module in modules("pipelines"):
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "harness":
                found += [
                    f"{module.name}: {node.module}.{each.name}" for each in node.names if each.name != "failpoint"
                ]
            if isinstance(node, ast.Import):
                found += [f"{module.name}: {each.name}" for each in node.names if each.name.split(".")[0] == "harness"]
    assert found == []


@pytest.mark.parametrize("host", HOSTS)
def test_no_file_names_a_registry(host: str) -> None:
    assert [path.name for path in committed() if host.encode() in path.read_bytes()] == []


def test_no_file_names_a_folder_of_the_machine_it_was_written_on() -> None:
    texts = {path: path.read_bytes().decode("utf-8", errors="replace") for path in committed()}
    hits = [f"{path.relative_to(ROOT)}: {hit[0]}" for path, text in texts.items() for hit in HOMES.finditer(text)]
    assert hits == []


def test_the_command_line_starts_light() -> None:
    heavy = ("pyspark", "docker", "hypothesis")
    code = f"import sys, harness.cli; print(*[name for name in {heavy} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=PROCESS_S
    )
    assert done.stdout.split() == []


def test_the_lock_names_a_hash_for_every_package() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    entries = [entry for entry in re.split(r"\n(?=\S)", text) if "==" in entry]
    assert len(entries) > 20
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []


def test_ruff_is_content() -> None:
    tool("ruff", "check", ".")


def test_the_layout_is_ruffs() -> None:
    tool("ruff", "format", "--check", ".")


def test_imports_point_down() -> None:
    tool("lint-imports")


def test_no_modules_import_each_other_in_a_circle() -> None:
    known = {module.dotted: module.tree for module in modules("harness")}
    graph = {
        name: {each if each in known else each.rpartition(".")[0] for each in imports(tree)} & known.keys()
        for name, tree in known.items()
    }
    # Raises CycleError with the circle.
    TopologicalSorter(graph).prepare()


def test_mypy_is_content() -> None:
    tool("mypy")
