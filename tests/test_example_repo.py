"""docs/example-repo as somebody else's repository: copied, with the wheel installed into an environment of its own, the
steps of its workflow run as they stand there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest
from ruamel.yaml import YAML

HOUSE = Path(__file__).parents[1]
EXAMPLE = HOUSE / "docs" / "example-repo"
STEP_S = 900.0


@dataclass(frozen=True)
class Place:
    """A copy of the repository, and the `bin` of an environment without Onceproof."""

    folder: Path
    bin: Path
    wheels: Path

    def call(self, line: str, **more: str) -> subprocess.CompletedProcess[str]:
        """A line as GitHub's shell runs it. What pip installs is the wheel that was built, without a network."""
        ours = ("PYTHONPATH", "VIRTUAL_ENV", "PYTEST_ADDOPTS", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY")
        kept = {name: value for name, value in os.environ.items() if name not in ours}
        pip = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_FIND_LINKS": str(self.wheels)}
        environment = {**kept, **pip, "PATH": f"{self.bin}:{os.environ['PATH']}", **more}
        return subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", line],
            cwd=self.folder, env=environment, capture_output=True, text=True, timeout=STEP_S, check=False,
        )  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Made once. What Onceproof is installed with is borrowed, one by one, so that it itself is not there."""
    folder = tmp_path_factory.mktemp("example")
    project = shutil.copytree(EXAMPLE, folder / "project")
    words = ["wheel", "--no-deps", "--no-build-isolation", "--quiet", f"--wheel-dir={folder / 'wheels'}", str(HOUSE)]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True, timeout=STEP_S)
    venv.create(folder / "env", with_pip=True)
    borrowed = folder / "borrowed"
    borrowed.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith(("onceproof", "__editable__", "pip", "setuptools")):
            (borrowed / path.name).symlink_to(path)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (folder / "env" / "lib" / version / "site-packages" / "borrowed.pth").write_text(f"{borrowed}\n")
    return Place(project, folder / "env" / "bin", folder / "wheels")


def steps(matrix: Mapping[str, int]) -> list[str]:
    """What the workflow runs in one job of its matrix."""
    text = (EXAMPLE / ".github" / "workflows" / "delivery.yml").read_text(encoding="utf-8")
    (job,) = YAML(typ="safe").load(text)["jobs"].values()
    lines = [step["run"] for step in job["steps"] if "run" in step]
    for name, value in matrix.items():
        lines = [line.replace(f"${{{{ matrix.{name} }}}}", str(value)) for line in lines]
    assert not any("${{" in line for line in lines)
    return lines


@pytest.mark.subprocess
def test_the_wheel_alone_knows_the_repository(place: Place) -> None:
    install, validate, _ = steps({"shard": 1})
    done = place.call(install)
    assert done.returncode == 0, done.stdout + done.stderr
    where = place.call("python -c 'import harness; print(harness.__file__)'").stdout
    assert where.startswith(str(place.bin.parent))
    done = place.call(validate)
    assert (done.returncode, done.stdout) == (0, "OK: 2 scenarios\n"), done.stderr
    done = place.call("python -m pytest --collect-only -q -p no:cacheprovider")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "scenarios/invoices.yaml::invoices\nscenarios/invoices_appended.yaml::invoices_appended\n" in done.stdout
    done = place.call("python -m pytest properties --collect-only -q -p no:cacheprovider")
    assert "properties/test_invoices.py::test_each_invoice_is_there_once\n" in done.stdout, done.stdout + done.stderr
    plans = [place.call(f"onceproof run scenarios --dry-run --shard {number}/2").stdout for number in (1, 2)]
    assert [json.loads(plan)["verdict"]["word"] for plan in plans] == ["held", "violated"]


@pytest.mark.stack
@pytest.mark.prove
@pytest.mark.slow
@pytest.mark.timeout(3 * STEP_S)
def test_the_workflow_runs_as_it_stands(place: Place) -> None:
    step_summary = place.folder.parent / "step.md"
    words = []
    for shard in (1, 2):
        for line in steps({"shard": shard}):
            done = place.call(line, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(step_summary))
            assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
            assert "\n::error" not in f"\n{done.stdout}"
        cases = ElementTree.parse(place.folder / "reports" / "junit.xml").iter("testcase")
        words += [
            each.get("value") for case in cases for each in case.iter("property") if each.get("name") == "verdict"
        ]
    assert words == ["held", "violated"]
    assert step_summary.read_text(encoding="utf-8").count("## Onceproof\n") == 2


@pytest.mark.stack
@pytest.mark.slow
@pytest.mark.prove
@pytest.mark.timeout(2 * STEP_S)
def test_pytest_runs_them_too(place: Place) -> None:
    assert place.call(steps({"shard": 1})[0]).returncode == 0
    done = place.call("python -m pytest -q -p no:cacheprovider --junitxml junit.xml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
