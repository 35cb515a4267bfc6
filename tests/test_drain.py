"""Before the drain takes the frontier's word, the newest life of the driver must have shown that it is its own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from harness.run import drain
from harness.run.drain import Drain
from harness.scenario import Restart
from harness.wait import Deadline


def live(
    *, awake: bool, kind: str = "checkpoint", deaths: tuple[int, ...] = (-9,), gave_up: str = "", hurt: int = 1
) -> Any:
    return SimpleNamespace(
        awake=lambda *, whole: awake,
        observer=SimpleNamespace(life=2),
        start_s=1.0,
        scenario=SimpleNamespace(restart=Restart()),
        frontier=SimpleNamespace(kind=kind),
        supervisor=SimpleNamespace(
            deaths=[SimpleNamespace(number=number, status=status) for number, status in enumerate(deaths, 1)],
            gave_up=gave_up,
            last_hurt=hurt,
        ),
    )


def test_a_life_that_has_shown_nothing_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Drain(live(awake=False))
    assert not waiting._at_work()
    assert not waiting._at_work()
    monkeypatch.setattr(drain, "SILENT_S", 0.0)
    waiting._live.start_s = 0.0
    assert not waiting._at_work(), "its time had begun before"
    waiting._live.observer.life = 3
    assert waiting._at_work(), "one with nothing to do is not waited for without end"


@pytest.mark.parametrize(
    "silent",
    [live(awake=False, deaths=(0,)), live(awake=False, deaths=(-9, 0), hurt=2), live(awake=False, kind="group")],
)
def test_a_clean_end_that_the_schedule_asked_for_proves_nothing(silent: Any) -> None:
    assert not Drain(silent)._at_work()


def test_a_life_may_take_as_long_as_starts_take_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "SILENT_S", 0.0)
    slow = live(awake=False)
    slow.start_s = 10.0
    assert not Drain(slow)._at_work()


def test_each_life_has_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "SILENT_S", 0.0)
    waiting = Drain(live(awake=False))
    waiting._live.start_s = 0.0
    assert waiting._at_work()
    monkeypatch.setattr(drain, "SILENT_S", 15.0)
    waiting._live.observer.life = 3
    assert not waiting._at_work()


@pytest.mark.parametrize(
    "at_work",
    [
        live(awake=True),
        live(awake=False, deaths=()),
        live(awake=False, deaths=(-9, 0)),
        live(awake=False, gave_up="died too often"),
    ],
)
def test_who_has_shown_it_or_cannot_is_not_waited_for(at_work: Any) -> None:
    assert Drain(at_work)._at_work()


def emptied(monkeypatch: pytest.MonkeyPatch, *answers: str) -> list[str]:
    """The reasons that a wait for the server leaves; the server gives `answers`, the last one for ever."""
    left = list(answers)
    monkeypatch.setattr(drain, "busy", lambda sink, dsns, shared: left.pop(0) if len(left) > 1 else left[0])
    monkeypatch.setattr(drain, "SERVER_IDLE_S", 0.3)
    asked: Any = SimpleNamespace(scenario=SimpleNamespace(sinks=["t"]), lease=SimpleNamespace(dsns={}, shared=False))
    waiting = Drain(asked)
    waiting._server_idle()
    return waiting._reasons


def test_what_the_server_still_does_for_a_dead_writer_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert emptied(monkeypatch, "insert", "insert", "") == []


def test_a_server_that_does_not_come_to_rest_leaves_it_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert emptied(monkeypatch, "insert") == ["unknown: the sink's server was still at work after 0.3 s: insert"]


def finishing(
    *, committed: int, gave_up: str = "", stalled: str = "nothing came"
) -> tuple[bool, list[str], str | None]:
    """What a drain without time left says of 10 records, `committed` of them behind the frontier."""
    asked = live(awake=False, gave_up=gave_up)
    asked.deadline, asked.healthy = Deadline(0.0), lambda: None
    asked.frontier.committed = lambda: {0: committed}
    asked.pace = SimpleNamespace(stalled=lambda: stalled)
    asked.look = lambda committed, outstanding: None
    waiting = Drain(asked)
    return waiting._finish({0: 10}), waiting._reasons, waiting._stalled


def test_a_drain_looks_once_even_without_time() -> None:
    assert finishing(committed=10, gave_up="died too often") == (True, [], None)


def test_a_life_that_has_not_shown_itself_is_neither_drained_nor_stalled() -> None:
    reason = "not drained: the newest life of the driver had not shown yet where it goes on from"
    assert finishing(committed=10) == (False, [reason], None)


def test_records_that_nobody_commits_are_counted_and_said_to_stall() -> None:
    reason = "not drained: 6 of 10 records were not behind the committed frontier 0 s after the warm-up"
    assert finishing(committed=4) == (False, [reason], "nothing came")
    assert finishing(committed=4, stalled="") == (False, [reason], None)
    assert finishing(committed=4, gave_up="died too often") == (False, [reason], "died too often")
