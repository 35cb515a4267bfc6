"""Onceproof beside the Spark that a user has: pip installs it and changes the version of nothing that is there, and the
tutorial passes with that Spark."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.test_tutorial import play

HOUSE = Path(__file__).parents[1]
PIP_S = 1200.0
BESIDE = {
    "3.5.7": ("pandas==2.2.3", "pyarrow==17.0.0", "numpy==1.26.4"),
    "4.2.0": ("pandas", "pyarrow"),
}
"""By version of Spark what its user has besides: with the older one packages of its time, with the newer one whatever
pip chooses."""

pytestmark = [pytest.mark.prove, pytest.mark.stack, pytest.mark.timeout(3600)]


@dataclass(frozen=True)
class Environment:
    """An environment with a user's Spark, and what is installed there: before Onceproof, and with it."""

    programs: Path
    before: frozenset[str]
    after: frozenset[str]


def python(programs: Path, *words: str) -> str:
    """What the Python there says. A failure is one of the test."""
    command = [str(programs / "python"), "-m", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PIP_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def frozen(programs: Path) -> frozenset[str]:
    """Each package that is installed, with its version."""
    return frozenset(python(programs, "pip", "freeze", "--all").splitlines())


@pytest.fixture(scope="module", params=BESIDE)
def environment(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = tmp_path_factory.mktemp(f"spark-{request.param}")
    # A build leaves things beside its source.
    shutil.copytree(HOUSE / "harness", folder / "ours" / "harness", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(HOUSE / name, folder / "ours")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], timeout=PIP_S, check=True)
    programs = folder / "env" / "bin"
    python(programs, "pip", "install", "--quiet", f"pyspark=={request.param}", *BESIDE[request.param])
    before = frozen(programs)
    python(programs, "pip", "install", "--quiet", str(folder / "ours"))
    return Environment(programs, before, frozen(programs))


def test_what_was_there_is_there_unchanged(environment: Environment) -> None:
    assert environment.before - environment.after == frozenset()
    assert any(line.startswith("onceproof") for line in environment.after - environment.before)
    assert python(environment.programs, "pip", "check").strip() == "No broken requirements found."


def test_the_tutorial_passes_with_that_spark(environment: Environment, tmp_path: Path) -> None:
    play(tmp_path, environment.programs)
