"""The command line: what each verb prints, what it asks of the suite, and how it ends when something is wrong."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
import tempfile
from importlib import metadata
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness import __version__
from harness.cli import doctor, main
from harness.cli.doctor import Requirement
from harness.errors import Interrupted, StackError
from harness.load import load
from harness.sinks import SINKS
from harness.sinks.starts.shapes import SHAPES
from harness.sinks.starts.write import starts
from harness.suite.options import Options
from tests.limits import PROCESS_S
from tests.strategies import project

GOOD = """\
name: a payment is written once
pipeline: pipelines/pay.py
sink: {postgres: t, expected: select id from ledger, key: [id]}
schedule: [{when: {batch: 3}, do: crash before offset commit}]
seed: 5
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project to stand in, with two scenarios."""
    home = project(tmp_path)
    (home / "good.yaml").write_text(GOOD, encoding="utf-8")
    (home / "other.yaml").write_text(GOOD.replace("a payment", "another"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    # Where the traceback of a surprise is left.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("ONCEPROOF_DEBUG", raising=False)
    return tmp_path


# Click 8.1 mixes stderr into stdout where it is not asked for both.
APART: dict[str, Any] = {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}


def call(*words: str) -> Result:
    return CliRunner(**APART).invoke(main, words, prog_name="onceproof")


def calls(monkeypatch: pytest.MonkeyPatch, verb: str, answer: int | BaseException) -> list[tuple[Any, ...]]:
    """Put something in place of a function of the suite; returns what it was called with."""
    seen: list[tuple[Any, ...]] = []

    def stand_in(*args: Any) -> int:
        seen.append(args)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    module = "harness.sweep.command" if verb == "run" else "harness.suite"
    monkeypatch.setattr(f"{module}.{verb}", stand_in)
    return seen


def test_help_names_every_verb_and_exit_code() -> None:
    said = call("--help")
    assert said.exit_code == 0
    for word in (
        "new",
        "validate",
        "list",
        "kinds",
        "run",
        "replay",
        "check",
        "report",
        "serve",
        "explain",
        "doctor",
        "130 interrupted",
    ):
        assert word in said.stdout
    assert call("-h").stdout == said.stdout


def test_version() -> None:
    assert call("--version").stdout == f"onceproof, version {__version__}\n"


def test_validate_says_ok(here: Path) -> None:
    said = call("validate", "scenarios")
    assert (said.exit_code, said.stdout, said.stderr) == (0, "OK: 2 scenarios\n", "")
    assert call("validate", "scenarios/good.yaml").stdout == "OK: 1 scenario\n"


def test_validate_says_the_mistakes_of_all_files_once(here: Path) -> None:
    (here / "scenarios" / "bad.yaml").write_text(GOOD + "zzz: 1\ntimeout: 3\n", encoding="utf-8")
    (here / "pipelines" / "pay.py").write_text("# /// onceproof\n# zzz: 1\n# ///\n", encoding="utf-8")
    said = call("validate", "scenarios")
    assert (said.exit_code, said.stdout) == (2, "")
    assert said.stderr.splitlines() == [
        "pipelines/pay.py:2:3: unknown key 'zzz'",
        "scenarios/bad.yaml:6:1: unknown key 'zzz'",
        "scenarios/bad.yaml:7:10: timeout must be a duration such as 250ms, 3s or 2m, not '3': the unit is missing",
        "Error: 3 mistakes in 2 files",
    ]


def test_list_shows_what_is_there(here: Path) -> None:
    said = call("list")
    assert said.stdout.splitlines() == [
        "scenarios/good.yaml   1 step  held  a payment is written once",
        "scenarios/other.yaml  1 step  held  another is written once",
    ]
    assert call("list", "nope").exit_code == 2


def test_a_dry_run_prints_the_plan_and_touches_nothing(here: Path) -> None:
    before = sorted(here.rglob("*"))
    said = call("run", "scenarios", "-k", "goo", "--dry-run", "--seed", "9")
    made = json.loads(said.stdout)
    assert (said.exit_code, made["seed"], made["steps"][0]["name"]) == (0, 9, "crash before offset commit")
    assert json.loads(call("run", "scenarios/good.yaml", "--dry-run").stdout)["seed"] == 5
    assert sorted(here.rglob("*")) == before


def test_run_hands_everything_to_the_suite(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = calls(monkeypatch, "run", 3)
    words = [
        "--stack",
        "containers",
        "--seed",
        "4",
        "--repeat",
        "2",
        "--reports",
        "r",
        "--keep",
        "failed",
        "--junit",
        "j.xml",
    ]
    assert call("run", "scenarios", *words).exit_code == 3
    files = [Path("scenarios/good.yaml"), Path("scenarios/other.yaml")]
    asked = Options(stack="containers", seed=4, repeat=2, reports=Path("r"), keep="failed", junit=Path("j.xml"))
    assert seen == [(files, asked)]


def test_a_shard_is_run_alone_and_one_without_scenarios_is_not_green(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = calls(monkeypatch, "run", 0)
    assert [call("run", "scenarios", "--shard", each).exit_code for each in ("1/2", "2/2", "3/3")] == [0, 0, 2]
    assert [files for files, _ in seen] == [[Path("scenarios/good.yaml")], [Path("scenarios/other.yaml")]]
    for wrong in ("0/2", "3/2", "1", "a/b", "1/0", "-1/2"):
        said = call("run", "scenarios", "--shard", wrong)
        assert (said.exit_code, said.stdout) == (2, "")
        assert f"--shard must be i/n, the i-th of n parts, such as 1/3, not {wrong!r}" in said.stderr


def test_github_is_shown_each_mistake_on_its_line(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "scenarios" / "other.yaml").write_text(GOOD.replace("seed: 5", "seed: five"), encoding="utf-8")
    assert "::error" not in call("validate", "scenarios").stderr
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(here))
    said = call("validate", "scenarios")
    line = GOOD.splitlines().index("seed: 5") + 1
    assert f"\n::error file=scenarios/other.yaml,line={line},col=7::" in f"\n{said.stderr}"
    assert said.exit_code == 2
    assert "\n::error::asked for the scenario nope; saw" in f"\n{call('validate', 'nope').stderr}"


def test_run_without_options(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = calls(monkeypatch, "run", 0)
    assert call("run", "scenarios/good.yaml").exit_code == 0
    assert seen == [([Path("scenarios/good.yaml")], Options())]


def test_the_other_verbs_go_to_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    replayed, checked, reported = (calls(monkeypatch, verb, 1) for verb in ("replay", "check", "report"))
    assert [call("replay", "r", "--repeat", "2").exit_code, call("check", "r").exit_code] == [1, 1]
    assert call("report", "r", "s").exit_code == 1
    assert replayed == [(Path("r"), Options(repeat=2))]
    assert (checked, reported) == ([(Path("r"),)], [((Path("r"), Path("s")), None, None)])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "nope.yaml"], "Error: asked for the scenario nope.yaml; saw no such file or folder."),
        (["run", "scenarios", "-k", "zz"], "Error: asked for -k zz; saw no such scenario among good, other"),
        (["run"], "Missing argument 'PATH...'"),
        (["run", "scenarios", "--repeat", "0"], "Invalid value for '--repeat'"),
        (["run", "scenarios", "--keep", "some"], "Invalid value for '--keep'"),
        (["prove"], "No such command 'prove'"),
        (["new", "../x"], "Error: asked for the name '../x'; use small letters"),
    ],
)
def test_wrong_usage_ends_with_2(here: Path, words: list[str], said: str) -> None:
    seen = call(*words)
    assert seen.exit_code == 2
    assert said in seen.stderr and "Traceback" not in seen.stderr


@pytest.mark.parametrize(
    ("failure", "code", "said"),
    [
        (StackError("Kafka did not come up"), 4, "Error: Kafka did not come up\n"),
        (Interrupted("interrupted by SIGTERM"), 130, "Error: interrupted by SIGTERM\n"),
        (KeyboardInterrupt(), 130, "Error: interrupted\n"),
    ],
)
def test_a_failure_is_one_message(
    here: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException, code: int, said: str
) -> None:
    calls(monkeypatch, "run", failure)
    seen = call("run", "scenarios")
    assert (seen.exit_code, seen.stdout) == (code, "")
    assert seen.stderr.lstrip("\n") == said


def test_a_surprise_is_one_line_and_a_file(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(here))
    calls(monkeypatch, "run", ValueError("two\nlines"))
    seen = call("run", "scenarios")
    assert seen.exit_code == 4
    (line,) = seen.stderr.splitlines()
    start, _, file = line.rpartition(" ")
    assert start == "Error: the harness failed, ValueError: two lines; the traceback is in"
    assert "Traceback" in Path(file).read_text(encoding="utf-8")


def test_a_surprise_on_a_full_disk(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.NamedTemporaryFile", full)
    calls(monkeypatch, "run", OSError(errno.ENOSPC, "No space left on device"))
    seen = call("run", "scenarios")
    assert seen.exit_code == 4
    assert "could not be written (No space left on device): set ONCEPROOF_DEBUG=1" in seen.stderr
    assert "Traceback" not in seen.stderr


@pytest.mark.parametrize("failure", [StackError("s"), ValueError("v")])
def test_debug_shows_the_traceback(here: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException) -> None:
    monkeypatch.setenv("ONCEPROOF_DEBUG", "1")
    calls(monkeypatch, "run", failure)
    assert "Traceback" in call("run", "scenarios").stderr


@pytest.mark.subprocess
def test_a_reader_that_has_gone_is_no_error_of_ours(here: Path) -> None:
    code = "import sys; from harness.cli import main; main(['list'])"
    command = f'"{sys.executable}" -c "{code}" | true'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=PROCESS_S, check=True)
    assert "Traceback" not in done.stderr and "Error" not in done.stderr


def test_a_broken_pipe_ends_quietly(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls(monkeypatch, "run", BrokenPipeError(errno.EPIPE, "Broken pipe"))
    assert call("run", "scenarios").stderr == ""


def test_new_writes_a_scenario_that_is_valid(here: Path) -> None:
    said = call("new", "first")
    assert said.stdout.splitlines() == [
        "wrote scenarios/first.yaml",
        "wrote pipelines/first.py",
        "next: onceproof run scenarios/first.yaml",
    ]
    scenario = load(here / "scenarios" / "first.yaml")
    assert scenario.pipeline.env == {"WAREHOUSE": "{postgres.dsn}"}
    assert [sink.target for sink in scenario.sinks] == ["payments"]
    compile((here / "pipelines" / "first.py").read_text(encoding="utf-8"), "first.py", "exec")


def test_the_help_of_new_lists_sinks_and_shapes() -> None:
    said = call("new", "--help").stdout
    listed = {line.split()[0]: " ".join(line.split()[1:]) for line in said.splitlines() if line.startswith("  ")}
    for name in starts():
        assert listed[name].startswith(SINKS[name].about.summary[:40])
    assert [listed[name] for name in SHAPES] == [shape.summary for shape in SHAPES.values()]


def test_new_overwrites_nothing(here: Path) -> None:
    (here / "pipelines" / "first.py").write_text("mine", encoding="utf-8")
    said = call("new", "first")
    assert said.exit_code == 2
    assert "asked to write pipelines/first.py; it is there already" in said.stderr
    assert not (here / "scenarios" / "first.yaml").exists()
    assert (here / "pipelines" / "first.py").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(("ok", "code"), [(True, 0), (False, 4)])
def test_doctor_prints_what_it_found(monkeypatch: pytest.MonkeyPatch, ok: bool, code: int) -> None:
    found = [Requirement(name="java", wanted="17 or 21", found="none at all", ok=ok, cure="install one")]
    monkeypatch.setattr("harness.cli.doctor.check", lambda: found)
    said = call("doctor")
    assert said.exit_code == code
    assert "none at all" in said.stdout
    assert ("install one" in said.stdout) is not ok


def start(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=PROCESS_S, check=False)


@pytest.mark.subprocess
def test_python_m_harness_is_the_same_command(here: Path) -> None:
    done = start("-m", "harness", "validate", "scenarios")
    assert (done.returncode, done.stdout) == (0, "OK: 2 scenarios\n")
    bad = start("-m", "harness", "validate", "nope")
    assert bad.returncode == 2 and bad.stderr.startswith("Error: asked for the scenario nope")


@pytest.mark.subprocess
@pytest.mark.parametrize("line", ["", "--help", "--version", "nope", "run --nope", "validate --help", "validate nope"])
def test_python_m_harness_answers_as_the_script_does(here: Path, line: str) -> None:
    script = str(Path(sys.executable).with_name("onceproof"))
    module, installed = start("-m", "harness", *line.split()), start(script, *line.split())
    assert (module.returncode, module.stdout, module.stderr) == (
        installed.returncode,
        installed.stdout,
        installed.stderr,
    )


@pytest.mark.subprocess
def test_the_command_line_starts_light() -> None:
    code = (
        "import sys, harness.cli; "
        "print(*[m for m in ('pyspark', 'duckdb', 'docker', 'hypothesis', 'pytest', 'kafka', 'psycopg2', 'pydantic',"
        " 'ruamel.yaml') if m in sys.modules])"
    )
    assert start("-c", code).stdout == "\n"


@pytest.mark.subprocess
def test_doctor_tells_which_packages_containers_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    def installed(name: str) -> str:
        if name == "docker":
            raise metadata.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(metadata, "version", installed)
    (told,) = [each for each in doctor.check() if each.name == "containers"]
    assert (told.found, told.ok, told.optional) == ("no docker", False, True)
    assert told.cure == "pip install 'onceproof[containers]'"
