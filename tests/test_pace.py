"""When a pipeline is called stalled: by its own pace, so that one slow batch is not."""

from __future__ import annotations

from harness.run.pace import Pace


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.at_s = 100.0

    def __call__(self) -> float:
        return self.at_s


def looked(*steps: tuple[float, int], outstanding: bool = True, faults: tuple[int, ...] = ()) -> str:
    """What is said after looks at `steps`: (seconds since the one before, records committed)."""
    clock = Clock()
    pace = Pace(clock)
    for number, (passed_s, committed) in enumerate(steps):
        clock.at_s += passed_s
        done = faults[number] if number < len(faults) else 0
        pace.look(committed=committed, outstanding=outstanding, faults=done)
    return pace.stalled()


def test_a_minute_without_a_commit_is_a_stall() -> None:
    words = "nothing was committed in the last 61 s; the longest stretch before took 5 s"
    assert looked((5, 10), (2, 20), (61, 20)) == words
    assert looked((5, 10), (2, 20), (60, 20)) == ""


def test_a_pipeline_with_slow_batches_is_given_three_of_them() -> None:
    assert looked((50, 10), (40, 20), (150, 20)) == ""
    assert looked((50, 10), (40, 20), (151, 20)) != ""


def test_time_counts_from_the_last_fault() -> None:
    assert looked((5, 10), (50, 10), (59, 10), faults=(0, 1, 1)) == ""
    assert looked((5, 10), (50, 10), (61, 10), faults=(0, 1, 1)) != ""


def test_a_pipeline_with_nothing_to_do_does_not_stall() -> None:
    assert looked((5, 10), (300, 10), outstanding=False) == ""


def test_one_that_begins_again_moves() -> None:
    assert looked((5, 10), (50, 4), (59, 4)) == ""


def test_it_says_nothing_before_the_first_commit_is_due() -> None:
    assert looked((60, 0)) == ""
    assert looked((61, 0)) != ""
