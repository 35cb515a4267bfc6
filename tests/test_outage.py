"""A server that is killed: what says whether anybody can have noticed."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from harness.components.eventhubs.fault.rotate_key import KIND as ROTATE_KEY
from harness.context import Reached
from harness.errors import StackError
from harness.faults import fault
from harness.faults.base import Injection, killing, outage
from harness.run.schedule import evidence
from harness.scenario import Fault, Impact, Step, Trigger
from harness.snapshot import QueryState

WHEN = Trigger(kind="point", value="batch-planned", place="batch-planned")
STEP = Step(when=WHEN, do=Fault(kind="kill postgres", impact=Impact.NONE, options={"for_s": 0.01}))


class Process:
    """One of the pipeline's."""

    name = "driver 1"

    def __init__(self, *, connected: bool) -> None:
        self.connected = connected

    def reaches(self, port: int) -> bool:
        return self.connected


@pytest.fixture(autouse=True)
def undisturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is stopped."""
    monkeypatch.setattr(outage, "signals", SimpleNamespace(freeze=lambda each: [], thaw=lambda each: None))
    monkeypatch.setattr(killing, "DIES_WITHIN_S", 0.3)


def world(*, connected: bool, died: bool = False, dies_at_check: int = 1, status: int = 1) -> Any:
    """A run with one process and a server that comes back."""
    server = SimpleNamespace(port=1, stop=lambda: None, start=lambda: None)
    driver, checks = SimpleNamespace(number=1), iter(range(1, 10_000))
    return SimpleNamespace(
        stack=SimpleNamespace(servers={"postgres": server}, executors=lambda own: []),
        own={},
        supervisor=SimpleNamespace(
            driver=driver,
            ended=lambda number: died and next(checks) >= dies_at_check,
            ending=lambda number, within_s: status,
        ),
        counted=(),
        snapshot=lambda reached: None,
        back=lambda reached, component: [],
        release=lambda reached: None,
        only_checkpoint="",
        observer=SimpleNamespace(states=lambda: ()),
        stop=threading.Event(),
    )


@pytest.mark.parametrize("away", [False, True], ids=["it answers", "it is in the server that is gone"])
def test_the_writer_that_the_trigger_holds_works_on_without_the_server(
    monkeypatch: pytest.MonkeyPatch, away: bool
) -> None:
    monkeypatch.setattr(outage, "everyone", lambda run: [Process(connected=True)])
    run, seen = world(connected=True), []

    def release(reached: Reached) -> None:
        seen.append("released")
        if away:
            raise StackError("asked Postgres; saw no answer")

    server = SimpleNamespace(port=1, stop=lambda: seen.append("stopped"), start=lambda: seen.append("started"))
    run.stack.servers["postgres"], run.release = server, release
    run.snapshot = lambda reached: seen.append("snapshot")
    assert outage.KillServer("postgres").inject(run, STEP, Reached(batch=3)).signalled
    assert seen == ["snapshot", "stopped", "released", "started"]


@pytest.mark.parametrize(
    ("connected", "died", "struck"), [(True, False, True), (False, True, True), (False, False, False)]
)
def test_nobody_noticed_if_nobody_was_connected_and_no_driver_died(
    monkeypatch: pytest.MonkeyPatch, connected: bool, died: bool, struck: bool
) -> None:
    monkeypatch.setattr(outage, "everyone", lambda run: [Process(connected=connected)])
    reached = Reached(batch=3)
    done = outage.KillServer("postgres").inject(world(connected=connected, died=died), STEP, reached)
    assert (not done.why) is struck
    assert done.signalled


def test_rows_that_are_gone_once_it_is_back_were_struck_though_no_client_was_connected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outage, "everyone", lambda run: [])
    run, asked = world(connected=False), []

    def back(reached: Reached, component: str) -> list[str]:
        asked.append((reached.batch, component))
        return ["20 of the 20 rows that payments held were gone once it was back"]

    run.back = back
    done = outage.KillServer("postgres").inject(run, STEP, Reached(batch=3))
    assert done.why == ""
    assert "20 of the 20 rows" in done.note
    assert evidence.missed("", False, done) == "the crash point was over before anything could be struck"
    assert evidence.missed("", True, done) == ""
    assert asked == [(3, "postgres")]


def test_a_program_that_ended_well_did_not_die_of_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "everyone", lambda run: [Process(connected=False)])
    for status, struck in ((0, False), (1, True), (-9, True)):
        run = world(connected=False, died=True, status=status)
        assert (not outage.KillServer("postgres").inject(run, STEP, Reached(batch=3)).why) is struck, status


def test_what_each_query_has_committed_while_the_server_is_away_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "everyone", lambda run: [Process(connected=True)])
    run = world(connected=True)
    run.observer = SimpleNamespace(
        states=lambda: (QueryState(checkpoint="a", commits=(2, 3)), QueryState(checkpoint="b"))
    )
    done = outage.KillServer("postgres").inject(run, STEP, Reached(batch=3))
    assert done.committed_meanwhile == {"a": 3, "b": -1}


def test_a_checkpoint_that_is_away_with_its_server_shows_nothing_and_the_server_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outage, "everyone", lambda run: [Process(connected=True)])

    def refused() -> tuple[QueryState, ...]:
        raise StackError("asked the server; connection refused")

    run = world(connected=True)
    run.observer = SimpleNamespace(states=refused)
    done = outage.KillServer("postgres").inject(run, STEP, Reached(batch=3))
    assert done.signalled and not done.committed_meanwhile


def test_a_server_comes_back_whatever_fails_while_it_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "everyone", lambda run: [])
    run, began = world(connected=True), []
    run.stack.servers["postgres"].start = lambda: began.append("started")
    run.observer = SimpleNamespace(states=lambda: dict[str, int]()["no such"])
    with pytest.raises(KeyError):
        outage.KillServer("postgres").inject(run, STEP, Reached(batch=3))
    assert began == ["started"]


@pytest.mark.parametrize(("died", "struck"), [(True, True), (False, False)])
def test_of_a_server_that_keeps_the_checkpoint_alone_only_a_death_counts(
    monkeypatch: pytest.MonkeyPatch, died: bool, struck: bool
) -> None:
    monkeypatch.setattr(outage, "everyone", lambda run: [Process(connected=True)])
    run = world(connected=True, died=died)
    run.only_checkpoint = "postgres"
    done = outage.KillServer("postgres").inject(run, STEP, Reached(batch=3))
    assert (not done.why) is struck


def test_a_driver_whose_query_has_failed_is_given_the_time_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "everyone", lambda run: [Process(connected=False)])
    run = world(connected=False, died=True, dies_at_check=4)
    assert not outage.KillServer("postgres").inject(run, STEP, Reached(batch=3)).why


@pytest.mark.parametrize(
    ("done", "in_flight", "stands", "struck"),
    [
        (Injection(signalled={"postgres": "gone"}, why="nobody"), "5 records", True, False),
        (Injection(signalled={"postgres": "gone"}, why="nobody"), "", True, True),
        (Injection(signalled={"postgres": "gone"}, why="nobody"), "5 records", False, True),
        (Injection(signalled={"postgres": "gone"}, why=""), "5 records", True, True),
        (Injection(signalled={}, why="nobody"), "5 records", True, True),
    ],
)
def test_what_nobody_noticed_happened_at_its_crash_point(
    done: Injection, in_flight: str, stands: bool, struck: bool
) -> None:
    why = evidence.missed(in_flight, True, done)
    assert evidence.struck(done, why, stands) is struck


@pytest.mark.parametrize(("rotates", "back", "heals"), [(True, False, False), (True, True, True), (False, False, True)])
def test_a_key_is_gone_for_good_only_where_it_can_be_another_and_does_not_come_back(
    rotates: bool, back: bool, heals: bool
) -> None:
    own = {"rotate": lambda back=False: None, "refused": lambda: False} if rotates else {}
    server: Any = SimpleNamespace(port=1, **own)
    assert ROTATE_KEY.heals(rotated(back_after=8.0 if back else None).do, server) is heals


def rotated(*, back_after: float | None = None) -> Step:
    """A step whose key is another for so long."""
    return Step(when=WHEN, do=fault("rotate key", **({} if back_after is None else {"back_after": back_after})))


@pytest.mark.parametrize(
    ("connected", "died", "refused", "struck"),
    [
        (True, False, False, True),
        (False, True, False, True),
        (False, False, True, True),
        (False, False, False, False),
    ],
)
def test_another_key_strikes_where_a_connection_is_lost_a_driver_dies_or_a_login_is_refused(
    monkeypatch: pytest.MonkeyPatch, connected: bool, died: bool, refused: bool, struck: bool
) -> None:
    monkeypatch.setattr(outage, "everyone", lambda run: [Process(connected=connected)])
    run = world(connected=connected, died=died)
    run.stack.servers["eventhubs"] = SimpleNamespace(
        port=1, stop=lambda: None, start=lambda: None, rotate=lambda back=False: None, refused=lambda: refused
    )
    done = ROTATE_KEY.inject(run, rotated(back_after=0.1), Reached(batch=3))
    assert (not done.why) is struck


def test_whoever_lives_through_another_key_does_nothing_again_as_with_any_broker_that_was_away() -> None:
    assert rotated().do.impact is fault("kill kafka", for_s=3.0).impact is Impact.SERVER_AWAY
