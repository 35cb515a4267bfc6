"""When a pipeline is called stalled, by its own commit interval; and how long a sink must stay unchanged."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.run.progress.quiet_period import LATE_QUIET_S, UNSHOWN_S, late_quiet_s, quiet_s
from harness.run.progress.stall_detector import StallDetector
from harness.snapshot import Stalled


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.at_s = 100.0

    def __call__(self) -> float:
        return self.at_s


def detected(
    *steps: tuple[float, int],
    outstanding: bool = True,
    faults: tuple[int, ...] = (),
    dead: tuple[int, ...] = (),
    **more: Any,
) -> Stalled | None:
    """What is said after readings at `steps`: (seconds since the one before, records committed); no driver was alive at
    the `dead` ones."""
    clock = Clock()
    stalls = StallDetector(now=clock, **more)
    for number, (passed_s, committed) in enumerate(steps):
        clock.at_s += passed_s
        done = faults[number] if number < len(faults) else 0
        stalls.observe(committed=committed, outstanding=outstanding, faults=done, alive=number not in dead)
    return stalls.stalled()


def test_a_minute_without_a_commit_is_a_stall() -> None:
    words = "nothing was committed in the last 61 s; the longest time without a commit before was 5 s"
    stall = Stalled(kind="idle", idle_s=61.0, longest_gap_s=5.0, words=words)
    assert detected((5, 10), (2, 20), (61, 20)) == stall
    assert detected((5, 10), (2, 20), (60, 20)) is None


def test_a_pipeline_with_slow_batches_is_given_three_of_them() -> None:
    assert detected((50, 10), (40, 20), (150, 20)) is None
    assert detected((50, 10), (40, 20), (151, 20)) is not None


def test_the_slowest_query_of_the_program_counts() -> None:
    assert detected((5, 10), (150, 10), longest_s=lambda: 50.0) is None
    stall = detected((5, 10), (151, 10), longest_s=lambda: 50.0)
    assert stall is not None and stall.longest_gap_s == 50.0


def test_a_declared_interval_counts_three_times_too() -> None:
    assert detected((5, 10), (360, 10), interval_s=120.0) is None
    stall = detected((5, 10), (361, 10), interval_s=120.0)
    assert stall is not None and (stall.interval_s, stall.idle_s) == (120.0, 361.0)


def test_time_counts_from_the_last_fault() -> None:
    assert detected((5, 10), (50, 10), (59, 10), faults=(0, 1, 1)) is None
    assert detected((5, 10), (50, 10), (61, 10), faults=(0, 1, 1)) is not None


def test_the_wait_before_a_restart_does_not_count_and_forgives_nothing() -> None:
    assert detected((5, 10), (100, 10), (60, 10), dead=(1,)) is None
    assert detected((5, 10), (30, 10), (100, 10), (31, 10), dead=(2,)) is not None


def test_a_pipeline_with_nothing_to_do_does_not_stall() -> None:
    assert detected((5, 10), (300, 10), outstanding=False) is None


def test_one_that_begins_again_moves() -> None:
    assert detected((5, 10), (50, 4), (59, 4)) is None


def test_it_says_nothing_before_the_first_commit_is_due() -> None:
    assert detected((60, 0)) is None
    assert detected((61, 0)) is not None


def test_a_program_that_is_restarted_no_more_says_so() -> None:
    clock = Clock()
    stalls = StallDetector(now=clock, interval_s=10.0)
    clock.at_s += 3
    gave_up = stalls.gave_up("the driver died 6 times", well=False)
    told = ("gave up", "the driver died 6 times", 3.0, 10.0)
    assert (gave_up.kind, gave_up.words, gave_up.idle_s, gave_up.interval_s) == told
    assert stalls.gave_up("it succeeded", well=True).kind == "ended well"


@pytest.mark.parametrize(
    ("shown", "quiet", "settle"),
    [
        ({"gap_s": 0.0}, 0.4, 8.0),
        ({"gap_s": 0.5}, 0.75, 8.0),
        ({"gap_s": 10.0}, 15.0, 20.0),
        ({"gap_s": 0.5, "unshown": True}, 30.0, 30.0),
        ({"gap_s": 0.5, "unshown": True, "interval_s": 10.0}, 15.0, 15.0),
        ({"gap_s": 0.5, "interval_s": 120.0}, 0.75, 180.0),
    ],
)
def test_how_long_a_sink_must_stay_unchanged(shown: dict[str, Any], quiet: float, settle: float) -> None:
    assert (quiet_s(**shown), late_quiet_s(**shown)) == (quiet, settle)


@given(gap_s=st.floats(0, 1e4), interval_s=st.none() | st.floats(0.1, 1e4), unshown=st.booleans())
def test_every_query_has_its_turn(gap_s: float, interval_s: float | None, unshown: bool) -> None:
    quiet = quiet_s(gap_s=gap_s, interval_s=interval_s, unshown=unshown)
    settle = late_quiet_s(gap_s=gap_s, interval_s=interval_s, unshown=unshown)
    assert settle >= max(quiet, LATE_QUIET_S, interval_s or 0.0) and quiet >= gap_s
    assert not unshown or quiet >= (interval_s or UNSHOWN_S)
