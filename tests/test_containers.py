"""The stack `containers`: the same verdicts as on `processes`, clear words for what is missing, nothing left behind.

Needs a container engine and the images (`docker/build.py` makes stand-ins); without one these tests are not run, and
pytest names each of them with the reason.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import docker
from harness.component import COMPONENTS, AsContainer, Boxed, needs
from harness.errors import Interrupted, StackError
from harness.faults import FAULTS
from harness.faults.base.outage import Restartable
from harness.hosts import engine as engines
from harness.load import load
from harness.machine.class_data import IN_CONTAINERS, Kind, fitted
from harness.run.loop import run
from harness.scenario import Verdict
from harness.spark import standalone_containers
from harness.stack import Means, Stack
from harness.stacks.containers.stack import ContainersStack
from harness.stacks.supported import unsupported
from harness.training import containers as class_archives
from harness.training import processes as training
from harness.wait import Waiting, until
from tests import container_engine
from tests.container_engine import left
from tests.limits import PROCESS_S

pytestmark = [pytest.mark.stack, pytest.mark.containers, pytest.mark.prove]
HOUSE = Path(__file__).parents[1]
FOLDERS = ("proving", "more", "sinks", "sources", "shapes", "operations")
SCENARIOS = sorted(path for folder in FOLDERS for path in (HOUSE / "scenarios" / folder).glob("*.yaml"))
BOXED = "containers"
CHOSEN = [path for path in SCENARIOS if container_engine.chosen(path) and not unsupported(load(path), BOXED)]
GONE_WITHIN_S = 60.0
KAFKA = "-kafka"
DRIVER = "-driver-"
ONE = HOUSE / "scenarios" / "proving" / "upsert_before_offset_commit.yaml"
SEARCHED = HOUSE / "scenarios" / "sinks" / "opensearch_away_retried.yaml"
RESTARTED = sorted(
    {name for fault in FAULTS if Means.RESTART_COMPONENTS in fault.needs for name in needs(fault)}
    & {kind.about.name for kind in COMPONENTS if isinstance(kind, AsContainer)}
)


@pytest.fixture(scope="module")
def engine() -> Iterator[docker.DockerClient]:
    """An engine with the images, or the tests are not run."""
    client = container_engine.found()
    yield client
    client.close()


@pytest.fixture(scope="module")
def boxes(engine: docker.DockerClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainersStack]:
    with ContainersStack(tmp_path_factory.mktemp("logs")) as stack:
        yield stack


@pytest.mark.parametrize("path", CHOSEN, ids=lambda path: path.stem)
def test_a_scenario_says_the_same_on_both_stacks(
    path: Path, stack: Stack, boxes: ContainersStack, tmp_path: Path
) -> None:
    scenario = load(path)
    assert (stack.name, boxes.name) == ("processes", "containers")
    processes = run(scenario, stack, reports=tmp_path / "processes")
    containers = run(scenario, boxes, reports=tmp_path / "containers")
    assert said(containers.verdict) == said(processes.verdict)
    assert containers.verdict.as_expected, containers.verdict.reasons


def said(verdict: Verdict) -> dict[str, Any]:
    """What must not depend on the stack."""
    return {
        "verdict": verdict.word,
        "as expected": verdict.as_expected,
        "kinds": sorted(verdict.kinds()),
        "steps": [(step.name, step.point, step.injected) for step in verdict.steps],
        "self-tests": dict(verdict.self_tests),
    }


@pytest.mark.parametrize("name", RESTARTED)
def test_a_server_that_was_killed_comes_back_on_its_data_at_its_addresses(name: str, boxes: ContainersStack) -> None:
    boxes.ensure([name])
    server = boxes.servers[name]
    assert isinstance(server, Restartable) and isinstance(server, Boxed)
    kept = server.container
    own = boxes.provide(f"away-{name}", {name: {}})
    try:
        before = dict(server.describe()), dict(own.parts[name].placeholders)
        server.stop()
        assert kept is not None
        assert {Path(each.command()[0]).name for each in kept.processes() if each.command()} <= {"sh", "sleep"}
        boxes.health()
        server.start()
        assert server.container is kept
        assert (dict(server.describe()), dict(own.parts[name].placeholders)) == before
        boxes.release(boxes.provide(f"after-{name}", {name: {}}))
    finally:
        boxes.release(own)


def test_an_address_waits_for_a_container_that_is_off_the_network(boxes: ContainersStack) -> None:
    def started(name: str) -> Any:
        image = standalone_containers.IMAGE.name
        return boxes.engine.start(engines.Wanted(name=name, image=image, command=["sleep", "60"], run="away"))

    def address(container: Any) -> str:
        container.reload()
        (here,) = container.attrs["NetworkSettings"]["Networks"].values()
        return str(here["IPAddress"])

    try:
        away = started("away-1")
        before = boxes.engine.cut(away)
        others = {address(started(f"away-{number}")) for number in (2, 3)}
        boxes.engine.join(away, "away-1", before)
        assert address(away) == before
        assert before not in others
    finally:
        boxes.engine.forget("away")


@pytest.mark.parametrize("name", RESTARTED)
def test_a_server_that_dies_by_itself_is_missed(name: str, engine: docker.DockerClient, tmp_path: Path) -> None:
    before = left(engine)
    with ContainersStack(tmp_path, needs=[name]) as stack:
        server = stack.servers[name]
        assert isinstance(server, Boxed) and server.container is not None
        # The child of the process that keeps the container.
        server.container.processes()[1].send(signal.SIGKILL)

        def missed() -> bool:
            with contextlib.suppress(StackError):
                stack.health()
                return False
            return True

        until("the stack to say so", missed, within_s=60)
        with pytest.raises(StackError, match=rf"{name} ended with signal 9; its log ends:"):
            stack.health()
    assert left(engine) == before


def onceproof(folder: Path, **environment: str) -> tuple[int, str]:
    """Exit code of a run on containers, and everything it said."""
    argv = [sys.executable, "-m", "harness", "run", str(ONE), "--stack", "containers", "--reports", str(folder / "r")]
    done = subprocess.run(
        argv, cwd=HOUSE, env={**os.environ, **environment}, capture_output=True, text=True, timeout=500, check=False
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("listens", [False, True], ids=["absent", "down"])
def test_without_an_engine_there_is_one_message(listens: bool, tmp_path: Path) -> None:
    path = tmp_path / "engine.sock"
    if listens:
        # A daemon that died leaves its socket behind.
        with socket.socket(socket.AF_UNIX) as left_behind:
            left_behind.bind(str(path))
    code, words = onceproof(tmp_path, DOCKER_HOST=f"unix://{path}")
    assert code == 4
    assert "no engine answers" in words and "DOCKER_HOST" in words and "--stack processes" in words


def test_an_engine_that_is_gone_with_its_folder_has_nothing_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/gone/engine.sock")
    assert engines.main("s-0") == 0
    (tmp_path / "gone").mkdir()
    assert engines.main("s-0") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("asked to remove what s-0 left: the engine does not answer")


def test_an_engine_of_another_machine_is_refused_before_anything_is_asked_of_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        code, words = onceproof(tmp_path, DOCKER_HOST=f"tcp://127.0.0.1:{server.getsockname()[1]}")
    assert code == 4
    assert "the engine has to be on this machine" in words


def test_an_image_that_cannot_be_had_is_named_with_its_cures(engine: docker.DockerClient, tmp_path: Path) -> None:
    before = left(engine)
    code, words = onceproof(tmp_path, ONCEPROOF_IMAGE_KAFKA="127.0.0.1:1/onceproof/none:0")
    assert code == 4
    assert "the image 127.0.0.1:1/onceproof/none:0 is not here" in words
    assert "ONCEPROOF_IMAGE_KAFKA" in words and "docker/build.py" in words
    assert left(engine) == before


def test_a_taken_port_is_named(engine: docker.DockerClient, tmp_path: Path) -> None:
    before = left(engine)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, words = onceproof(tmp_path, ONCEPROOF_KAFKA_PORT=str(port))
    assert code == 4
    assert f"port {port} was asked for Kafka and cannot be had" in words
    assert left(engine) == before


def test_a_full_disk_in_a_container_is_named(
    engine: docker.DockerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = left(engine)
    start = engines.Engine.start

    def small(self: engines.Engine, wanted: engines.Wanted) -> Any:
        full = {"/tmp/kafka-data": "size=16k"} if wanted.name == "kafka" else {}
        return start(self, replace(wanted, tmpfs=full))

    monkeypatch.setattr(engines.Engine, "start", small)
    with pytest.raises(StackError, match="No space left on device") as failed:
        ContainersStack(tmp_path, needs=["kafka"]).up()
    assert "kafka ended with status" in str(failed.value)
    assert left(engine) == before


Started = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    """Starts `onceproof run` on containers; its process is gone afterwards."""
    children: list[subprocess.Popen[bytes]] = []

    def start(*options: str, path: Path = ONE) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-m", "harness", "run", str(path), "--stack", "containers", *options]
        argv += ["--reports", str(tmp_path / "r")]
        with (tmp_path / "said").open("wb") as out:
            child = subprocess.Popen(argv, cwd=HOUSE, stdout=out, stderr=out, start_new_session=True)
        children.append(child)
        return child

    yield start
    for child in children:
        child.kill()
        child.wait(60)


@pytest.mark.parametrize(
    ("moment", "how"),
    [
        pytest.param(moment, how, id=f"{moment}-{how.name}")
        for moment in ("network ", KAFKA, "-opensearch", "-worker-1", DRIVER)
        for how in (signal.SIGKILL, signal.SIGTERM)
    ],
)
def test_nothing_is_left_of_a_run_that_is_ended(
    engine: docker.DockerClient, boxes: ContainersStack, started: Started, moment: str, how: signal.Signals
) -> None:
    before = left(engine)
    path = SEARCHED if moment == "-opensearch" else ONE
    child = started(path=path)

    def there() -> bool | Waiting:
        assert child.poll() is None
        new = [name for name in left(engine) if name not in before]
        return any(moment in name for name in new) or Waiting(str(new))

    until(f"something called {moment}", there, within_s=300, every_s=0.01)
    child.send_signal(how)
    assert child.wait(PROCESS_S) == (-how if how is signal.SIGKILL else Interrupted.exit_code)
    until(
        "everything of the run to be gone",
        lambda: left(engine) == before or Waiting(str(sorted(set(left(engine)) - set(before)))),
        within_s=GONE_WITHIN_S,
    )


def test_a_driver_is_cut_off_from_the_network_and_goes_on(boxes: ContainersStack, tmp_path: Path) -> None:
    scenario = load(HOUSE / "scenarios" / "containers" / "upsert_driver_disconnected.yaml")
    verdict = run(scenario, boxes, reports=tmp_path).verdict
    assert verdict.as_expected, verdict.reasons
    (step,) = verdict.steps
    assert step.injected
    assert list(step.evidence.signalled.values()) == ["cut off for 3 s"]


def test_the_jvms_of_a_driver_in_a_container_use_their_archives(boxes: ContainersStack) -> None:
    made = class_archives.train(boxes)
    own = boxes.provide("archived", {"kafka": {"partitions": 2}})
    try:
        log = {kind: f"-Xlog:class+load:file={own.folder}/{kind}.classes" for kind in IN_CONTAINERS}
        program = training.training_app(
            own,
            conf={"spark.executor.extraJavaOptions": f"{' '.join(fitted(made / 'executor.jsa'))} {log[Kind.EXECUTOR]}"},
            env={"SPARK_SUBMIT_OPTS": f"{' '.join(fitted(made / 'driver.jsa'))} {log[Kind.DRIVER]}"},
        )
        training.feed(own)
        started = boxes.launch(own, program, number=1, log=boxes.logs / "archived.log")
        until("the driver to end", lambda: started.poll() is not None, within_s=training.DRIVER_S)
        assert started.poll() == 0, started.log.read_text()
        for kind in IN_CONTAINERS:
            classes = (own.folder / f"{kind}.classes").read_text()
            assert classes.count("shared objects file (top)") > 2000, kind
    finally:
        boxes.release(own)
