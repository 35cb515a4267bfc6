"""The bench of aimed kills: what its histories come to, with misses that are planted."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import aimed
from harness.history import (
    AttemptEnded,
    BatchPlanned,
    CheckpointOp,
    Event,
    FaultInjected,
    FaultMissed,
    History,
    SinkCommitted,
)
from harness.operation import Op, Side
from harness.scenario import Evidence, StepOutcome
from tests import histories
from tests import sample_runs as sample

HOUSE = Path(__file__).parents[1]


def batch(attempt: int, number: int) -> Event:
    return SinkCommitted(query="checkpoint", batch=number, attempt=attempt)


def planned(attempt: int, number: int) -> Event:
    return BatchPlanned(query="checkpoint", batch=number, attempt=attempt)


def tried(attempt: int, number: int) -> StepOutcome:
    """What became of a try that struck."""
    listing = {"offsets": tuple(range(number + 1)), "commits": tuple(range(number))}
    evidence = Evidence(signalled={"driver": "SIGKILL"}, checkpoint_after=listing)
    return StepOutcome(
        name="kill driver", point="sink-committed", batch=number, injected=True, attempt=attempt, evidence=evidence
    )


def step(attempt: int, number: int) -> Event:
    return FaultInjected(outcome=tried(attempt, number))


def unhurt(number: int) -> StepOutcome:
    """What became of a try that came too late."""
    return replace(tried(0, number), injected=False, evidence=replace(tried(0, number).evidence, signalled={}))


def died(attempt: int) -> Event:
    return AttemptEnded(attempt=attempt, status=-9, scheduled=True)


def injected(attempt: int, number: int) -> list[Event]:
    """A kill in its window, and the attempt that comes after it."""
    return [
        batch(attempt, number),
        died(attempt),
        step(attempt, number),
        planned(attempt + 1, number),
        batch(attempt + 1, number),
    ]


RIGHT = injected(1, 2)


def late(number: int) -> list[Event]:
    """A try that came too late: the driver went on."""
    return [FaultMissed(outcome=unhurt(number))]


def given_up(number: int) -> list[Event]:
    return [FaultInjected(outcome=unhurt(number))]


COMMITTED = Evidence(signalled={"driver": "SIGKILL"}, checkpoint_after={"commits": (0, 1, 2)})
PLANTED: list[tuple[list[Event], str]] = [
    (RIGHT, "right"),
    (given_up(2), "missed"),
    # Spark had committed it by the time that the driver was dead.
    ([FaultInjected(outcome=replace(tried(1, 2), evidence=COMMITTED)), batch(2, 2)], "elsewhere"),
    # The next attempt begins with another one: this one was in the log, or the one before it was not.
    ([step(1, 2), batch(2, 3)], "elsewhere"),
    ([step(1, 2), batch(2, 1), batch(2, 2)], "elsewhere"),
    # Nobody came after it who could show where it struck; a batch that is only planned shows nothing.
    ([step(1, 2)], "elsewhere"),
    ([step(1, 2), planned(2, 2)], "elsewhere"),
    # An attempt that is not the next one is no witness.
    ([step(1, 2), batch(1, 2), batch(3, 2)], "elsewhere"),
    # What was begun before the kill is none either.
    ([batch(2, 2), step(1, 2)], "elsewhere"),
    # The schedule itself says that it struck nothing, and yet somebody was killed.
    ([FaultInjected(outcome=replace(tried(1, 2), injected=False)), batch(2, 2)], "elsewhere"),
    # A miss that the history does not tell.
    ([event for event in RIGHT if not isinstance(event, FaultInjected)][2:], "unsaid"),
]


@pytest.fixture
def history(tmp_path: Path) -> Callable[[Sequence[Event]], Path]:
    def write(events: Sequence[Event]) -> Path:
        return written(tmp_path / "history.jsonl", events)

    return write


def written(path: Path, events: Sequence[Event]) -> Path:
    """A history of these events, a second apart."""
    lines = histories.lines(*((float(at_s), event) for at_s, event in enumerate(events)))
    path.write_text(sample.written(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize(("events", "word"), PLANTED)
def test_each_try_is_told_as_it_went(
    history: Callable[[Sequence[Event]], Path], events: list[Event], word: str
) -> None:
    assert list(aimed.outcomes(history(events), steps=1)) == [word]


def test_a_miss_and_the_try_after_it_are_two(history: Callable[[Sequence[Event]], Path]) -> None:
    events = [*late(2), *late(3), *injected(1, 4), *injected(2, 6)]
    assert Counter(aimed.outcomes(history(events), steps=2)) == {"missed": 2, "right": 2}


def test_a_driver_that_died_of_no_step_is_not_silent(history: Callable[[Sequence[Event]], Path]) -> None:
    events = [*injected(1, 2), died(2), *injected(3, 5)]
    assert Counter(aimed.outcomes(history(events), steps=2)) == {"right": 2, "unsaid": 1}


def test_a_history_that_is_torn_tells_less_and_says_so(history: Callable[[Sequence[Event]], Path]) -> None:
    path = history([*injected(1, 2), *injected(2, 5), *injected(3, 8)])
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(lines[:7]) + '\n{"n": 7, "at_s": 7.0, "what": "fau', encoding="utf-8")
    counts = Counter(aimed.outcomes(path, steps=3))
    # The second driver's death is there, its step is not.
    assert counts == {"right": 1, "unsaid": 3}


@given(st.lists(st.sampled_from(["right", "missed", "unsaid", "elsewhere"]), max_size=12))
def test_whatever_is_planted_is_counted(tmp_path_factory: pytest.TempPathFactory, words: list[str]) -> None:
    """Each step of a run went one of these ways."""
    events: list[Event] = []
    attempt = 1
    for place, word in enumerate(words):
        number = 2 + 3 * place
        if word == "right":
            events += injected(attempt, number)
        if word == "elsewhere":
            events += [died(attempt), step(attempt, number), batch(attempt + 1, number + 1)]
        if word == "missed":
            events += given_up(number)
        attempt += word in ("right", "elsewhere")
    path = written(tmp_path_factory.getbasetemp() / "aimed.jsonl", events)
    assert Counter(aimed.outcomes(path, steps=len(words))) == Counter(words)


def test_the_scenario_has_as_many_steps_as_are_counted(tmp_path: Path) -> None:
    shutil.copytree(HOUSE / "pipelines" / "transactions", tmp_path / "pipelines" / "transactions")
    made = aimed.scenario(tmp_path)
    assert len(made.schedule) == aimed.EACH
    assert len({step.when.batch for step in made.schedule}) == aimed.EACH


def operation(attempt: int, number: int) -> Event:
    return CheckpointOp(
        attempt=attempt, process="driver", query="checkpoint", path=f"commits/{number}", op=Op.RENAME, when=Side.BEFORE
    )


def test_the_time_to_a_death_is_from_the_last_operation_before_it(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    lines = histories.lines(
        (1.0, operation(1, 1)), (2.0, operation(1, 2)), (2.06, died(1)), (5.0, operation(2, 2)), (5.25, died(2))
    )
    path.write_text(sample.written(lines), encoding="utf-8")
    assert [round(each) for each in aimed.ended_ms(path)] == [60, 250]


def test_the_events_are_those_that_a_history_keeps(tmp_path: Path) -> None:
    """Planted events are told as a run writes them."""
    history = History(tmp_path / "history.jsonl")
    for event in RIGHT:
        history.write(event)
    history.close()
    assert list(aimed.outcomes(tmp_path / "history.jsonl", steps=1)) == ["right"]
