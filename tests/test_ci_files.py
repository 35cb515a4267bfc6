"""The files that others copy: workflows fit GitHub's and GitLab's schemas and name options that there are; the hook of
pre-commit finds a mistake. The repository's own: workflow, issue forms and pre-commit's hooks."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click import Option
from ruamel.yaml import YAML

from harness.cli import main
from harness.scenario import Word
from tests.limits import PROCESS_S

HOUSE = Path(__file__).parents[1]
GITHUB = [
    HOUSE / "docs/ci/github-actions.yml",
    HOUSE / "docs/ci/github-nightly.yml",
    HOUSE / "docs/example-repo/.github/workflows/delivery.yml",
]
GITLAB = HOUSE / "docs/ci/gitlab-ci.yml"
OURS = HOUSE / ".github/workflows/test.yml"
OUR_NIGHT = HOUSE / ".github/workflows/nightly.yml"
OUR_RELEASE = HOUSE / ".github/workflows/release.yml"
FORMS = sorted({*HOUSE.glob(".github/ISSUE_TEMPLATE/*.yml")} - {HOUSE / ".github/ISSUE_TEMPLATE/config.yml"})
WRONG_VERDICT = HOUSE / ".github/ISSUE_TEMPLATE/wrong-verdict.yml"
EXAMPLE = HOUSE / "docs/example-repo"


def tool(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def call(*words: str, cwd: Path = HOUSE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=PROCESS_S, check=False)


def read(path: Path) -> Any:
    return YAML(typ="safe").load(path.read_text(encoding="utf-8"))


def lines(path: Path) -> list[str]:
    """Every command of a workflow."""
    if path == GITLAB:
        return [line for job in read(path).values() for line in (*job.get("before_script", ()), *job.get("script", ()))]
    jobs = read(path)["jobs"].values()
    return [line for job in jobs for step in job["steps"] for line in str(step.get("run", "")).splitlines()]


@pytest.mark.subprocess
@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("vendor.github-workflows", [*GITHUB, OURS, OUR_NIGHT, OUR_RELEASE]),
        ("custom.github-workflows-require-timeout", [*GITHUB, OURS, OUR_NIGHT, OUR_RELEASE]),
        ("vendor.gitlab-ci", [GITLAB]),
        ("vendor.github-issue-forms", FORMS),
        ("vendor.github-issue-config", [HOUSE / ".github/ISSUE_TEMPLATE/config.yml"]),
    ],
    ids=["github", "github-timeout", "gitlab", "forms", "forms-config"],
)
def test_files_fit_their_schema(schema: str, files: list[Path]) -> None:
    done = call(tool("check-jsonschema"), "--builtin-schema", schema, *map(str, files))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_form_for_a_wrong_verdict_offers_each_word() -> None:
    said, right = (field["attributes"]["options"] for field in read(WRONG_VERDICT)["body"][:2])
    assert sorted(said) == sorted(Word)
    assert right[:-1] == said


@pytest.mark.subprocess
def test_a_wrong_workflow_would_be_found(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(GITHUB[0].read_text().replace("runs-on:", "run-on:"))
    assert call(tool("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", str(wrong)).returncode == 1


@pytest.mark.parametrize("path", [*GITHUB, GITLAB], ids=lambda path: path.name)
def test_every_option_of_ours_in_a_workflow_is_there(path: Path) -> None:
    calls = [
        words.split()
        for line in lines(path)
        for words in re.findall(r"\bonceproof ((?:validate|run|report|nightly)\b[^|&#]*)", line)
    ]
    assert {words[0] for words in calls} & {"run", "nightly"}
    for verb, *words in calls:
        options = (each for each in main.commands[verb].params if isinstance(each, Option))
        known = {name for option in options for name in option.opts}
        assert {word for word in words if word.startswith("--")} <= known


def test_every_shard_of_a_workflow_is_run() -> None:
    for path in GITHUB:
        for job in read(path)["jobs"].values():
            shards = job["strategy"]["matrix"]["shard"]
            assert shards == list(range(1, len(shards) + 1))
            commands = [str(step["run"]) for step in job["steps"] if "--shard" in str(step.get("run", ""))]
            assert commands and all(f"--shard ${{{{ matrix.shard }}}}/{len(shards)} " in each for each in commands)


AS_ROOT = 'sudo --preserve-env env "PATH=$PATH" '


def test_our_workflow_runs_the_loop_and_all_of_ci() -> None:
    commands = [line.removeprefix(AS_ROOT) for line in lines(OURS) if not line.startswith("sudo apt-get ")]
    assert commands == ["make check", "make prove SUITE=containers", ".ci/run"]
    assert [command for command in commands if not runs_here(command)] == []


def runs_here(command: str) -> bool:
    """Return whether it is a target of the Makefile, or a file that can be run."""
    program, *words = shlex.split(command)
    if program == "make":
        targets = re.findall(r"^([a-z-]+):", (HOUSE / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        return {word for word in words if "=" not in word} <= {*targets}
    return os.access(HOUSE / program, os.X_OK)


def test_our_hooks_of_pre_commit_run_what_is_here() -> None:
    (local,) = read(HOUSE / ".pre-commit-config.yaml")["repos"]
    entries = [each["entry"] for each in local["hooks"]]
    assert {each["id"] for each in local["hooks"]} == {"ruff-check", "ruff-format", "onceproof-validate", "make-check"}
    ours = [entry.removeprefix(".venv/bin/") for entry in entries if entry.startswith(".venv/bin/")]
    assert [entry for entry in ours if not shutil.which(tool(entry.split()[0]))] == []
    assert [entry for entry in entries if not entry.startswith(".venv/bin/") and not runs_here(entry)] == []


def hook() -> Any:
    (found,) = read(HOUSE / ".pre-commit-hooks.yaml")
    return found


def test_the_hook_takes_scenarios_and_nothing_else() -> None:
    found = hook()
    assert {"id", "name", "entry", "language"} <= found.keys()
    names = ("scenarios/a.yaml", "x/scenarios/deep/a.yml", "scenarios.yaml", "values.yaml", "myscenarios/a.yaml")
    assert [name for name in names if re.search(found["files"], name)] == list(names[:2])


@pytest.mark.subprocess
def test_the_hook_finds_a_mistake(tmp_path: Path) -> None:
    program, *words = shlex.split(hook()["entry"])
    project = shutil.copytree(EXAMPLE, tmp_path / "project")
    files = sorted(str(path.relative_to(project)) for path in (project / "scenarios").iterdir())
    good = call(tool(program), *words, *files, cwd=project)
    assert (good.returncode, good.stdout) == (0, "OK: 2 scenarios\n"), good.stderr
    wrong = project / "scenarios" / "invoices.yaml"
    wrong.write_text(wrong.read_text().replace("schedule:", "schedul:"))
    bad = call(tool(program), *words, *files, cwd=project)
    assert bad.returncode == 2
    assert re.search(r"^scenarios/invoices\.yaml:[0-9]+:1: ", bad.stderr, re.MULTILINE)
