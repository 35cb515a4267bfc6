"""The faults on HDFS that take no process: whom they are booked to, and what is undone however they end."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from harness.components.hdfs.fault import enter_safe_mode, lose_blocks, lose_node
from harness.context import Reached
from harness.errors import StackError
from harness.faults.base import Injection, Proof, killing
from harness.run.schedule import evidence
from harness.scenario import CrashPoint, Fault, Impact, Step, Trigger

WHEN = Trigger(kind="point", value="sink-committed", place="sink-committed")


class Hdfs:
    """A file system that notes what is done to it."""

    def __init__(self, *, blocks: int = 3) -> None:
        self.left, self.safe = blocks, False

    def blocks(self, run_id: str) -> int:
        assert run_id == "t1"
        return self.left

    def lose_blocks(self) -> None:
        self.left = 0

    def safe_mode(self, *, on: bool) -> None:
        self.safe = on


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is stopped, and nobody waits for long."""
    for fault in (lose_blocks, enter_safe_mode):
        monkeypatch.setattr(fault, "signals", SimpleNamespace(freeze=lambda each: []))
        monkeypatch.setattr(fault, "everyone", lambda run: [])
    monkeypatch.setattr(killing, "DIES_WITHIN_S", 0.3)


def world(server: Hdfs, *, dies_at_check: int, status: int = 1) -> Any:
    """A run whose driver is seen dead at that check, and at later ones, with that exit status; never at 0."""
    checks = iter(range(1, 10_000))
    return SimpleNamespace(
        stack=SimpleNamespace(servers={"hdfs": server}),
        supervisor=SimpleNamespace(
            driver=SimpleNamespace(number=1),
            ended=lambda number: 0 < dies_at_check <= next(checks),
            ending=lambda number, within_s: status,
        ),
        snapshot=lambda reached: None,
        release=lambda reached: None,
        own=SimpleNamespace(run_id="t1", parts={}),
        stop=threading.Event(),
    )


def step(kind: str, **options: Any) -> Step:
    return Step(when=WHEN, do=Fault(kind=kind, impact=Impact.NONE, options=options))


@pytest.mark.parametrize(("dies_at_check", "struck"), [(1, True), (3, True), (0, False)])
def test_lost_blocks_do_not_come_back_and_strike_a_driver_that_dies(dies_at_check: int, struck: bool) -> None:
    run = world(Hdfs(), dies_at_check=dies_at_check)
    done = lose_blocks.KIND.inject(run, step("lose blocks"), Reached(batch=3))
    assert (not done.why, done.healed) == (struck, False)


@pytest.mark.parametrize(
    ("point", "parts", "struck"),
    [
        (CrashPoint.BATCH_PLANNED, {"hdfs.input": None}, True),
        (CrashPoint.BATCH_PLANNED, {"hdfs": None}, False),
        (CrashPoint.SINK_COMMITTED, {"hdfs.input": None}, False),
    ],
)
def test_a_driver_that_lives_feels_it_if_it_has_just_planned_what_is_gone(
    point: CrashPoint, parts: dict[str, None], struck: bool
) -> None:
    run = world(Hdfs(), dies_at_check=0)
    run.own.parts = parts
    planned = replace(step("lose blocks"), when=replace(WHEN, point=point))
    assert (lose_blocks.KIND.inject(run, planned, Reached(batch=3)).why == "") is struck


def test_a_program_that_ended_well_did_not_die_of_safe_mode() -> None:
    for status, struck in ((0, False), (1, True)):
        run = world(Hdfs(), dies_at_check=1, status=status)
        done = enter_safe_mode.KIND.inject(run, step("enter safe mode", for_s=0.01), Reached(batch=3))
        assert (not done.why) is struck, status


@pytest.mark.parametrize("fault", [lose_blocks, enter_safe_mode])
def test_a_request_that_was_held_goes_on_into_what_was_done_to_hdfs(fault: Any) -> None:
    server, seen = Hdfs(), list[tuple[int, bool]]()
    run = world(server, dies_at_check=1)
    run.release = lambda reached: seen.append((server.left, server.safe))
    fault.KIND.inject(run, step("any", for_s=0.01), Reached(batch=3))
    assert seen == [(0, False) if fault is lose_blocks else (3, True)]


def test_with_its_node_a_driver_dies_before_the_blocks_go(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    killed = Injection(signalled={"driver": "gone after SIGKILL"}, driver_status=-9, proof=Proof.AFTER)
    server = Hdfs()
    run = world(server, dies_at_check=1)
    run.snapshot = lambda reached: done.append("snapshot")

    def lose() -> None:
        done.append("lost")

    def kill(*_: Any, executors: bool) -> Injection:
        assert executors
        done.append("killed")
        return killed

    monkeypatch.setattr(server, "lose_blocks", lose)
    monkeypatch.setattr(killing, "kill_driver", kill)
    injection = lose_node.KIND.inject(run, step("lose node"), Reached(batch=3))
    assert done == ["killed", "snapshot", "lost"]
    assert (injection.healed, injection.snapshot_taken, injection.driver_status, injection.proof) == (
        False, True, -9, Proof.AFTER,
    )  # fmt: skip
    assert set(injection.signalled) == {"driver", "datanode"}
    killed = replace(killed, lived=True)
    done.clear()
    assert lose_node.KIND.inject(run, step("lose node"), Reached(batch=3)).healed
    assert done == ["killed"], "what lives on keeps its blocks"


@pytest.mark.parametrize("fault", [lose_blocks, lose_node])
def test_where_no_block_of_the_run_lies_no_process_is_struck(monkeypatch: pytest.MonkeyPatch, fault: Any) -> None:
    def nothing(*_: Any, **__: Any) -> None:
        raise AssertionError("nobody is touched")

    monkeypatch.setattr(killing, "kill_driver", nothing)
    server = Hdfs(blocks=0)
    monkeypatch.setattr(server, "lose_blocks", nothing)
    done = fault.KIND.inject(world(server, dies_at_check=0), step(fault.KIND.about.name), Reached(batch=3))
    assert not done.signalled
    assert evidence.missed("100 records", True, done)
    assert done.note == "no block of this run lay there"


@pytest.mark.parametrize(("dies_at_check", "struck"), [(1, True), (3, True), (0, False)])
def test_a_driver_that_dies_of_safe_mode_needs_some_time(dies_at_check: int, struck: bool) -> None:
    server = Hdfs()
    done = enter_safe_mode.KIND.inject(
        world(server, dies_at_check=dies_at_check), step("enter safe mode", for_s=0.01), Reached(batch=3)
    )
    assert (not done.why, server.safe) == (struck, False)


def test_safe_mode_is_left_however_its_time_ends() -> None:
    server = Hdfs()
    run = world(server, dies_at_check=0)

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    run.stop = SimpleNamespace(wait=interrupted)
    with pytest.raises(KeyboardInterrupt):
        enter_safe_mode.KIND.inject(run, step("enter safe mode", for_s=0.01), Reached(batch=3))
    assert not server.safe


def test_safe_mode_is_left_though_nobody_says_that_it_was_entered(monkeypatch: pytest.MonkeyPatch) -> None:
    server, going_on = Hdfs(), list[bool]()
    enter = server.safe_mode

    def unsure(*, on: bool) -> None:
        enter(on=on)
        if on:
            raise StackError("asked the NameNode for safe mode on; saw Operational")

    monkeypatch.setattr(server, "safe_mode", unsure)
    run = world(server, dies_at_check=0)
    run.release = lambda reached: going_on.append(server.safe)
    with pytest.raises(StackError, match="safe mode on"):
        enter_safe_mode.KIND.inject(run, step("enter safe mode", for_s=0.01), Reached(batch=3))
    assert not server.safe
    assert going_on == [True], "nobody stands still for it"
