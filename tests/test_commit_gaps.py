"""How often queries commit, as the history tells it, and what of that is still in flight."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.history import (
    AttemptStarted,
    BatchCommitted,
    BatchPlanned,
    Event,
    Line,
    Phase,
    SinkCommitted,
    SourceBegun,
)
from harness.run.progress.commit_gaps import Rhythm, unplanned
from harness.snapshot import QueryState


def heard(*events: tuple[Any, ...]) -> Rhythm:
    """A rhythm that heard of launches `(attempt, at_s)` and of their commits `(query, at_s)`."""
    rhythm, attempt = Rhythm(), 0
    for n, (who, at_s) in enumerate(events):
        if isinstance(who, int):
            attempt = who
            event: Event = AttemptStarted(attempt=attempt)
        else:
            event = BatchCommitted(query=who, batch=0, attempt=attempt)
        rhythm.heard(Line(n, at_s, event))
    return rhythm


def test_the_longest_gap_is_that_of_one_query_in_one_attempt() -> None:
    rhythm = heard((1, 0.5), ("a", 1.0), ("b", 2.0), ("a", 4.0), ("b", 12.0), (2, 98.0), ("a", 99.0), ("a", 100.0))
    assert rhythm.gap_s() == 10.0
    assert heard((1, 1.0), ("a", 1.0)).gap_s() == 0.0 == heard((1, 1.0), ("a", 1.0)).steady_s()


def test_a_start_is_a_time_without_a_commit_and_no_pace() -> None:
    rhythm = heard((1, 0.0), ("a", 80.0), ("a", 83.0), ("a", 86.0), (2, 90.0), ("a", 95.0))
    assert (rhythm.gap_s(), rhythm.steady_s()) == (80.0, 3.0)


def test_the_first_gap_of_an_attempt_is_its_start_and_tells_no_pace() -> None:
    rhythm = heard((1, 0.5), ("a", 1.0), ("a", 4.0), ("a", 4.5), (2, 19.0), ("a", 20.0), ("a", 22.0), ("a", 22.7))
    assert (rhythm.gap_s(), round(rhythm.steady_s(), 3)) == (3.0, 0.7)
    assert heard((1, 0.5), ("a", 1.0), ("a", 4.0)).steady_s() == 3.0, "where there is no other it must do"
    assert heard((1, 0.5), ("a", 1.0), ("a", 4.0), ("a", 4.5), ("b", 1.0), ("b", 3.0)).steady_s() == 2.0


def test_a_query_has_shown_its_pace_with_its_third_commit() -> None:
    assert not heard((1, 0.5), ("a", 1.0), ("a", 3.0), (2, 8.0), ("a", 9.0), ("a", 19.0)).shown("a")
    assert heard((1, 0.5), ("a", 1.0), ("a", 3.0), ("a", 13.0)).shown("a")
    assert not heard((1, 0.5), ("a", 1.0), ("a", 3.0), ("a", 13.0)).shown("b")


def test_a_commit_is_of_the_attempt_and_the_query_that_its_event_names() -> None:
    rhythm = heard((2, 0.0))
    for batch, at_s in enumerate((1.0, 3.0, 7.0)):
        rhythm.heard(Line(batch, at_s, BatchCommitted(query="x/c", batch=batch, attempt=1)))
    assert rhythm.shown("x/c") and not rhythm.shown("c")


def test_what_is_no_commit_is_no_gap() -> None:
    rhythm = Rhythm()
    for at_s, kind in ((1.0, BatchPlanned), (9.0, SinkCommitted), (30.0, SourceBegun)):
        rhythm.heard(Line(0, at_s, kind(query="a", batch=0, attempt=1)))
    rhythm.heard(Line(0, 31.0, Phase(name="catching up")))
    assert rhythm.gap_s() == 0.0


def test_a_pipeline_without_a_checkpoint_commits_when_its_position_moves() -> None:
    rhythm = Rhythm()
    for position, at_s in ((0, 1.0), (10, 2.0), (10, 3.0), (20, 4.0), (20, 9.0), (30, 9.5)):
        rhythm.position_read(position, 1, at_s)
    assert (rhythm.gap_s(), rhythm.steady_s()) == (5.5, 5.5)


def state(name: str, planned: int, committed: int, *, ours: bool = False) -> QueryState:
    return QueryState(
        checkpoint=name, ours=ours, offsets=tuple(range(planned + 1)), commits=tuple(range(committed + 1))
    )


@pytest.mark.parametrize("silent", [False, True])
def test_a_batch_in_flight_is_one_that_is_planned_and_not_committed(silent: bool) -> None:
    rhythm = heard((1, 0.5), ("a", 1.0), ("b", 1.0))
    states = [state("a", 3, 2, ours=True), state("b", 0, -1), state("a", 3, 3), state("c", -1, -1)]
    assert rhythm.in_flight(states, silent=silent) == {"a": 3, "b": 0}


def test_a_dead_attempts_batch_is_in_flight_while_the_present_one_may_come_to_it() -> None:
    rhythm = heard((1, 0.5), ("a", 1.0), ("b", 1.0), (2, 2.0))
    states = [state("a", 3, 2, ours=True), state("b", 1, 0)]
    assert rhythm.in_flight(states, silent=False) == {"b": 1}
    assert rhythm.in_flight(states, silent=True) == {}


def test_only_a_query_behind_another_one_has_to_show_its_pace() -> None:
    rhythm = heard((1, 0.5), ("shown", 1.0), ("shown", 2.0), ("shown", 3.0), ("once", 1.0))
    assert not rhythm.unshown([state("shown", 3, 3), state("ours", 0, 0, ours=True), state("none", -1, -1)])
    assert rhythm.unshown([state("shown", 3, 3), state("once", 0, 0)])


def test_a_query_that_has_planned_nothing_is_seen_on_the_disk(tmp_path: Path) -> None:
    assert not unplanned(tmp_path)
    for name in ("offsets", "commits", "state/0/0"):
        (tmp_path / "checkpoints" / "second" / name).mkdir(parents=True)
    (tmp_path / "other" / "offsets").mkdir(parents=True)
    assert unplanned(tmp_path)
    (tmp_path / "checkpoints" / "second" / "offsets" / ".0.abc.tmp").touch()
    assert unplanned(tmp_path)
    (tmp_path / "checkpoints" / "second" / "offsets" / "0").touch()
    assert not unplanned(tmp_path)


def test_folders_that_lie_too_deep_are_not_looked_through(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*"abcdefgh")
    for name in ("offsets", "commits"):
        (deep / name).mkdir(parents=True)
    assert not unplanned(tmp_path)
