"""Attempts that a cluster manager starts: how the supervisor follows them, and what is seen of their processes. Without
YARN: its containers' processes are others here, and ResourceManager is a page of ours."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.components.yarn.attempt import MOST_CHARACTERS, YarnAttempt, brief
from harness.components.yarn.cluster import Yarn
from harness.components.yarn.containers import EXECUTOR, MASTER, contained, master, runs
from harness.components.yarn.fault import kill_nodemanager
from harness.components.yarn.rest_api import Manager, Node
from harness.components.yarn.settings import Folders
from harness.components.yarn.yarn_stack import Submitted, YarnStack
from harness.context import Reached
from harness.errors import StackError
from harness.faults import FAULTS, fault
from harness.faults.base import Proof, outage
from harness.history import AttemptDiagnosed, AttemptEnded, AttemptStarted, History, RestartsEnded, read
from harness.machine.java import Java
from harness.resources import RunResources
from harness.run.last_words import last_words
from harness.run.supervisor import Supervisor
from harness.scenario import CrashPoint, Impact, Pipeline, Restart, Step, Victim
from harness.stack import NoMore
from harness.triggers.base import at_point
from harness.wait import until

APPLICATION = "application_17_0001"
KILLED = -9


def container(attempt: int, number: int) -> str:
    """The id of one."""
    return f"container_17_0001_{attempt:02}_{number:06}"


Starts = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def starts(tmp_path: Path) -> Iterator[Starts]:
    """Starts what looks like a process of a container; all are gone afterwards."""
    children: list[subprocess.Popen[bytes]] = []

    def start(name: str, *words: str, attempt: int = 1, number: int = 1, code: str = "") -> subprocess.Popen[bytes]:
        environment = {"ONCEPROOF_RUN": str(tmp_path), "CONTAINER_ID": container(attempt, number)}
        ready = tmp_path / f"ready-{len(children)}"
        own = f"open({str(ready)!r}, 'w').close(); {code or 'input()'}"
        children.append(
            subprocess.Popen(
                [name, "-c", own, *words], executable=sys.executable, env=environment, stdin=subprocess.PIPE
            )
        )
        until("it to be there", ready.exists, within_s=30.0)
        return children[-1]

    yield start
    for child in children:
        child.kill()
        child.wait(10.0)
        assert child.stdin is not None
        child.stdin.close()


class Page(ThreadingHTTPServer):
    """A ResourceManager that answers each path with what stands in `said`."""

    def __init__(self) -> None:
        self.said: dict[str, Any] = {}
        self.asked: list[tuple[str, str]] = []
        super().__init__(("127.0.0.1", 0), Answers)


class Answers(BaseHTTPRequestHandler):
    """One answer of it."""

    server: Page

    def do_GET(self) -> None:
        self.server.asked.append((self.command, self.path))
        found = self.server.said.get(self.path.removeprefix("/ws/v1/cluster"))
        self.send_response(200 if found is not None else 404)
        self.end_headers()
        self.wfile.write(json.dumps(found).encode())

    do_PUT = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture
def page() -> Iterator[Page]:
    server = Page()
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def attempt(tmp_path: Path, page: Page) -> YarnAttempt:
    submission: Any = SimpleNamespace(application=APPLICATION, failed=lambda: None, tag="run-1")
    return YarnAttempt(
        submission,
        Manager(f"127.0.0.1:{page.server_port}"),
        Folders(tmp_path / "yarn", tmp_path / "logs"),
        mark=f"ONCEPROOF_RUN={tmp_path}",
        number=1,
        log=tmp_path / "driver-1.log",
    )


def polled(attempt: YarnAttempt) -> int:
    """Its status, once it is known."""
    found = until("the attempt's end", lambda: [each for each in [attempt.poll()] if each is not None], within_s=30.0)
    return found[0]


def test_the_processes_of_a_run_go_by_attempt_and_yarn_s_shells_are_none(tmp_path: Path, starts: Starts) -> None:
    mark = f"ONCEPROOF_RUN={tmp_path}"
    old = starts("java", EXECUTOR, attempt=1, number=2)
    starts("bash", f"/somewhere/{container(2, 1)}/default_container_executor.sh", attempt=2)
    driver = starts("java", MASTER, attempt=2)
    executor = starts("java", EXECUTOR, attempt=2, number=2)
    found = {each.process.pid: each.attempt for each in contained(mark)}
    assert found == {old.pid: 1, driver.pid: 2, executor.pid: 2}
    second = contained(mark, attempt=2)
    there = master(second)
    assert there is not None and (there.process.pid, there.application) == (driver.pid, APPLICATION)
    assert [each.process.pid for each in second if runs(each.process, EXECUTOR)] == [executor.pid]
    assert contained("ONCEPROOF_RUN=another") == []


def test_an_attempt_lives_with_its_jvm_and_the_shell_tells_how_it_ended(
    tmp_path: Path, starts: Starts, attempt: YarnAttempt
) -> None:
    assert (attempt.poll(), attempt.processes()) == (None, []), "YARN has not started it yet"
    program = tmp_path / "program.py"
    program.write_text("input()", encoding="utf-8")
    jvm = starts("java", MASTER, code=f"import subprocess; subprocess.run([{sys.executable!r}, {str(program)!r}])")
    until("the program", lambda: attempt.poll() or attempt.processes(Victim.PYTHON), within_s=30.0)
    assert [each.pid for each in attempt.processes(Victim.JVM)] == [jvm.pid]
    (python,) = attempt.processes(Victim.PYTHON)
    assert attempt.processes() == [*attempt.processes(Victim.JVM), python]
    output = tmp_path / "logs" / APPLICATION / container(1, 1)
    output.mkdir(parents=True)
    (output / "stdout").write_text("said\nits last words")
    python.process.kill()
    jvm.kill()
    jvm.wait(10.0)
    code = attempt._folders.exit_code(APPLICATION, container(1, 1))
    code.parent.mkdir(parents=True)
    code.write_text("137\n")
    assert (polled(attempt), attempt.processes()) == (KILLED, [])
    assert attempt.log.read_text() == "said\nits last words"
    assert attempt.names() == {"application": APPLICATION, "container": container(1, 1)}


@pytest.mark.parametrize(("code", "status"), [("143", -15), ("-100", 1), ("0", 0), ("13", 13)])
def test_without_the_shell_s_word_yarn_is_asked(
    code: str, status: int, starts: Starts, attempt: YarnAttempt, page: Page
) -> None:
    jvm = starts("java", MASTER)
    until("the driver", lambda: attempt.poll() or attempt.processes(), within_s=30.0)
    jvm.kill()
    jvm.wait(10.0)
    # It has not heard of the end yet.
    assert attempt.poll() is None
    told = {"diagnosticsInfo": f"AM Container for x exited with  exitCode: {code}\nFailing this attempt."}
    page.said[f"/apps/{APPLICATION}/appattempts/appattempt_17_0001_000001"] = told
    assert polled(attempt) == status


def test_an_attempt_that_was_never_seen_ends_when_yarn_says_so(attempt: YarnAttempt, page: Page) -> None:
    assert attempt.poll() is None
    page.said[f"/apps/{APPLICATION}/state"] = {"state": "FAILED"}
    assert polled(attempt) == 1


# As ResourceManager tells it of an attempt whose container could not be prepared.
NEVER_BEGAN = """AM Container for appattempt_17_0001_000001 exited with  exitCode: -1000
Failing this attempt.Diagnostics: [2026-11-27 10:00:00.000]File file:/staging/pyspark.zip does not exist, s3cret
java.io.FileNotFoundException: File file:/staging/pyspark.zip does not exist
\tat org.apache.hadoop.fs.RawLocalFileSystem.getFileLinkStatusInternal(RawLocalFileSystem.java:1)
\t... 12 more

For more detailed output, check the application tracking page: http://localhost:1/cluster/app/application_17_0001 Then
"""


def test_why_an_attempt_could_not_begin_is_told_on_one_line_without_traces_and_secrets(
    tmp_path: Path, attempt: YarnAttempt, page: Page
) -> None:
    assert attempt.diagnostics() == "", "nobody answers"
    attempt._secrets = ("s3cret",)
    page.said[f"{BEGUN}/appattempt_17_0001_000001"] = {"diagnosticsInfo": NEVER_BEGAN, "appAttemptState": "FAILED"}
    assert polled(attempt) == 1
    said = attempt.diagnostics()
    assert "exitCode: -1000 Failing this attempt.Diagnostics: [" in said
    assert said.endswith("java.io.FileNotFoundException: File file:/staging/pyspark.zip does not exist")
    assert "pyspark.zip does not exist, [redacted] java.io.FileNotFoundException" in said and "\t" not in said
    attempt.log.write_text("Submitted application application_17_0001\n")
    assert last_words(attempt).splitlines() == [
        "logs/driver-1.log:",
        f"Submitted application {APPLICATION}",
        f"Diagnostics of attempt 1: {said}",
    ]


def test_of_long_diagnostics_the_beginning_is_kept_and_no_half_of_a_secret() -> None:
    for before in range(MOST_CHARACTERS - 8, MOST_CHARACTERS + 1):
        said = brief("x" * before + "s3cret" + "y" * 9999, ["s3cret"])
        assert len(said) == MOST_CHARACTERS + 1 and said.endswith("…") and "s3c" not in said
    assert brief(" a\n\n b\t\n") == "a b"


# What ResourceManager of Hadoop 3.4.1 said of a program that ended well, of one that exited with 3 in its last attempt,
# and of one that was killed. Only a search by final status tells the first two apart.
WELL = {"apps": [{"appIdNum": "1", "trackingUrlPretty": "http://localhost:45577/proxy/application_17_0001/"}]}
NONE: dict[str, list[Any]] = {"apps": []}
ENDED = f"/apps/{APPLICATION}/state"
BEGUN = f"/apps/{APPLICATION}/appattempts"
FOUND = "/apps?finalStatus=SUCCEEDED&applicationTags=run-1"


def begun(*states: str) -> dict[str, Any]:
    return {"attempts": [{"attemptId": number, "appAttemptState": state} for number, state in enumerate(states, 1)]}


@pytest.mark.parametrize(
    ("state", "attempts", "status"),
    [
        ("FINISHED", ["FINISHED"], 0),
        ("FINISHED", ["FINISHED"], 1),
        ("KILLED", ["KILLED"], 1),
        ("FAILED", ["FAILED"], 1),
        ("FINISHED", ["FAILED", "FINISHED"], 1),
        ("ACCEPTED", ["FAILED", "LAUNCHED"], 1),
    ],
    ids=["well", "told that it failed", "killed", "failed", "the next one ended well", "the next one begins"],
)
def test_an_attempt_ends_well_if_it_is_the_last_and_its_application_succeeded(
    state: str, attempts: list[str], status: int, attempt: YarnAttempt, page: Page
) -> None:
    succeeded = status == 0 or attempts == ["FAILED", "FINISHED"]
    why = "" if succeeded else "User application exited with status 3"
    page.said[f"{BEGUN}/appattempt_17_0001_000001"] = {"diagnosticsInfo": why, "appAttemptState": attempts[0]}
    page.said[ENDED] = {"state": state, "diagnostics": None}
    page.said |= {BEGUN: begun(*attempts), FOUND: WELL if succeeded else NONE}
    assert polled(attempt) == status


@pytest.mark.parametrize("silent", [BEGUN, FOUND])
def test_of_an_attempt_nothing_is_concluded_from_an_answer_that_is_not_there(
    silent: str, monkeypatch: pytest.MonkeyPatch, attempt: YarnAttempt, page: Page
) -> None:
    monkeypatch.setattr("harness.components.yarn.attempt.ASK_S", 0.0)
    answers = {ENDED: {"state": "FINISHED"}, BEGUN: begun("FINISHED"), FOUND: WELL}
    page.said |= {path: said for path, said in answers.items() if path != silent}
    assert [attempt.poll() for _ in range(3)] == [None] * 3
    page.said |= answers
    assert polled(attempt) == 0


def test_the_end_of_an_application_is_asked_for(page: Page) -> None:
    page.said[f"/apps/{APPLICATION}/state"] = {"state": "KILLING"}
    Manager(f"127.0.0.1:{page.server_port}").end(APPLICATION)
    assert page.asked == [("PUT", f"/ws/v1/cluster/apps/{APPLICATION}/state")]


@pytest.mark.parametrize(
    ("state", "found", "well"),
    [
        ("FINISHED", WELL, True),
        ("FINISHED", {"apps": {"app": WELL["apps"]}}, True),
        ("FINISHED", NONE, False),
        ("FINISHED", {"apps": {"app": []}}, False),
        ("FINISHED", {"apps": None}, False),
        ("FAILED", None, False),
        ("FINISHED", None, None),
    ],
    ids=["well", "well, nested", "told that it failed", "failed, nested", "nothing", "failed", "nobody says"],
)
def test_an_application_that_is_over_says_whether_its_program_ended_well(
    state: str, found: object, well: bool | None, tmp_path: Path, page: Page
) -> None:
    """By what the attempt has told YARN, whatever became of its container afterwards."""
    page.said |= {BEGUN: begun("FAILED", "FINISHED"), ENDED: {"state": state}}
    if found is not None:
        page.said[FOUND] = found
    stack = YarnStack(tmp_path)
    cluster: Any = SimpleNamespace(manager=Manager(f"127.0.0.1:{page.server_port}"))
    submission: Any = SimpleNamespace(application=APPLICATION, tag="run-1")
    stack._yarn, stack._submitted["r"] = cluster, Submitted(submission, 6)
    own: Any = SimpleNamespace(run_id="r")
    told = stack.next_attempt(own, after=Driver(2, tmp_path, KILLED), log=tmp_path)
    if well is None:
        assert told is None
        return
    assert isinstance(told, NoMore) and told.well is well
    assert told.why.startswith(f"YARN starts the driver no more: {APPLICATION} is {state} after attempt 2; ")


class Slow:
    """A ResourceManager that does not answer the first time, and needs a moment once it is told."""

    def __init__(self, *, ends: bool = True) -> None:
        self.said: list[str] = []
        self.ends = ends

    def end(self, application: str) -> None:
        self.said.append("asked")
        if len(self.said) == 1 or not self.ends:
            raise StackError("no answer")

    def over(self, application: str) -> str:
        self.said.append("told")
        return "KILLED" if self.said.count("told") > 1 else ""


def ending(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, manager: Any, node: Any, *, gone: bool = False, **of_node: bool
) -> None:
    """Have the stack end an application, with these of YARN's daemons."""
    monkeypatch.setattr("harness.components.yarn.yarn_stack.END_WITHIN_S", 3.0)
    stack = YarnStack(tmp_path)
    cluster: Any = SimpleNamespace(
        manager=manager,
        node=node,
        resourcemanager=SimpleNamespace(gone=gone),
        nodemanager=SimpleNamespace(gone=of_node.get("lost", False), held=of_node.get("held", False)),
    )
    session: Any = SimpleNamespace(end=lambda process: None)
    submission: Any = SimpleNamespace(application=APPLICATION, process=None)
    stack._yarn, stack._session, stack._submitted["r"] = cluster, session, Submitted(submission, 6)
    own: Any = SimpleNamespace(run_id="r")
    stack.end(own)


@pytest.mark.parametrize(("ends", "gone", "raises"), [(True, False, False), (False, True, False), (False, False, True)])
def test_a_run_s_end_waits_until_the_application_is_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ends: bool, gone: bool, raises: bool
) -> None:
    """YARN would start the next attempt while the sink is read."""
    manager = Slow(ends=ends)
    with pytest.raises(StackError, match=APPLICATION) if raises else nullcontext():
        ending(monkeypatch, tmp_path, manager, SimpleNamespace(done=lambda application: True), gone=gone)
    if ends:
        assert manager.said == ["asked", "asked", "told", "asked", "told"]


AT_NODE = f"/ws/v1/node/apps/{APPLICATION}"


def test_a_run_s_end_waits_until_nodemanager_starts_no_container_of_it_any_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, page: Page
) -> None:
    """It may be about to start one when the application is over, and nobody sees that yet."""
    over: Any = SimpleNamespace(end=lambda application: None, over=lambda application: "KILLED")
    node = Node(f"127.0.0.1:{page.server_port}")
    for state, done in {
        "NEW": False, "INITING": False, "RUNNING": False, "FINISHING_CONTAINERS_WAIT": False,
        "APPLICATION_RESOURCES_CLEANINGUP": True, "FINISHED": True,
    }.items():  # fmt: skip
        page.said[AT_NODE] = {"state": state}
        assert node.done(APPLICATION) is done
    page.said[AT_NODE] = {"state": "RUNNING"}
    with pytest.raises(StackError, match="it is over, and NodeManager has not ended its containers"):
        ending(monkeypatch, tmp_path, over, node)
    ending(monkeypatch, tmp_path, over, node, held=True)
    ending(monkeypatch, tmp_path, over, node, lost=True)
    del page.said[AT_NODE]
    assert node.done(APPLICATION), "it knows no such application"
    ending(monkeypatch, tmp_path, over, node)
    silent = Node("127.0.0.1:1")
    assert not silent.done(APPLICATION)
    with pytest.raises(StackError):
        ending(monkeypatch, tmp_path, over, silent)


@dataclass
class Driver:
    """An attempt that lives until `status` is set."""

    number: int
    log: Path
    status: int | None = None
    said: str = ""

    def diagnostics(self) -> str:
        return self.said

    def poll(self) -> int | None:
        return self.status

    def processes(self, victim: Victim = Victim.TREE) -> list[Any]:
        return []

    def names(self) -> dict[str, str]:
        return {"container": container(self.number, 1)}


@dataclass
class Cluster:
    """One that starts drivers itself: `next` is what comes after the first, `held` whether somebody holds it."""

    next: list[Driver | NoMore | None] = field(default_factory=list)
    first: Driver | None = None
    held: list[bool] = field(default_factory=list)
    ended: int = 0

    def launch(self, own: Any, pipeline: Pipeline, *, number: int, log: Path) -> Driver:
        assert self.first is None, "submitted once"
        self.first = Driver(number, log)
        return self.first

    def next_attempt(self, own: Any, *, after: Driver, log: Path) -> Driver | NoMore | None:
        return self.next.pop(0) if self.next else None

    @contextmanager
    def holding(self, own: Any) -> Iterator[None]:
        self.held.append(True)
        yield
        self.held.append(False)

    def end(self, own: Any) -> None:
        self.ended += 1

    def executors(self, own: Any, *, attempt: int | None = None) -> list[Any]:
        return []

    def processes(self, own: Any, *, attempt: int | None = None) -> list[Any]:
        return []


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    made = History(tmp_path / "history.jsonl")
    yield made
    made.close()


def test_what_a_cluster_manager_says_of_an_attempt_s_end_is_in_the_history_and_in_why_it_gave_up(
    tmp_path: Path, history: History
) -> None:
    second = Driver(2, tmp_path / "driver-2.log", status=1, said="b" * 600)
    stack = Cluster(next=[None, second, NoMore("it starts the driver no more")])
    own: Any = SimpleNamespace(folder=tmp_path, secrets=())
    supervisor = Supervisor(stack, own, Pipeline(entry="program"), history=history, logs=tmp_path)  # type: ignore[arg-type]
    supervisor.start(Restart(), lambda number: None)
    try:
        assert stack.first is not None
        stack.first.said = "exitCode: 137"
        supervisor.expect_death(1, [])
        stack.first.status = KILLED
        until("the end", lambda: supervisor.gave_up, within_s=30.0)
    finally:
        supervisor.stop()
    why = f"it starts the driver no more; diagnostics of attempt 2: {'b' * 500}…"
    assert supervisor.gave_up == why
    told = [line.event for line in read(tmp_path / "history.jsonl")]
    assert [each for each in told if isinstance(each, AttemptDiagnosed | RestartsEnded)] == [
        AttemptDiagnosed(attempt=1, words="exitCode: 137", scheduled=True),
        AttemptDiagnosed(attempt=2, words="b" * 600, scheduled=False),
        RestartsEnded(why=why),
    ]


@pytest.mark.parametrize("well", [False, True])
def test_attempts_are_watched_and_the_application_is_ended_with_the_run(
    tmp_path: Path, history: History, well: bool
) -> None:
    second = Driver(2, tmp_path / "driver-2.log")
    stack = Cluster(next=[None, second, NoMore("it starts the driver no more", well=well)])
    own: Any = SimpleNamespace(folder=tmp_path, secrets=())
    supervisor = Supervisor(stack, own, Pipeline(entry="program"), history=history, logs=tmp_path)  # type: ignore[arg-type]
    numbers: list[int] = []
    # A policy of ours means nothing there.
    supervisor.start(Restart(max_restarts=0, delay_s=600.0), numbers.append)
    try:
        assert stack.first is not None
        with supervisor.without_restarts():
            assert stack.held == [True]
        assert stack.held == [True, False]
        stack.first.status = KILLED
        until("the next attempt", lambda: supervisor.driver is second, within_s=30.0)
        second.status = 1
        until("the end", lambda: supervisor.gave_up, within_s=30.0)
    finally:
        supervisor.stop()
    supervisor.healthy()
    assert (numbers, supervisor.gave_up, stack.ended) == ([1, 2], "it starts the driver no more", 1)
    assert supervisor.ended_well is well
    *told, last = (line.event for line in read(tmp_path / "history.jsonl"))
    assert last == RestartsEnded(why="it starts the driver no more", well=well)
    attempts = [each for each in told if isinstance(each, AttemptStarted | AttemptEnded)]
    assert [(type(each), each.attempt, each.names.get("container")) for each in attempts] == [
        (AttemptStarted, 1, None),
        (AttemptEnded, 1, container(1, 1)),
        (AttemptStarted, 2, container(2, 1)),
        (AttemptEnded, 2, container(2, 1)),
    ]
    assert attempts == told


@pytest.mark.parametrize(
    ("kind", "connected", "lost", "struck"),
    [
        ("kill nodemanager", False, True, True),
        ("kill nodemanager", True, True, True),
        ("kill nodemanager", True, False, False),
        # Whoever is connected to it only reports to it: nothing is done again.
        ("restart resourcemanager", True, False, False),
        ("restart resourcemanager", True, True, True),
        ("restart resourcemanager", False, False, False),
    ],
)
def test_a_daemon_is_killed_alone_and_the_attempt_that_is_lost_with_it_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, kind: str, connected: bool, lost: bool, struck: bool
) -> None:
    name = kind.split()[1]
    story: list[str] = []
    daemon = SimpleNamespace(port=1, stop=lambda: story.append("killed"), start=lambda: story.append("back"))
    process = SimpleNamespace(name="1", reaches=lambda port: connected)
    monkeypatch.setattr(outage, "signals", SimpleNamespace(freeze=lambda each: [], thaw=lambda each: None))
    monkeypatch.setattr(outage, "everyone", lambda run: [process])
    monkeypatch.setattr(kill_nodemanager, "GIVEN_UP_S", 0.3)
    monkeypatch.setattr("harness.faults.base.killing.DIES_WITHIN_S", 0.3)
    late = iter([False, False] if name == "nodemanager" else [])
    run: Any = SimpleNamespace(
        stack=SimpleNamespace(daemons={name: daemon}, servers={}, executors=lambda own: []),
        own={},
        # The driver that a NodeManager's end has lost ends some time after it is back.
        supervisor=SimpleNamespace(
            driver=SimpleNamespace(number=1),
            ended=lambda number: next(late, lost),
            ending=lambda number, within_s: 1 if lost else None,
        ),
        counted=(),
        observer=SimpleNamespace(states=lambda: ()),
        snapshot=lambda reached: story.append("snapshot"),
        release=lambda reached: story.append("let go"),
        only_checkpoint="",
        stop=threading.Event(),
    )
    reached, step = Reached(batch=2), Step(when=at_point(CrashPoint.BATCH_PLANNED, batch=2), do=fault(kind, for_s=0.1))
    done = FAULTS[kind].inject(run, step, reached)
    # The lost driver works on without NodeManager: whom the trigger holds is held until it has ended.
    away = ["snapshot", "killed", "back"] if name == "nodemanager" else ["snapshot", "killed", "let go", "back"]
    assert (story, list(done.signalled), not done.why) == (away, [name], struck)
    # The judge is told that the attempt is over, and how it ended.
    assert done.driver_status == (1 if lost and name == "nodemanager" else None)
    elsewhere: Any = SimpleNamespace(stack=SimpleNamespace(servers={}), supervisor=run.supervisor)
    assert FAULTS[kind].inject(elsewhere, step, reached).signalled == {}


@dataclass
class Victims:
    """A process that tells the story of the signals that it takes."""

    name: str
    story: list[str]
    gone: bool = False

    def send(self, what: signal.Signals) -> bool:
        self.story.append(f"{what.name} {self.name}")
        self.gone |= what is signal.SIGKILL
        return True

    def alive(self) -> bool:
        return not self.gone

    def stopped(self) -> bool:
        return True

    def family(self) -> list[Any]:
        return [self]


@pytest.mark.parametrize("lives", [True, False])
def test_a_driver_that_is_killed_without_resourcemanager_is_looked_at_before_it_is_back(lives: bool) -> None:
    story: list[str] = []
    daemon = SimpleNamespace(port=1, stop=lambda: story.append("killed"), start=lambda: story.append("back"))
    driver = [Victims("driver", story)] if lives else []
    run: Any = SimpleNamespace(
        stack=SimpleNamespace(daemons={"resourcemanager": daemon}, executors=lambda own: []),
        own={},
        supervisor=SimpleNamespace(
            driver=SimpleNamespace(number=1),
            processes=lambda victim=None: driver,
            expect_death=lambda number, left: story.append(f"expected {number}"),
            ending=lambda number, within_s: KILLED,
        ),
        note_writers=lambda reached: story.append("writers noted"),
        snapshot=lambda reached: story.append("snapshot"),
        release=lambda reached: story.append("let go"),
        stop=threading.Event(),
    )
    do = fault("kill driver without resourcemanager", for_s=0.1)
    step = Step(when=at_point(CrashPoint.SINK_COMMITTED, batch=2), do=do)
    done = FAULTS[do.kind].inject(run, step, Reached(batch=2))
    if not lives:
        # Nobody is left to be struck: ResourceManager is let be.
        assert (story, done.signalled) == ([], {})
        return
    told = ["killed", "expected 1", "SIGSTOP driver", "writers noted", "SIGKILL driver", "snapshot", "let go", "back"]
    assert [each for place, each in enumerate(story) if place == 0 or story[place - 1] != each][1:] == told
    assert story[0] == "SIGSTOP driver", "it gets nothing done between the two"
    assert (done.driver_status, done.snapshot_taken, done.lived, done.proof) == (KILLED, True, False, Proof.AFTER)
    assert list(done.signalled) == ["resourcemanager", "driver", "driver 1"]
    assert do.impact is Impact.DRIVER_KILLED, "the end counts against the attempts"


def test_resourcemanager_comes_back_also_if_the_driver_cannot_be_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    story: list[str] = []
    daemon = SimpleNamespace(port=1, stop=lambda: story.append("killed"), start=lambda: story.append("back"))
    stack = SimpleNamespace(daemons={"resourcemanager": daemon})
    run: Any = SimpleNamespace(
        stack=stack, supervisor=SimpleNamespace(processes=lambda: [Victims("driver", [])], driver=None)
    )
    monkeypatch.setattr("harness.faults.base.killing.kill_driver", lambda *asked: 1 / 0)
    do = fault("kill driver without resourcemanager", for_s=0.1)
    step = Step(when=at_point(CrashPoint.SINK_COMMITTED, batch=2), do=do)
    with pytest.raises(ZeroDivisionError):
        FAULTS[do.kind].inject(run, step, Reached(batch=2))
    assert story == ["killed", "back"]


@pytest.fixture
def without_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hadoop is not fetched: what is started stands in for it."""
    monkeypatch.setattr("harness.components.hadoop.daemon.class_path", lambda java: ())


@pytest.mark.usefixtures("without_jars")
def test_a_resourcemanager_that_comes_back_leaves_a_nodemanager_still_that_is_held(
    tmp_path: Path, starts: Starts, page: Page
) -> None:
    """Let go, it would start the next attempt while the dead one is read."""
    session: Any = SimpleNamespace(id="s-1", folder=tmp_path, spawn=lambda *argv, **more: starts("java"))
    stack, own = YarnStack(tmp_path), cast(RunResources, None)
    java = Java(home=tmp_path, executable=tmp_path / "java", feature=17, text="17")
    stack._yarn = yarn = Yarn(session, java, logs=tmp_path)
    # As ResourceManager of Hadoop 3.4.1 tells it without a node.
    object.__setattr__(yarn.manager, "address", f"127.0.0.1:{page.server_port}")
    page.said["/nodes"] = {"nodes": None}
    try:
        yarn.nodemanager._process = starts("java")
        (node,) = yarn.nodemanager.itself()
        with stack.holding(own):
            assert node.stopped()
            yarn.resourcemanager.start()
            assert node.stopped()
        until("NodeManager to go on", lambda: not node.stopped(), within_s=30.0)
        # From here on it is there only with a node.
        yarn.resourcemanager.stop()
        yarn.resourcemanager.spawn()
        with pytest.raises(StackError):
            yarn.resourcemanager.await_ready(within_s=0.5)
        page.said["/nodes"] = {"nodes": [{"state": "RUNNING", "lastHealthUpdate": 1}]}
        yarn.resourcemanager.await_ready(within_s=30.0)
    finally:
        yarn.close()


@pytest.mark.usefixtures("without_jars")
def test_a_nodemanager_that_comes_back_while_nobody_may_be_started_stands_still(tmp_path: Path, starts: Starts) -> None:
    """YARN would start the next attempt while the one before it still writes."""
    session: Any = SimpleNamespace(id="s-1", folder=tmp_path, spawn=lambda *argv, **more: starts("java"))
    stack = YarnStack(tmp_path)
    java = Java(home=tmp_path, executable=tmp_path / "java", feature=17, text="17")
    stack._yarn = yarn = Yarn(session, java, logs=tmp_path)
    daemon, own = yarn.nodemanager, cast(RunResources, None)
    try:
        daemon._ready = lambda: True
        daemon.start()
        assert [each.stopped() for each in daemon.itself()] == [False]
        with stack.holding(own):
            daemon.stop()
            daemon.start()
            assert [each.stopped() for each in daemon.itself()] == [True]
        until("it to go on", lambda: [each.stopped() for each in daemon.itself()] == [False], within_s=30.0)
    finally:
        yarn.close()
