"""The house rules that no tool checks: sizes, circles of imports, words that are in no file.

Ruff, mypy and lint-imports check the others (`make lint`): positional arguments, annotations, docstrings of files,
layers, calls that are banned.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.limits import PROCESS_S

ROOT = Path(__file__).resolve().parent.parent
MODULE_LINES = 600
FUNCTION_LINES = 60
CLASS_FIELDS = 12
# The redesign of the judge and its page divides these. The list may shrink and not grow.
WIDE_CLASSES = {
    "checkpoint.py Progress",
    "context.py RunContext",
    "hosts/engine.py Wanted",
    "nightly/state.py Line",
    "report/many/seen.py Seen",
    "snapshot.py Snapshot",
    "scenario/__init__.py Finding",
    "scenario/__init__.py Scenario",
    "scenario/__init__.py Exposure",
    "sinks/starts/__init__.py Parts",
}
# Hard for readers whose first language is not English. The list grows.
BANNED = (
    "as well as ever", "thereby", "wherein", "whoever", "nobody", "somebody", "anybody", "anew", "stands in", "lies in",
    "once more", "at stake", "orphan", "tripwire", "relay", "blow", "kin", "glance"
)  # fmt: skip
# In code these name no actor, too: not the function that returns a value, nor the thing that something belongs to.
BANNED_IN_CODE = ("room", "rooms", "told", "untold", "of its own", "of their own")
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


def modules(*folders: str) -> list[Module]:
    """Every Python file of these top-level folders."""
    return [parsed(path) for path in sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))]


@cache
def parsed(path: Path) -> Module:
    """A file, once for all tests."""
    text = path.read_text(encoding="utf-8")
    return Module(path, text, ast.parse(text))


Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(*folders: str) -> Iterator[tuple[str, Function]]:
    """Every function of these folders with its place."""
    for module in modules(*folders):
        for node in ast.walk(module.tree):
            if isinstance(node, Function):
                yield f"{module.name}:{node.lineno} {node.name}", node


def lines(node: Function) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def fields(node: ast.ClassDef) -> list[ast.AnnAssign]:
    return [each for each in node.body if isinstance(each, ast.AnnAssign) and "ClassVar" not in ast.unparse(each)]


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
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=PROCESS_S)
    return [path for name in done.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def test_modules_are_small() -> None:
    sizes = {module.name: module.text.count("\n") for module in modules("harness", "pipelines")}
    assert {name: size for name, size in sizes.items() if size > MODULE_LINES} == {}


def test_functions_are_small() -> None:
    sizes = {name: lines(node) for name, node in functions("harness", "pipelines")}
    assert {name: size for name, size in sizes.items() if size > FUNCTION_LINES} == {}


def test_classes_have_few_fields() -> None:
    wide = {
        f"{module.name.removeprefix('harness/')} {node.name}"
        for module in modules("harness", "pipelines")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef) and len(fields(node)) > CLASS_FIELDS
    }
    assert wide == WIDE_CLASSES


def test_the_modules_that_a_package_lists_are_there() -> None:
    listed = {
        module.path.parent / name.rstrip("/")
        for module in modules("harness")
        if module.path.name == "__init__.py"
        for name in re.findall(r"^([a-z_]+/?)  +\S", ast.get_docstring(module.tree) or "", re.MULTILINE)
    }
    assert len(listed) > 40
    assert [path for path in listed if not (path.is_dir() or path.with_suffix(".py").is_file())] == []


WORDS = re.compile(r"[A-Za-z]{3}| ")


def words(node: ast.expr) -> bool:
    """Return whether it is a literal with a word or a blank in it."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return any(isinstance(each, ast.Constant) and WORDS.search(str(each.value)) for each in parts)


def reads(node: ast.AST, texts: set[str]) -> bool:
    """Return whether it searches for words of ours in a text: how it begins or ends, or in one of the `texts`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in ("startswith", "endswith") and any(map(words, node.args))
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.In | ast.NotIn):
        return False
    return words(node.left) and ast.unparse(node.comparators[0]) in texts


def test_no_decision_reads_prose() -> None:
    found = []
    for name, node in functions(
        *(f"harness/{folder}" for folder in ("checkers", "faults", "judge", "report", "triggers"))
    ):
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


def having(word: str, paths: Iterable[Path]) -> list[str]:
    """Return which of the files have the word."""
    # Postgres runs as a user of that name.
    banned = re.compile(rf"(?<![`\"])\b{word}s?\b".replace(" ", r"\s+"), re.IGNORECASE)
    found = [path for path in paths if banned.search(path.read_bytes().decode("utf-8", errors="replace"))]
    return [str(path.relative_to(ROOT)) for path in found]


@pytest.mark.parametrize("word", BANNED)
def test_no_text_has_a_banned_word(word: str) -> None:
    places = ("harness", "docs", "pipelines", "scenarios", "README.md", "ARCHITECTURE.md")
    assert having(word, [path for path in committed() if path.relative_to(ROOT).parts[0] in places]) == []


@pytest.mark.parametrize("word", BANNED_IN_CODE)
def test_no_code_has_a_banned_word(word: str) -> None:
    code = [path for path in committed() if path.relative_to(ROOT).parts[0] in ("harness", "bench")]
    code = [path for path in code if path.suffix in (".py", ".java", ".j2")]
    assert having(word, code) == []


def test_no_docstring_asks_a_question() -> None:
    # A name has one too: the text below it.
    asked = re.compile(r"[a-z)']\?(\s|$)")
    found = [
        f"{module.name}:{node.lineno}: {text.splitlines()[0]}"
        for module in modules("harness", "pipelines", "bench", "tests")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(text := node.value.value, str)
        and asked.search(text)
    ]
    assert found == []


@pytest.mark.parametrize("host", HOSTS)
def test_no_file_names_a_registry(host: str) -> None:
    assert [path.name for path in committed() if host.encode() in path.read_bytes()] == []


def test_no_file_names_a_folder_of_the_machine_it_was_written_on() -> None:
    texts = {path: path.read_bytes().decode("utf-8", errors="replace") for path in committed()}
    found = [f"{path.relative_to(ROOT)}: {home[0]}" for path, text in texts.items() for home in HOMES.finditer(text)]
    assert found == []


@pytest.mark.subprocess
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


def test_no_modules_import_each_other_in_a_circle() -> None:
    known = {module.dotted: module.tree for module in modules("harness")}
    graph = {
        name: {each if each in known else each.rpartition(".")[0] for each in imports(tree)} & known.keys()
        for name, tree in known.items()
    }
    # Raises CycleError with the circle.
    TopologicalSorter(graph).prepare()
