"""What harness/ imports is what pyproject.toml asks pip for: an install of the wheel has it. And what a page is made
with is not what a run needs."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest

from harness.component import COMPONENTS
from harness.errors import UsageError
from harness.report import render
from harness.run_folder import digests
from harness.scenario import Verdict, Word
from harness.sinks.table_component import TableFormat
from tests import sample_runs as sample

HOUSE = Path(__file__).parents[1]
PROJECT = tomllib.loads((HOUSE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Whoever uses what lies there has been told to install the extra.
EXTRAS = {
    "harness/components/delta/": "delta",
    "harness/components/iceberg/": "iceberg",
    "harness/components/mariadb/": "mariadb",
    "harness/components/opensearch/": "search",
    "harness/hosts/container.py": "containers",
    "harness/hosts/engine.py": "containers",
    "harness/serve/": "serve",
    "harness/strategies.py": "hypothesis",
}
# pytest loads the plug-in, and nothing else does.
HOSTS = {"harness/plugin/": "pytest"}


def plain(name: str) -> str:
    """The name of a distribution as pip compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def named(requirements: list[str]) -> set[str]:
    """The distributions of some requirements, and those that are a part of one: pinned by it, or PySpark's py4j."""
    own = {plain(found[0]) for each in requirements if (found := re.match(r"[\w.-]+", each))}
    pinned = (each for name in own for each in requires(name) or () if re.fullmatch(r"[\w.-]+==[\w.]+", each))
    return own | {plain(each.partition("==")[0]) for each in pinned} | ({"py4j"} if "pyspark" in own else set())


@cache
def owners() -> Mapping[str, list[str]]:
    """The distributions of each top name. Read once: it takes seconds."""
    return packages_distributions()


@cache
def asked(extra: str = "") -> frozenset[str]:
    own = PROJECT["optional-dependencies"][extra] if extra else []
    return frozenset(named([*PROJECT["dependencies"], *own]))


def imported(source: str) -> set[str]:
    """The top names that a source imports and that are no part of Python or Onceproof."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"harness"}


def unasked(path: str, source: str) -> list[str]:
    """What a file of that path imports without its being asked for."""
    extra = next((extra for folder, extra in EXTRAS.items() if path.startswith(folder)), "")
    host = {host for folder, host in HOSTS.items() if path.startswith(folder)}
    return [
        f"{path}: {name}"
        for name in sorted(imported(source) - host)
        if not {plain(owner) for owner in owners().get(name, ())} & asked(extra)
    ]


def test_nothing_is_imported_that_an_install_does_not_bring() -> None:
    files = sorted(HOUSE.glob("harness/**/*.py"))
    assert len(files) > 100
    assert [line for path in files for line in unasked(str(path.relative_to(HOUSE)), path.read_text("utf-8"))] == []
    assert set(EXTRAS.values()) == PROJECT["optional-dependencies"].keys()


@pytest.mark.parametrize(
    ("path", "source", "found"),
    [
        ("harness/report/a.py", "import pandas.core", ["pandas"]),
        ("harness/report/a.py", "def late() -> None:\n    from requests import get", ["requests"]),
        ("harness/hosts/engine.py", "from requests import get", []),
        ("harness/components/delta/a.py", "import pyiceberg", ["pyiceberg"]),
        ("harness/report/a.py", "import pytest", ["pytest"]),
        ("harness/report/a.py", "import json, jinja2, ruamel.yaml, py4j", []),
    ],
)
def test_an_import_that_nothing_asks_for_is_found(path: str, source: str, found: list[str]) -> None:
    assert unasked(path, source) == [f"{path}: {name}" for name in found]


def test_an_extra_is_named_by_one_function_and_is_there() -> None:
    texts = {str(path.relative_to(HOUSE)): path.read_text(encoding="utf-8") for path in HOUSE.glob("harness/**/*.py")}
    assert [path for path, text in texts.items() if "onceproof[" in text] == ["harness/component.py"]
    called = re.compile(r"""(?:pip_install\(|no_package\(.*, )["'](\w+)["']\)""")
    found = {extra for text in texts.values() for extra in called.findall(text)}
    of_formats = {name for name, kind in COMPONENTS.all().items() if isinstance(kind, TableFormat)}
    assert found | of_formats == PROJECT["optional-dependencies"].keys()


def test_strategies_without_hypothesis_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    monkeypatch.delitem(sys.modules, "harness.strategies", raising=False)
    with pytest.raises(UsageError, match=r"no Python package hypothesis; pip install 'onceproof\[hypothesis\]'"):
        importlib.import_module("harness.strategies")


ALONE = """
import sys

BLOCKED = {"deltalake", "docker", "kafka", "psycopg2", "py4j", "pyiceberg", "pymysql", "pyspark", "testcontainers"}

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"{name} is blocked", name=name)

sys.meta_path.insert(0, Blocker())
from harness.cli import main
sys.exit(main())
"""


@pytest.mark.subprocess
@pytest.mark.parametrize("word", [Word.HELD, Word.VIOLATED, Word.INCONCLUSIVE])
def test_a_page_is_made_without_java_spark_or_a_client_of_a_server(tmp_path: Path, word: Word) -> None:
    found: Verdict = sample.verdict() if word is Word.VIOLATED else sample.verdict(word=word, findings=())
    folder = sample.stored(tmp_path, found).path
    (folder / "logs" / "driver-1.log").write_text("the last line\n", encoding="utf-8")
    digests.write(folder)
    page = render.write(folder)
    first = page.read_bytes()
    page.unlink()
    environment = {"PATH": "", "PYTHONPATH": str(HOUSE), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", ALONE, "report", str(folder)],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert page.read_bytes() == first
    assert os.fspath(page) in done.stdout
