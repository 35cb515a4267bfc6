"""The code of docs/extending.md and docs/extending-redis.md, run as the pages have it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from harness.cli import main
from harness.context import Reached
from harness.errors import WaitError
from harness.faults import FAULTS
from harness.kinds import Registry
from harness.load import dump, load
from harness.resources import Resources
from harness.run_folder import ledger
from harness.scenario import Scenario
from harness.sources import SOURCES
from harness.sources.producer import Producer
from harness.triggers import TRIGGERS
from harness.workloads import WORKLOADS, make
from tests.limits import PROCESS_S

PAGES = [Path(__file__).parents[1] / "docs" / name for name in ("extending.md", "extending-redis.md")]
OUTSIDER = Path(__file__).parent / "outsider" / "onceproof_redis"
NAMES: dict[str, Registry[Any]] = {
    "run command": FAULTS,
    "driver_log": TRIGGERS,
    "orders": WORKLOADS,
    "redis_list": SOURCES,
}
SCENARIO = """\
name: a broker is restarted when the driver says so
pipeline: pay.py
sink: {postgres: orders, expected: "select id, shop from ledger", key: [id]}
input: {workload: orders, source: redis_list, records: 20, keys: 3}
schedule: [{when: {driver_log: ready}, do: run command, command: COMMAND}]
"""


def code(language: str) -> list[str]:
    """Return the code blocks of the pages in that language."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """What the page registers, for one test."""
    for registry in NAMES.values():
        registry.all()
    for block in code("python"):
        exec(compile(block, "docs/extending", "exec"), {"__name__": "extending"})
    yield
    for name, registry in NAMES.items():
        del registry._known[name]


def test_what_is_quoted_stands_in_the_example_package() -> None:
    quoted = [block.removesuffix("\n") for block in code("py")]
    package = [path.read_text(encoding="utf-8") for path in OUTSIDER.glob("*.py")]
    assert len(quoted) == 8
    assert [block for block in quoted if not any(block in text for text in package)] == []


def scenario(folder: Path, command: str = "true") -> Scenario:
    (folder / "pay.py").touch()
    path = folder / "it.yaml"
    path.write_text(SCENARIO.replace("COMMAND", command))
    return load(path)


def test_a_file_may_use_them_and_is_the_same_once_written_again(tmp_path: Path) -> None:
    found = scenario(tmp_path)
    (tmp_path / "it.yaml").write_text(dump(found))
    assert load(tmp_path / "it.yaml") == found
    said = CliRunner().invoke(main, ["validate", str(tmp_path / "it.yaml")])
    assert (said.exit_code, said.stdout) == (0, "OK: 1 scenario\n")
    listed = CliRunner().invoke(main, ["kinds"]).stdout
    assert all(f"\n  {name}\n" in listed for name in NAMES)


def test_the_workload_gives_the_same_bytes_for_the_same_seed(tmp_path: Path) -> None:
    given = scenario(tmp_path).input
    records = list(make(given, seed=1, root=tmp_path).records())
    assert len(records) == 20 and records == list(make(given, seed=1, root=tmp_path).records())
    assert records != list(make(given, seed=2, root=tmp_path).records())


class FakeRedis:
    """What is used of a client. It takes the third row, and the answer is lost."""

    def __init__(self) -> None:
        self.rows: list[str] = []

    def rpush(self, key: str, row: str) -> int:
        self.rows.append(row)
        if len(self.rows) == 3:
            raise ConnectionError("gone")
        return len(self.rows)

    def llen(self, key: str) -> int:
        return len(self.rows)

    def lrange(self, key: str, first: int, last: int) -> list[str]:
        return self.rows


def test_the_source_takes_the_records_and_is_read_back(tmp_path: Path) -> None:
    given, server = scenario(tmp_path).input, FakeRedis()
    kind = SOURCES[given.source]
    own = {
        label: Resources(label=label, at=SimpleNamespace(client=lambda: server, prefix="r"))
        for label in kind.requested_parts(given)
    }
    source = kind.open(given, own)
    producer = Producer(make(given, seed=1, root=tmp_path), ledger.Attempts(tmp_path / "attempts.log"), source.sender())
    assert producer.send(given.records) == given.records
    producer.close()
    assert producer.counts == {ledger.State.ACKNOWLEDGED: 19, ledger.State.FAILED: 0, ledger.State.UNKNOWN: 1}
    assert source.ends() == source.read_back(tmp_path / "source.parquet", within_s=1.0) == {0: 20}
    assert pq.read_table(tmp_path / "source.parquet")["seq"].to_pylist() == list(range(20))
    log = tmp_path / "sources" / "0"
    assert (source.offsets("17", log), source.offsets('{"topic": {"0": 17}}', log)) == ({0: 17}, None)


@pytest.mark.subprocess
@pytest.mark.parametrize(("command", "victims"), [("true", {"true": "exit status 0"}), ("false", {})])
def test_the_fault_has_evidence_only_if_its_command_did_its_work(tmp_path: Path, command: str, victims: Any) -> None:
    step = scenario(tmp_path, command).schedule[0]
    run: Any = None
    assert FAULTS["run command"].inject(run, step, Reached(None)).signalled == victims


def test_the_trigger_waits_for_its_line_and_gives_up_with_the_run(tmp_path: Path) -> None:
    step, log = scenario(tmp_path).schedule[0], tmp_path / "driver.log"
    log.write_text("starting\n")
    run: Any = SimpleNamespace(
        supervisor=SimpleNamespace(driver=SimpleNamespace(log=log)),
        observer=SimpleNamespace(listing=dict, names=list, newest_batch=lambda: -1, unchanged_s=lambda: 0.0),
        stop=threading.Event(),
        hopeless=lambda: "",
    )
    threading.Timer(0.1, lambda: log.write_text("starting\nready\n")).start()
    assert TRIGGERS["driver_log"].wait(run, step, later=0, freeze=False).before == {}
    log.write_text("starting\n")
    run.stop.set()
    with pytest.raises(WaitError, match="log line 'ready' never came: the run is over"):
        TRIGGERS["driver_log"].wait(run, step, later=0, freeze=False)


def asked(folder: Path, *words: str, module: str = "harness") -> subprocess.CompletedProcess[str]:
    """The command line, in a process of its own that runs in `folder`."""
    command = [sys.executable, "-m", module, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PROCESS_S, check=False)


@pytest.mark.subprocess
def test_the_command_line_knows_what_a_conftest_registers(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("\n".join(["import beside", *code("python")]))
    for name in ("beside.py", "pytest.ini", "pay.py"):
        (tmp_path / name).touch()
    (tmp_path / "it.yaml").write_text(SCENARIO.replace("COMMAND", "'true'"))
    below = tmp_path / "below"
    below.mkdir()
    assert asked(below, "validate", "../it.yaml").stdout == "OK: 1 scenario\n"
    shown = asked(tmp_path, "kinds").stdout
    assert [name for name in NAMES if name not in shown] == []


IMPORTS = "import kinds_of_mine\nprint('there')\n"


def repository(folder: Path, conftest: str) -> Path:
    """One with a scenario that needs the kinds of its own `conftest.py`."""
    folder.mkdir()
    for name in ("pytest.ini", "pay.py"):
        (folder / name).touch()
    (folder / "conftest.py").write_text(conftest)
    (folder / "it.yaml").write_text(SCENARIO.replace("COMMAND", "'true'"))
    return folder


@pytest.mark.subprocess
def test_a_scenario_of_another_repository_has_that_ones_kinds(tmp_path: Path) -> None:
    blocks = "\n".join(code("python"))
    # Of the same names as here, whose own are left alone.
    here, there = repository(tmp_path / "here", f"{blocks}\nprint('here')"), repository(tmp_path / "there", IMPORTS)
    (there / "kinds_of_mine.py").write_text(blocks)
    assert asked(here, "validate", str(there)).stdout == "there\nOK: 1 scenario\n"
    assert asked(tmp_path, "run", "--dry-run", str(here / "it.yaml")).stdout.startswith("here\n{")


@pytest.mark.subprocess
def test_a_stored_run_never_decides_which_code_is_run(tmp_path: Path) -> None:
    blocks = "\n".join(code("python"))
    here = repository(tmp_path / "here", f"{blocks}\nprint('here')")
    there = repository(tmp_path / "there", f"{blocks}\nprint('there')")
    run = there / "reports" / "it"
    run.mkdir(parents=True)
    (run / "run.json").write_text("{}")
    (run / "plan.json").write_text(json.dumps({"scenario": {"path": str(there / "it.yaml")}}))
    for verb in ("check", "report", "replay"):
        assert asked(here, verb, str(run)).stdout == "here\n"


@pytest.mark.subprocess
def test_a_folder_with_a_conftest_is_a_repository_whatever_lies_above(tmp_path: Path) -> None:
    blocks = "\n".join(code("python"))
    (tmp_path / ".git").mkdir()
    here = tmp_path / "here"
    (here / "scenarios").mkdir(parents=True)
    (here / "conftest.py").write_text(blocks)
    (here / "pay.py").touch()
    (here / "scenarios" / "it.yaml").write_text(SCENARIO.replace("COMMAND", "'true'"))
    assert asked(here, "validate", "scenarios").stdout == "OK: 1 scenario\n"
    shown = asked(here, "kinds").stdout
    assert [name for name in NAMES if name not in shown] == []


@pytest.mark.subprocess
def test_a_conftest_with_a_mistake_is_told_of(tmp_path: Path) -> None:
    here = repository(tmp_path / "here", "from harness.faults import FAULTS\n\ndef (\n")
    done = asked(here, "validate", "it.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "conftest.py for the kinds that it registers; saw invalid syntax in its line 3. Mend it" in done.stderr


@pytest.mark.subprocess
@pytest.mark.parametrize(
    "end", ["import sys; sys.exit('REDIS_URL is not set')", "import pytest; pytest.skip('no redis')"]
)
def test_a_conftest_that_ends_early_is_one_error(tmp_path: Path, end: str) -> None:
    here = repository(
        tmp_path / "here", f"from harness.faults import FAULTS\nFAULTS.register\n{end}\nFAULTS.register(1)"
    )
    done = asked(here, "validate", "it.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "conftest.py for the kinds that it registers; saw" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.subprocess
def test_the_json_schema_has_the_kinds_of_the_folder(tmp_path: Path) -> None:
    blocks = "\n".join(code("python"))
    schema = asked(repository(tmp_path / "here", blocks), module="harness.load").stdout
    assert [name for name in NAMES if f'"{name}"' not in schema] == []


@pytest.mark.subprocess
def test_a_conftest_that_registers_nothing_is_left_to_pytest(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "conftest.py").write_text("from harness import nothing_of_that_name\n")
    assert asked(tmp_path, "kinds").returncode == 0


@pytest.mark.subprocess
def test_a_conftest_that_cannot_be_run_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "conftest.py").write_text("import nowhere\nfrom harness.faults import FAULTS\nFAULTS.register(1)\n")
    done = asked(tmp_path, "kinds")
    assert done.returncode == 2
    assert done.stderr.startswith(
        f"Error: asked {tmp_path / 'conftest.py'} for the kinds that it registers; saw Module"
    )
    assert done.stderr.count("\n") == 1
