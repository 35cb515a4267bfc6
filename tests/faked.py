"""Kills that strike nothing, made to look as if they did: trigger, crash point and evidence of each step are overruled,
so that only what the snapshots show is left to tell.

    with nothing(): ...         every process is spared
    with idle(): ...            the driver is killed once all that was sent is committed
    with empty(): ...           it is killed in a batch without a record
    filtered_out(scenario)      the struck batches put nothing into the sinks that are judged

A verdict of *held* under any of them would be a false one. `BROKEN` has the programs that may be violated all the same.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from time import monotonic
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from harness.context import Reached, RunContext
from harness.faults import fault, kill_executor
from harness.faults.base import Injection, killing
from harness.hosts import signals
from harness.run import feed
from harness.run.schedule import Schedule, evidence
from harness.run.snapshots import Snapshots
from harness.scenario import CrashPoint, Scenario, Sink, Step, Word
from harness.sinks.reading import mark
from harness.stack import Driver
from harness.triggers import trigger
from harness.triggers.base import wait_until

QUIET_S = 1.5
"""How long the sinks of an idle pipeline have not changed."""
FIRST = {
    "transactions": "id < 40",
    "access_logs": "event_time < timestamp '2026-07-30 14:01:00'",
    "replay": "month = 1 and day = 1",
}
"""What only the first records pass, which no step of the proving suite strikes."""


@dataclass(frozen=True, kw_only=True)
class Broken:
    """A program that goes wrong without a fault at a crash point: `restarted` says that it takes a restart, `words` are
    those that a run of it may come to besides untested, `error` how the reason of an error begins, and `why`."""

    restarted: bool
    words: tuple[Word, ...]
    why: str
    error: str = ""


UNWELL = "the pipeline does not work without faults either"
BROKEN = {
    "checkpoint_missing": Broken(
        restarted=True, words=(Word.VIOLATED,), why="each attempt reads the topic from the beginning"
    ),
    "checkpoint_temporary": Broken(
        restarted=True,
        words=(Word.VIOLATED,),
        why="each attempt has a checkpoint of its own, and reads from the beginning",
    ),
    "checkpoint_shared": Broken(
        restarted=False,
        words=(Word.VIOLATED, Word.INCONCLUSIVE, Word.ERROR),
        why="Spark stops one of its two queries, and which rows that costs differs from run to run",
        error=UNWELL,
    ),
}
"""By the name of the scenario's file."""


@contextmanager
def nothing() -> Iterator[None]:
    """Nobody is signalled, and every victim is said to be gone. Whom the trigger has frozen goes on."""

    def spared(processes: Sequence[Any]) -> dict[str, bool]:
        return {process.name: True for process in processes}

    def ended(run: RunContext, driver: Driver | None, done: Injection) -> Injection:
        signalled = {**done.signalled, f"driver {driver.number if driver else 0}": "SIGKILL"}
        return replace(done, signalled=signalled, driver_status=-signal.SIGKILL)

    quiet: dict[str, Any] = {**vars(signals), "kill": spared, "freeze": lambda processes: []}
    with ExitStack() as stack:
        stack.enter_context(patch.object(killing, "signals", SimpleNamespace(**quiet)))
        stack.enter_context(patch.object(killing, "ending", ended))
        _believed(stack)
        yield


@contextmanager
def idle() -> Iterator[None]:
    """Each step waits until everything is committed and the sinks stand still, and kills then."""

    def wait(self: Schedule, step: Step, later: int) -> Reached:
        run, seen = self._run, [("", monotonic())]

        def rests() -> bool:
            # Who saves offsets early calls done what the sink has yet to get.
            sinks = run.snapshots._parts.sinks if isinstance(run.snapshots, Snapshots) else ()
            now = str([mark(sink, run.own.parts) for sink in sinks])
            seen[0] = seen[0] if seen[0][0] == now else (now, monotonic())
            return monotonic() - seen[0][1] > QUIET_S

        wait_until(
            run, step.when, lambda: bool(run.sent()) and not run.in_flight() and run.supervisor.alive and rests()
        )
        folder = run.observer.folder()
        return Reached(run.observer.newest_batch(), folder=folder, before=run.observer.listing(folder))

    with ExitStack() as stack:
        stack.enter_context(patch.object(Schedule, "_wait", wait))
        stack.enter_context(_unhurried())
        _believed(stack)
        yield


@contextmanager
def empty() -> Iterator[None]:
    """The first batch is planned before the first record is sent, and that one is struck."""
    started = feed.Feeder.start

    def start(self: feed.Feeder) -> None:
        self._portions = _after(self, self._portions)  # type: ignore[method-assign]
        started(self)

    with ExitStack() as stack:
        stack.enter_context(patch.object(feed.Feeder, "start", start))
        stack.enter_context(patch("harness.run.progress.observer.Observer.took_nothing", lambda *_: False))
        _believed(stack)
        yield


def _after(feeder: feed.Feeder, portions: Callable[[], None]) -> Callable[[], None]:
    """Feed once the first batch is planned."""

    def fed() -> None:
        observer = feeder._progress.planned.__self__  # type: ignore[attr-defined]
        feeder._wait(lambda: observer.newest_batch() >= 0)
        portions()

    return fed


@contextmanager
def _unhurried() -> Iterator[None]:
    """A schedule is not hopeless because all is done: that is what is waited for."""
    from harness.run.live_run import Live

    whole = Live._hopeless

    def hopeless(self: Live) -> str:
        return "" if self.done() and not self.deadline.over() else whole(self)

    with patch.object(Live, "_hopeless", hopeless):
        yield


def _believed(stack: ExitStack) -> None:
    """Every step is taken for an injection."""
    stack.enter_context(patch.object(evidence, "agrees", lambda *_: True))
    stack.enter_context(patch.object(evidence, "missed", lambda *_: ""))
    stack.enter_context(patch.object(evidence, "proved", lambda *_: True))
    stack.enter_context(patch.object(kill_executor, "lost_task", lambda *_: True))


def in_the_first_batch(scenario: Scenario) -> Scenario:
    """One step: the driver dies in the first batch, when its sink is committed."""
    step = Step(
        when=trigger("point", CrashPoint.SINK_COMMITTED, batch=0),
        do=fault("kill driver"),
    )
    return replace(scenario, schedule=(step,))


def filtered_out(scenario: Scenario) -> Scenario:
    """The same program; judged is only what the first records did, and struck is a batch that has none of them. Rows
    cannot be counted in the queries that the sinks are then: the batch is struck when its sink is committed."""
    schedule = tuple(_uncounted(step) for step in scenario.schedule)
    if scenario.input.workload == "access_logs":
        # Some lines come half a minute late.
        schedule = tuple(replace(step, when=replace(step.when, batch=5)) for step in schedule)
    return replace(scenario, schedule=schedule, sinks=tuple(_filtered(sink, scenario) for sink in scenario.sinks))


def _uncounted(step: Step) -> Step:
    if step.when.kind != "rows":
        return step
    # An executor that has written its rows has nothing more in flight, and would be missed.
    do = fault("crash application") if step.do.kind == "kill executor" else step.do
    when = trigger("point", CrashPoint.SINK_COMMITTED, batch=step.when.batch)
    return Step(when=when, do=do)


def _filtered(sink: Sink, scenario: Scenario) -> Sink:
    test = FIRST[scenario.input.workload]
    own = (sink.expected or "").replace("from ledger", "from kept")
    target = {
        "transactions": f"select * from {sink.target} where id < 40",
        "access_logs": f"select * from {sink.target} where minute < timestamp '2026-07-30 14:01:00'",
        "replay": f"select * from {sink.target} where day = date '2013-01-01'",
    }
    expected = f"with kept as (select * from ledger where {test}) {own}"
    return replace(sink, expected=expected, target=target[scenario.input.workload])
