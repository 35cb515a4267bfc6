"""Before the drain takes the frontier's word, the newest life of the driver must have shown that it is its own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from harness.run import drain
from harness.run.drain import Drain


def live(*, awake: bool, kind: str = "checkpoint", deaths: tuple[int, ...] = (-9,)) -> Any:
    return SimpleNamespace(
        observer=SimpleNamespace(awake=lambda: awake),
        frontier=SimpleNamespace(kind=kind),
        supervisor=SimpleNamespace(deaths=[SimpleNamespace(status=status) for status in deaths]),
    )


def test_a_life_that_has_shown_nothing_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Drain(live(awake=False))
    assert not waiting._at_work()
    assert not waiting._at_work()
    monkeypatch.setattr(drain, "SILENT_S", 0.0)
    assert Drain(live(awake=False))._at_work(), "one with nothing to do is not waited for without end"


@pytest.mark.parametrize(
    "at_work", [live(awake=True), live(awake=False, kind="query"), live(awake=False, deaths=(-9, 0))]
)
def test_who_has_shown_it_or_cannot_is_not_waited_for(at_work: Any) -> None:
    assert Drain(at_work)._at_work()


def emptied(monkeypatch: pytest.MonkeyPatch, *answers: str) -> list[str]:
    """The reasons that a wait for the server leaves; the server gives `answers`, the last one for ever."""
    left = list(answers)
    monkeypatch.setattr(drain, "busy", lambda sink, dsns: left.pop(0) if len(left) > 1 else left[0])
    monkeypatch.setattr(drain, "SERVER_IDLE_S", 0.3)
    asked: Any = SimpleNamespace(scenario=SimpleNamespace(sinks=["t"]), lease=SimpleNamespace(dsns={}))
    waiting = Drain(asked)
    waiting._server_idle()
    return waiting._reasons


def test_what_the_server_still_does_for_a_dead_writer_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert emptied(monkeypatch, "insert", "insert", "") == []


def test_a_server_that_does_not_come_to_rest_leaves_it_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert emptied(monkeypatch, "insert") == ["unknown: the sink's server was still at work after 0.3 s: insert"]
