"""Feeds the pipeline: hands the records to the producer, in portions, at a rate or as the pipeline plans batches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from time import monotonic

from harness.checkpoint import count
from harness.errors import HarnessError
from harness.history import History, Sent
from harness.run.progress.reported import Progress
from harness.scenario import Pipeline, Step
from harness.scenario.progress import ASYNC
from harness.snapshot import Batch
from harness.sources.producer import Producer
from harness.workloads.base import ClosesWindows

PORTIONS = 6
SPARE = 2
"""Portions after the highest batch that a step names: where it is missed there, it waits for a later one."""
SPREAD = 0.3
"""How far a portion may be from the average, as a part of it."""
PATIENCE_S = 20.0
TICK_S = 0.05
CHUNK = 5000
BURST_S = 1.0
"""How much of a pause is caught up at a rate: while a receiver is away nothing is sent, and all of it at once would be
no rate."""


@dataclass(frozen=True)
class Patience:
    """How long a pipeline that shows no progress is waited for with each portion. `begins_s` is how much longer at the
    most while its driver is not at work yet."""

    each_s: float = PATIENCE_S
    begins_s: float = 0.0


@dataclass(frozen=True)
class Alone:
    """The last `records` of a workload, which are sent by themselves. `quiet_s`: for how long the newest attempt has to
    have logged nothing before. Where Spark logs late, it logs a batch that comes so long after its last log: the end of
    the input would be in no log otherwise."""

    records: int = 0
    quiet_s: float = 0.0


def alone(workload: object, pipeline: Pipeline) -> Alone:
    """Return what of the workload is sent last, to this pipeline."""
    late_s = pipeline.interval_s or 0.0 if pipeline.progress == ASYNC else 0.0
    return Alone(workload.apart if isinstance(workload, ClosesWindows) else 0, late_s)


def enough(schedule: Iterable[Step]) -> int:
    """Return how many portions give each step its batch, where a batch takes one of them."""
    return max([PORTIONS, *(step.when.batch + 1 + SPARE for step in schedule if step.when.batch is not None)])


def portions(total: int, seed: int, most: int = PORTIONS) -> tuple[int, ...]:
    """Return the sizes in which `total` records are sent, drawn from the seed. No two are equal, so that a batch lost
    and another one doubled do not cancel by accident. Too few records for `most` such sizes make fewer."""
    many = next((k for k in range(most, 0, -1) if k * (k + 1) // 2 <= total), 0)
    if many < 2:
        return (total,) * many
    draw = Random(f"portions {seed}")
    apart = 2 * SPREAD / many
    weights = [1 - SPREAD + apart * (place + draw.uniform(0.25, 0.75)) for place in range(many)]
    sizes: list[int] = []
    for weight in weights:
        sizes.append(max(int(total * weight / sum(weights)), sizes[-1] + 1 if sizes else 1))
    for place in range(many):
        # Of very few records, the smallest sizes that differ may be too many already.
        lowest = sizes[place - 1] + 1 if place else 1
        sizes[place] -= min(max(0, sum(sizes) - total), sizes[place] - lowest)
    sizes[-1] += total - sum(sizes)
    draw.shuffle(sizes)
    return tuple(sizes)


def portions_of(batches: Iterable[Batch], total: int) -> tuple[int, ...]:
    """Return the sizes that make a run's batches again: the records of each batch that took any, in order, and what is
    left of `total`. Empty if there are none to go by."""
    took = [sum(end - start for start, end in batch.ranges.values()) for batch in batches]
    sizes = [size for size in took if size > 0]
    left = total - sum(sizes)
    return (*sizes, *([left] if sizes and left > 0 else ()))


class Feeder:
    """Sends the input in a separate thread.

    Without a rate it sends a portion for each batch that is planned, until the schedule has `finished`. So there are as
    many batches as portions: the batch that a step names comes, and a fault at it finds the next records on their way.
    Afterwards it stays one portion ahead, and so it does for a pipeline that manages its own offsets, since its plans
    cannot be seen. With `exact` sizes it sends each of them when all before it is planned, whatever the rate. The
    records beyond the sizes wait for that too, and so do those that are sent `alone`.
    """

    def __init__(
        self,
        producer: Producer,
        progress: Progress,
        history: History,
        *,
        rate_per_s: float | None,
        sizes: Sequence[int] = (),
        finished: Callable[[], bool] = lambda: False,
        exact: Sequence[int] = (),
        patience: Patience = Patience(),
        at_work: Callable[[], bool] = lambda: True,
        alone: Alone = Alone(),
    ) -> None:
        self._producer = producer
        self._progress = progress
        self._history = history
        self._rate = rate_per_s
        self._sizes = tuple(sizes)
        self._finished = finished
        self._exact = tuple(exact)
        self._patience = patience
        self._at_work = at_work
        self._alone = alone
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._guarded, name="feeder", daemon=True)
        self.failure: BaseException | None = None

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self) -> None:
        """Send no more; returns when the thread is gone."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(60.0)  # one portion on its way may take that long

    @property
    def done(self) -> bool:
        """True once every record was sent and answered, one way or another."""
        return self._producer.done

    def healthy(self) -> None:
        """Raise HarnessError if sending failed."""
        if isinstance(self.failure, HarnessError):
            raise self.failure
        if self.failure is not None:
            raise HarnessError(f"the producer failed: {self.failure!r}")

    def _guarded(self) -> None:
        try:
            send = self._at_rate if self._rate and not self._exact else self._portions
            send()
        except BaseException as failure:
            self.failure = failure

    def _send(self, many: int) -> None:
        left = many
        while left > 0 and not self._producer.done and not self._stop.is_set():
            sent = self._producer.send(min(left, CHUNK))
            if not sent and not self._stop.is_set():
                given, declared = self._producer.sent, self._producer.total
                raise HarnessError(f"the workload said that it has {declared} records, and gave {given}")
            left -= sent
            self._history.write(Sent(records=self._producer.sent, total=self._producer.total))

    def _portions(self) -> None:
        for portion in self._exact or self._sizes:
            if self._producer.done or self._stop.is_set():
                return
            before = self._planned()
            self._send(portion)
            self._wait(lambda last=portion, before=before: self._goes_on(last, before))  # type: ignore[misc]
        if self._exact or self._sizes:
            self._wait_for_all()
        self._send(self._producer.total - self._producer.sent)

    def _wait_for_all(self) -> None:
        """Before the records that are left are sent."""
        if self._producer.done:
            return
        if self._alone.quiet_s:
            self._wait(self._quiet(), more_s=2 * self._alone.quiet_s)
        else:
            self._wait(lambda: self._planned() >= self._producer.acknowledged)

    def _quiet(self) -> Callable[[], bool]:
        """Return whether what is planned has stayed as it is, under an attempt that goes on after the schedule."""
        seen, since = self._planned(), monotonic()

        def quiet() -> bool:
            nonlocal seen, since
            planned = self._planned()
            if planned != seen or not self._finished() or not self._at_work():
                seen, since = planned, monotonic()
            return monotonic() - since > self._alone.quiet_s

        return quiet

    def _wait(self, reached: Callable[[], bool], *, more_s: float = 0.0) -> None:
        end = monotonic() + self._patience.each_s + more_s
        last = end + self._patience.begins_s
        while not reached() and monotonic() < end and not self._stop.wait(TICK_S):
            if not self._at_work():
                end = min(last, monotonic() + self._patience.each_s)

    def _goes_on(self, portion: int, before: int) -> bool:
        """Return whether the next portion is due, after the last one and what was planned `before` it."""
        planned, producer = self._planned(), self._producer
        # A record that was refused is in no batch.
        if planned >= producer.acknowledged:
            return True
        if self._exact:
            return False
        if self._progress.kind != "checkpoint" or self._finished():
            return planned >= producer.sent - portion
        return planned > before

    def _planned(self) -> int:
        return count(self._progress.planned())

    def _at_rate(self) -> None:
        rate, last, owed = self._rate or 1.0, monotonic(), 1.0
        many = self._producer.total - self._alone.records
        while self._producer.sent < many and not self._stop.wait(TICK_S):
            now = monotonic()
            owed, last = owed + rate * min(now - last, BURST_S), now
            due = min(many - self._producer.sent, int(owed))
            owed -= due
            self._send(due)
        self._wait_for_all()
        self._send(self._producer.total - self._producer.sent)
