"""A stack that stays up for several commands: each uses it and leaves nothing there, and it ends when it has to."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import psycopg2
import pytest
from click.testing import CliRunner
from kafka import KafkaAdminClient

from harness.cli import main
from harness.errors import HarnessError, Interrupted, StackError, WaitError
from harness.machine import java
from harness.session import reaper, session
from harness.stacks.processes import shared
from harness.suite import shared_owner
from harness.suite.options import Options
from harness.suite.suite_stack import stack_of
from harness.training import processes
from harness.wait import Waiting, locked, until

HOUSE = Path(__file__).parents[1]
PROVING = HOUSE / "scenarios" / "proving"
ONE, OTHER = PROVING / "upsert_before_offset_commit.yaml", PROVING / "append_driver_killed_mid_batch.yaml"
MORE = PROVING / "append_before_offset_commit.yaml"
GONE_S, RUN_S = 60.0, 900.0


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a shared stack of this test has its files."""
    monkeypatch.setenv(shared.VARIABLE, str(tmp_path / "shared"))
    return shared.folder()


def told(place: Path, **other: Any) -> shared.There:
    """A stack that says it is up, owned by this process."""
    said = {"versions": shared.versions(), "spark": {}, "components": {}, "session": "s-1", "owner": shared.process()}
    found = shared.There(**{**said, **other})
    (place / shared.FOUND).write_text(found.written())
    return found


def onceproof(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, words)
    return done.exit_code, done.output


def command(*words: str) -> str:
    """What a command says in a process of its own, all being well."""
    argv = [sys.executable, "-m", "harness", *words]
    done = subprocess.run(argv, cwd=HOUSE, capture_output=True, text=True, timeout=RUN_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.subprocess
def test_without_an_owner_nothing_is_up(place: Path) -> None:
    told(place)
    assert shared.there() is None
    assert onceproof("down") == (0, "no stack is up\n")


@pytest.mark.subprocess
def test_a_stack_of_another_version_is_not_used(place: Path) -> None:
    with locked(place / shared.OWNER, within_s=1):
        found = told(place)
        notes: list[str] = []
        assert shared.usable(notes.append) == found and not notes
        told(place, versions={**shared.versions(), "java": "another"})
        assert shared.usable(notes.append) is None
        assert notes == ["the stack that is up was started with another java; starting one for this command"]
        code, output = onceproof("up")
    assert code == 2 and "another java. End that one first: onceproof down" in output


@pytest.mark.parametrize("text", ["", "{", "[]", '{"owner": 1}'])
def test_what_an_owner_has_not_written_down_yet_is_no_stack(place: Path, text: str) -> None:
    with locked(place / shared.OWNER, within_s=1):
        (place / shared.FOUND).write_text(text)
        assert shared.there() is None


@pytest.mark.subprocess
def test_a_stack_that_lacks_a_component_is_not_taken_for_one_that_has_it(place: Path) -> None:
    with locked(place / shared.OWNER, within_s=1):
        told(place, components={"kafka": {}})
        code, output = onceproof("up")
    assert code == 2 and "with postgres; one is up with kafka. End that one first" in output


@pytest.mark.parametrize("word", ["up", "down"])
def test_a_stack_that_stays_between_up_and_down_is_told(
    place: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.setattr(shared_owner, "UP_S", 0.2)
    (place / shared_owner.LOG).write_text("the broker does not answer\n")
    with locked(place / shared.OWNER, within_s=1):
        code, output = onceproof(word)
    assert code == 4 and "the stack that is coming up or going down" in output
    assert "the broker does not answer" in output


def test_down_waits_for_whoever_takes_the_stack_down(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = iter([True, True])
    monkeypatch.setattr(shared, "held", lambda path: next(held, False))
    assert onceproof("down") == (0, "no stack is up\n")
    assert next(held, None) is None


@pytest.mark.subprocess
def test_up_waits_for_whoever_starts_one(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with locked(place / shared.OWNER, within_s=1):
        found = told(place, components={"kafka": {}})
        seen = iter([None, None])
        monkeypatch.setattr(shared, "there", lambda: next(seen, found))
        assert shared_owner.start(["kafka"], 60.0, kinds=[]) == found
    assert next(seen, "asked twice") == "asked twice"


@pytest.mark.subprocess
def test_what_an_owner_left_that_was_killed_is_not_the_next_ones(place: Path) -> None:
    with locked(place / shared.OWNER, within_s=1):
        told(place, owner=reaper.ProcessId(shared.process().pid, 1))
        assert shared.there() is None


@pytest.mark.subprocess
def test_executors_have_the_time_zone_of_whoever_uses_them(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []
    with locked(place / shared.OWNER, within_s=1):
        told(place)
        monkeypatch.setenv("TZ", "Asia/Kathmandu")
        assert shared.usable(notes.append) is None
    assert "started with another TZ in the environment" in notes[0]


@pytest.mark.subprocess
def test_an_interrupt_while_archives_are_made_ends_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise Interrupted("interrupted by SIGTERM")

    monkeypatch.setattr(java, "find", interrupted)
    with pytest.raises(Interrupted):
        processes.before(print)


@pytest.mark.subprocess
def test_a_stack_in_use_is_not_taken_down(place: Path) -> None:
    with (
        locked(place / shared.OWNER, within_s=1),
        locked(place / shared.USERS, within_s=1, how=fcntl.LOCK_SH),
    ):
        told(place)
        code, output = onceproof("down")
    assert code == 2 and "another command uses it" in output


@pytest.mark.subprocess
def test_nobody_joins_a_stack_that_is_going_down(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "JOIN_S", 0.2)
    with locked(place / shared.OWNER, within_s=1), locked(place / shared.USERS, within_s=1):
        stack = shared.SharedStack(told(place, spark={"worker": [1, 1]}), tmp_path / "logs")
        with pytest.raises(StackError, match="going down, run it again"):
            stack.up()


@pytest.mark.subprocess
@pytest.mark.parametrize("gone", [True, False])
def test_a_command_that_comes_as_it_goes_down_has_a_stack_of_its_own(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], gone: bool
) -> None:
    monkeypatch.setattr(shared, "JOIN_S", 0.2)
    options = Options(reports=tmp_path / "reports")
    with contextlib.ExitStack() as owner:
        owner.enter_context(locked(place / shared.OWNER, within_s=1))
        found = told(place, spark={"worker": [1, 1]})
        if gone:  # between the check and the lock
            monkeypatch.setattr(shared, "usable", lambda notify: found)
            (place / shared.FOUND).unlink()
        else:
            owner.enter_context(locked(place / shared.USERS, within_s=1))
        own = stack_of(options)
    assert not isinstance(own, shared.SharedStack) and own.name == "processes"
    assert "starting one for this command" in capsys.readouterr().err
    with locked(place / shared.USERS, within_s=1):
        pass


@pytest.mark.subprocess
def test_one_that_a_command_has_found_does_not_go_down_before_it_begins(place: Path, tmp_path: Path) -> None:
    with locked(place / shared.OWNER, within_s=1):
        told(place, spark={"worker": [1, 1]})
        stack = stack_of(Options(reports=tmp_path / "reports"))
        assert isinstance(stack, shared.SharedStack)
        with pytest.raises(WaitError), locked(place / shared.USERS, within_s=0.1):
            pass
        stack.leave()
        with locked(place / shared.USERS, within_s=1):
            pass


@pytest.mark.subprocess
def test_of_two_that_come_up_at_once_the_slower_one_is_told_of_the_other(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And takes nothing from the log of the other one, who writes it already."""
    log = place / shared_owner.LOG
    with locked(place / shared.OWNER, within_s=1):
        told(place, components={"kafka": {}})
        log.write_text("from the faster one\n")
        # As it was before the other one had its lock.
        monkeypatch.setattr(shared, "held", lambda path: False)
        monkeypatch.setattr(shared, "there", lambda: None)
        monkeypatch.setattr(shared_owner, "_up_already", lambda components: components)
        found: Any = shared_owner.start(["kafka"], 60.0, kinds=[])
        assert found == ["kafka"]
    assert log.read_text().startswith("from the faster one\n")


@pytest.mark.subprocess
def test_an_owner_that_fails_is_told_by_its_own_words_not_by_the_end_of_its_log(place: Path) -> None:
    with pytest.raises(HarnessError, match=r"its owner ended with 2: .*'nowhere'") as refusal:
        shared_owner.start(["nowhere"], 60.0, kinds=[])
    assert refusal.value.exit_code == 2
    assert (place / shared.ENDED).read_text() in str(refusal.value)


class Shared:
    """One that is really up."""

    def __init__(self, place: Path, reports: Path) -> None:
        self.place, self.reports = place, reports
        found = shared.there()
        assert found is not None
        self.found = found

    def lent(self, name: str) -> str:
        return str(self.found.components[name]["lent"])

    def start(self, scenario: Path, name: str) -> subprocess.Popen[bytes]:
        return self.started(name, "harness", "run", str(scenario), "--reports", str(self.reports / name))

    def test(self, name: str, *scenarios: Path) -> subprocess.Popen[bytes]:
        """Each in a worker of pytest-xdist."""
        more = ["--harness-reports", str(self.reports / name), "-n", str(len(scenarios)), "-p", "no:cacheprovider"]
        return self.started(name, "pytest", *map(str, scenarios), *more)

    def started(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-m", *words]
        with (self.reports / f"{name}.txt").open("wb") as out:
            return subprocess.Popen(argv, cwd=HOUSE, stdout=out, stderr=out, start_new_session=True)

    def at_work(self, name: str) -> subprocess.Popen[bytes]:
        """A command whose run has executors: its driver is at work."""
        run = self.start(ONE, name)
        until("a run with executors", lambda: self.executors() or Waiting(self.said(name)[-500:]), within_s=300)
        return run

    def said(self, name: str) -> str:
        return (self.reports / f"{name}.txt").read_text()

    def sessions(self, name: str) -> list[str]:
        """Whose stack each of its runs had."""
        runs = {path.resolve() for path in (self.reports / name).glob("*/*/run.json")}
        return [str(json.loads(run.read_text())["stack"]["shared"]) for run in runs]

    def topics(self) -> list[str]:
        with closing(KafkaAdminClient(bootstrap_servers=self.lent("kafka"))) as admin:
            return [name for name in admin.list_topics() if name.startswith("onceproof")]

    def schemas(self) -> list[str]:
        with closing(psycopg2.connect(self.lent("postgres"))) as connection, connection.cursor() as cursor:
            cursor.execute("select nspname from pg_namespace where nspname like 'run_%'")
            return [name for (name,) in cursor.fetchall()]

    def executors(self) -> list[reaper.ProcessId]:
        worker = reaper.ProcessId(*self.found.spark["worker"])
        return [each for each in reaper.descendants(reaper.table(), {worker}) if each != worker]

    def processes(self) -> list[reaper.ProcessId]:
        """All that its owner has started: broker, database, master, worker, reaper."""
        found = started(self.found)
        assert reaper.ProcessId(*self.found.spark["worker"]) in found and len(found) > len(self.found.components) + 2
        return found

    def clean(self) -> bool | Waiting:
        left = [*self.topics(), *self.schemas(), *self.executors()]
        return Waiting(str(left)) if left else True


def started(stack: shared.There) -> list[reaper.ProcessId]:
    """The owner of a stack and every process under it."""
    return list(reaper.descendants(reaper.table(), {stack.owner}))


def all_gone(processes: Sequence[reaper.ProcessId]) -> bool | Waiting:
    rows = reaper.table()
    found = [rows[each.pid] for each in processes if each.pid in rows]
    left = [each for each in found if each.id in processes and each.state != "Z"]
    return Waiting(f"alive: {left}") if left else True


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """A stack that is up, as `onceproof up` leaves it; down afterwards."""
    reports = tmp_path_factory.mktemp("shared")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(shared.VARIABLE, str(reports / "files"))
        command("up")
        yield Shared(reports / "files", reports)
        command("down", "--now")


# Three runs at once share what cores there are.
@pytest.mark.timeout(1800)
@pytest.mark.stack
@pytest.mark.prove
def test_a_command_and_two_workers_of_xdist_use_it_at_once_and_leave_nothing_there(up: Shared) -> None:
    assert command("up") == "up: Spark, kafka, postgres; onceproof down ends it\n"
    runs = {"one": up.start(ONE, "one"), "others": up.test("others", OTHER, MORE)}
    assert {name: (run.wait(RUN_S), up.said(name)[-500:])[0] for name, run in runs.items()} == {"one": 0, "others": 0}
    assert [up.sessions(name) for name in runs] == [[up.found.session], [up.found.session] * 2]
    until("nothing of the runs to be left", up.clean, within_s=GONE_S)
    assert shared.there() == up.found


@pytest.mark.stack
@pytest.mark.prove
def test_two_that_come_up_at_once_are_one_which_ends_with_a_part_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(shared.VARIABLE, str(tmp_path / "files"))
    argv = [sys.executable, "-m", "harness", "up"]
    both = [subprocess.Popen(argv, cwd=HOUSE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        said = {each.communicate(timeout=RUN_S)[0] for each in both}
        assert said == {"up: Spark, kafka, postgres; onceproof down ends it\n"}
        assert [each.returncode for each in both] == [0, 0]
        found = shared.there()
        assert found is not None
        processes = started(found)
        (broker,) = [each for each in processes if "kafka.Kafka" in psutil.Process(each.pid).cmdline()]
        reaper.send(broker, signal.SIGKILL)
        until("the stack to be gone", lambda: shared.there() is None, within_s=GONE_S)
        until("every process of the stack to be gone", lambda: all_gone(processes), within_s=GONE_S)
        assert "kafka" in (tmp_path / "files" / shared.ENDED).read_text()
    finally:
        command("down", "--now")


@pytest.mark.stack
@pytest.mark.prove
def test_a_command_that_is_killed_leaves_nothing_there(up: Shared) -> None:
    run = up.at_work("killed")
    assert up.topics() and up.schemas()
    run.kill()
    run.wait(GONE_S)
    until("nothing of the run to be left", up.clean, within_s=GONE_S)
    assert shared.there() == up.found


@pytest.mark.stack
@pytest.mark.prove
def test_a_command_is_told_when_it_is_gone_and_nothing_is_left_of_it(up: Shared) -> None:
    run = up.at_work("left alone")
    processes = up.processes()
    os.kill(up.found.owner.pid, signal.SIGKILL)
    assert run.wait(RUN_S) == 4
    assert "the stack that `onceproof up` started is gone" in up.said("left alone")
    assert "Traceback" not in up.said("left alone")
    until("every process of the stack to be gone", lambda: all_gone(processes), within_s=GONE_S)
    assert shared.there() is None
    # What the run had there is gone with it: no later start has anything to do.
    assert "and then" not in up.said("left alone")
    left = [path.parent for path in session.root().glob("s-*/made.json") if up.found.session in said_last(path.parent)]
    assert not left


def said_last(folder: Path) -> str:
    """What a session wants to be done at its end."""
    return (folder / reaper.CLOSING_MESSAGE).read_text()


@pytest.mark.stack
def test_it_ends_by_itself_when_nobody_uses_it(place: Path) -> None:
    # Three seconds of it are over soon where the machine is busy: in use until it was checked.
    with locked(place / shared.USERS, within_s=1, how=fcntl.LOCK_SH):
        command("up", str(ONE), "--idle", "0.05")
        found = shared.there()
        assert found is not None and set(found.components) == {"kafka", "postgres"}
        processes = started(found)
        assert len(processes) > 4
    until("its owner to end", lambda: not shared.held(place / shared.OWNER) or Waiting("it lives"), within_s=GONE_S)
    until("every process of it to be gone", lambda: all_gone(processes), within_s=GONE_S)
    assert not (place / shared.FOUND).exists()
