"""Waiting: each wait ends, says what it last saw, and is counted where somebody asks what a run waited for."""

from __future__ import annotations

import threading

import pytest

from harness.errors import WaitError
from harness.wait import Waiting, pause, tallied, until


def test_a_wait_that_ends_without_says_what_it_last_saw() -> None:
    with pytest.raises(WaitError, match=r"waited 0\.1 s for the broker; last saw no answer\. Is it up"):
        until("the broker", lambda: Waiting("no answer"), within_s=0.1, hint="Is it up")


def test_what_was_waited_for_is_counted_once_by_its_name_without_numbers() -> None:
    def inner() -> bool:
        pause(0.02)
        return until("something inside", lambda: True, within_s=1.0)

    with tallied() as waited:
        for number in (1, 2):
            until(f"attempt {number} to end", inner, within_s=1.0)
        with pytest.raises(WaitError):
            until("nothing", lambda: False, within_s=0.05)
        pause(0.01)
    pause(0.01)
    assert set(waited) == {"attempt N to end", "nothing", "the next check"}
    assert waited["attempt N to end"] > 0.0
    assert waited["nothing"] > 0.0


def test_another_threads_waits_are_not_counted() -> None:
    with tallied() as waited:
        thread = threading.Thread(target=lambda: until("something else", lambda: True, within_s=1.0))
        thread.start()
        thread.join()
        with tallied() as within:
            until("this", lambda: True, within_s=1.0)
        until("that", lambda: True, within_s=1.0)
    assert set(within) == {"this"}
    assert set(waited) == {"that"}
