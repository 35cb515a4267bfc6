"""In which portions the records are sent: unequal ones, or those that make a run's batches once more."""

from __future__ import annotations

import threading
from dataclasses import replace
from time import monotonic
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import HarnessError
from harness.history import History
from harness.run.feed import PORTIONS, SPREAD, Alone, Feeder, Patience, alone, enough, portions, portions_of
from harness.run.progress.reported import Progress
from harness.scenario import Fault, Impact, Pipeline, Step, Trigger
from harness.snapshot import Batch
from harness.wait import until
from harness.workloads.transactions import Transactions

STEP = Step(
    when=Trigger(kind="point", value="sink-committed", place="sink-committed"),
    do=Fault(kind="kill driver", impact=Impact.DRIVER_KILLED),
)
TOTALS = st.integers(1, 400) | st.integers(1, 10_000_000)


@given(total=TOTALS, seed=st.integers())
def test_no_two_portions_are_equal_and_their_sum_is_exact(total: int, seed: int) -> None:
    sizes = portions(total, seed)
    assert sum(sizes) == total and len(set(sizes)) == len(sizes) <= PORTIONS
    assert min(sizes) >= 1
    assert len(sizes) == PORTIONS or total < sum(range(1, PORTIONS + 1))


@given(total=st.integers(300, 10_000_000), seed=st.integers())
def test_portions_stay_near_the_average(total: int, seed: int) -> None:
    average, slack = total / PORTIONS, PORTIONS
    for size in portions(total, seed):
        # Weights are scaled to the sum, which is near six.
        assert (1 - 1.2 * SPREAD) * average - slack <= size <= (1 + 1.2 * SPREAD) * average + slack


def test_the_seed_draws_them() -> None:
    drawn = {portions(600, seed) for seed in range(20)}
    assert len(drawn) > 15 and portions(600, 7) == portions(600, 7)
    assert portions(0, 1) == ()


RANGES = st.dictionaries(st.integers(0, 2), st.tuples(st.integers(0, 99), st.integers(0, 50)), max_size=3)


@given(batches=st.lists(RANGES, max_size=8), left=st.integers(0, 100))
def test_a_runs_batches_are_sent_once_more(batches: list[dict[int, tuple[int, int]]], left: int) -> None:
    told = [
        Batch(batch=n, ranges={p: (start, start + many) for p, (start, many) in ranges.items()}, committed=True)
        for n, ranges in enumerate(batches)
    ]
    total = left + sum(many for ranges in batches for _, many in ranges.values())
    sizes = portions_of(told, total)
    if total == left:
        assert sizes == (), "nothing to go by"
    else:
        assert sum(sizes) == total and min(sizes) > 0
        taken = [sum(many for _, many in ranges.values()) for ranges in batches]
        assert sizes == (*filter(None, taken), *([left] if left else []))


class Sender:
    """Stands in for the producer: what it was asked to send."""

    def __init__(self, total: int) -> None:
        self.total, self.calls = total, list[int]()

    @property
    def sent(self) -> int:
        return sum(self.calls)

    acknowledged = sent

    @property
    def done(self) -> bool:
        return self.sent >= self.total

    def send(self, many: int) -> int:
        self.calls.append(min(many, self.total - self.sent))
        return self.calls[-1]


def fed(total: int, **more: Any) -> tuple[Sender, list[int]]:
    """A feeder whose pipeline plans, at each reading, all that was sent; what had been sent at each reading."""
    sender: Any = Sender(total)
    readings: list[int] = []

    def planned() -> dict[int, int]:
        readings.append(sender.sent)
        return {0: sender.sent}

    feeder = Feeder(sender, Progress("checkpoint", planned, planned, lambda: None), History(None), **more)
    feeder.start()
    until("all to be sent", lambda: feeder.done, within_s=60.0)
    feeder.stop()
    feeder.healthy()
    return sender, readings


def test_a_rate_is_not_made_up_for_while_nobody_was_there_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10_000_000))
    waited = 0

    class Reader(Sender):
        """Is there three minutes after the first record was sent."""

        def send(self, many: int) -> int:
            nonlocal waited
            waited = 180_000
            return super().send(many)

    monkeypatch.setattr("harness.run.feed.monotonic", lambda: (next(clock) * 10 + waited) / 1000)
    sender: Any = Reader(300)
    feeder = Feeder(sender, Progress("checkpoint", dict, dict, lambda: None), History(None), rate_per_s=100.0)
    feeder.start()
    until("all to be sent", lambda: feeder.done, within_s=60.0)
    feeder.stop()
    feeder.healthy()
    assert sender.calls[0] <= 3
    assert max(sender.calls) <= 101, "a second's worth"


def test_portions_follow_the_seed() -> None:
    sender, _ = fed(600, rate_per_s=None, sizes=portions(600, 3))
    assert tuple(sender.calls) == portions(600, 3)


def test_what_the_sizes_leave_is_sent_by_itself_when_all_before_it_is_planned() -> None:
    """Each reading comes when all that was sent before it is planned."""
    sender, readings = fed(61, rate_per_s=None, sizes=portions(60, 3))
    assert tuple(sender.calls) == (*portions(60, 3), 1)
    assert readings[-1] == 60


@given(total=TOTALS, seed=st.integers(), steps=st.lists(st.none() | st.integers(0, 30), max_size=4))
def test_there_is_a_portion_for_each_batch_that_a_step_names(total: int, seed: int, steps: list[int | None]) -> None:
    schedule = [replace(STEP, when=replace(STEP.when, batch=batch)) for batch in steps]
    sizes = portions(total, seed, enough(schedule))
    assert sum(sizes) == total and len(set(sizes)) == len(sizes)
    highest = max((batch for batch in steps if batch is not None), default=0)
    assert len(sizes) > highest or total < sum(range(1, highest + 4))


def waits(kind: str, *, finished: bool = False, most: int = 60, sizes: tuple[int, ...] = (10, 20, 30)) -> list[int]:
    """How many portions are out each time that the feeder waits for a pipeline whose batches take `most` records."""
    sender: Any = Sender(sum(sizes))
    readings: list[int] = []
    found = 0

    def planned() -> dict[int, int]:
        nonlocal found
        # It is read once before a portion is sent.
        if readings.count(len(sender.calls)) > 2:
            found = min(sender.sent, found + most)
        readings.append(len(sender.calls))
        return {0: found}

    progress = Progress(kind, planned, planned, lambda: None)
    feeder = Feeder(sender, progress, History(None), rate_per_s=None, sizes=sizes, finished=lambda: finished)
    feeder.start()
    until("all to be sent", lambda: feeder.done, within_s=60.0)
    feeder.stop()
    return [out for out in range(1, len(sizes)) if readings.count(out) > 2]


@pytest.mark.parametrize("most", [60, 7])
def test_each_portion_waits_for_a_batch_until_the_schedule_is_done(most: int) -> None:
    assert waits("checkpoint", most=most) == [1, 2]


def test_afterwards_and_without_a_checkpoint_one_more_is_on_its_way() -> None:
    assert waits("checkpoint", finished=True) == [2]
    assert waits("group") == [2]


@pytest.mark.parametrize(("begins_s", "patience_s", "sent"), [(60.0, 1.0, [10]), (0.0, 0.2, [10, 20, 30])])
def test_a_driver_that_is_not_there_yet_is_waited_for_longer(
    begins_s: float, patience_s: float, sent: list[int]
) -> None:
    sender: Any = Sender(60)
    nothing = Progress("checkpoint", dict, dict, lambda: None)
    asked: list[int] = []

    def at_work() -> bool:
        asked.append(len(sender.calls))
        return False

    feeder = Feeder(
        sender, nothing, History(None), rate_per_s=None, sizes=(10, 20, 30), at_work=at_work,
        patience=Patience(patience_s, begins_s),
    )  # fmt: skip
    feeder.start()
    # The first portion is waited for as long as two of its own patience.
    until("it to have waited", lambda: feeder.done or len(asked) > 40, within_s=60.0)
    feeder.stop()
    assert sender.calls == sent


def test_at_a_rate_the_last_record_waits_until_all_before_it_are_planned() -> None:
    sender: Any = Sender(30)
    late, asked = threading.Event(), threading.Event()

    def planned() -> dict[int, int]:
        asked.set()
        return {0: sender.sent if late.is_set() else 5}

    progress = Progress("checkpoint", planned, planned, lambda: None)
    feeder = Feeder(sender, progress, History(None), rate_per_s=1e6, patience=Patience(60.0), alone=Alone(1))
    feeder.start()
    assert asked.wait(60.0) and sender.sent == 29
    late.set()
    until("the last record to be sent", lambda: feeder.done, within_s=60.0)
    feeder.stop()
    assert sender.calls[-1] == 1


def test_where_the_log_is_late_the_last_record_waits_until_the_newest_attempt_has_logged_nothing_for_so_long() -> None:
    sender: Any = Sender(30)
    times = list[float]()

    def planned() -> dict[int, int]:
        times.append(monotonic())
        # The second attempt logs its first batch again.
        return {0: 1 if len(times) < 8 else 2}

    progress = Progress("checkpoint", planned, planned, lambda: None)
    quiet_s = 0.3
    feeder = Feeder(
        sender, progress, History(None), rate_per_s=1e6, patience=Patience(60.0), alone=Alone(1, quiet_s),
        finished=lambda: len(times) >= 4, at_work=lambda: len(times) >= 12,
    )  # fmt: skip
    feeder.start()
    until("the last record to be sent", lambda: feeder.done, within_s=60.0)
    ended = monotonic()
    feeder.stop()
    assert sender.calls[-1] == 1
    assert ended - times[10] > quiet_s, "until then no attempt was at work"


@pytest.mark.parametrize(("progress", "quiet_s"), [("async", 30.0), ("checkpoint", 0.0)])
def test_the_interval_of_a_late_log_is_what_the_last_record_waits_for(progress: str, quiet_s: float) -> None:
    pipeline = Pipeline(entry="it.py", progress=progress, interval_s=30.0)
    closing = Transactions(10, keys=2, skew=0.0, seed=1, last_after_s=3600.0)
    assert alone(closing, pipeline) == Alone(1, quiet_s)
    assert alone(Transactions(10, keys=2, skew=0.0, seed=1), pipeline) == Alone(0, quiet_s)


def test_a_workload_that_gives_fewer_records_than_it_said_is_an_error() -> None:
    class Short(Sender):
        def send(self, many: int) -> int:
            return super().send(many) if not self.calls else 0

    sender: Any = Short(60)
    feeder = Feeder(sender, Progress("group", dict, dict, lambda: None), History(None), rate_per_s=None)
    sender.calls = [10]
    feeder.start()
    until("it to fail", lambda: feeder.failure is not None, within_s=60.0)
    feeder.stop()
    with pytest.raises(HarnessError, match="said that it has 60 records, and gave 10"):
        feeder.healthy()


def test_exact_sizes_are_sent_as_they_stand_whatever_the_rate() -> None:
    sender, readings = fed(100, rate_per_s=1.0, exact=(10, 60), patience=Patience(1.0))
    assert sender.calls == [10, 60, 30]
    assert readings[:4] == [0, 10, 10, 70], "before and after each"


def test_an_exact_portion_waits_until_all_before_it_is_planned() -> None:
    sender: Any = Sender(100)
    asked = threading.Event()

    def planned() -> dict[int, int]:
        asked.set()
        return {0: 9}

    progress = Progress("checkpoint", planned, planned, lambda: None)
    feeder = Feeder(sender, progress, History(None), rate_per_s=None, exact=(10, 90), patience=Patience(60.0))
    feeder.start()
    assert asked.wait(60.0)
    feeder.stop()
    assert sender.calls == [10]
