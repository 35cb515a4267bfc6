"""How processes of a run are killed, and how that is proved. Shared by the faults that kill."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import replace

from harness.context import Reached, RunContext
from harness.errors import WaitError
from harness.faults.base import NOT_BORNE_OUT, Injection, Proof
from harness.fields import values as v
from harness.fields.shape import Shape
from harness.hosts import signals
from harness.kinds import Refusal, Refusals
from harness.scenario import CrashPoint, Fault, Impact, Step, Trigger, Victim
from harness.stack import Driver, Means, Process
from harness.triggers.base import Planned
from harness.wait import until

DEATH_WITHIN_S = 20.0
DIES_WITHIN_S = 20.0
"""How long a driver takes at most from a query that has failed to its end."""


def _all_the_same(does: str) -> Refusal:
    words = f"{{path}}.victim: the JVM lives on for a while and {does} all the same"
    return Refusal("victim", words, whole=True)


COMMITS = _all_the_same("commits the offsets")
WITHOUT_PROGRAM = {
    CrashPoint.BATCH_PLANNING: _all_the_same("plans the batch"),
    CrashPoint.BLOCK_RECEIVED: _all_the_same("allocates the block to a batch"),
    CrashPoint.SINK_COMMITTING: _all_the_same("commits the sink"),
    CrashPoint.SINK_COMMITTED: COMMITS,
}
"""Why a program is not killed alone, at the crash points where the JVM works without it."""


class Victims(Shape):
    """Which processes of the driver die."""

    victim: v.VictimPart = Victim.TREE


def victim_of(fault: Fault) -> Victim:
    """Return which processes of the driver die; all of them where the file does not say."""
    return Victim(str(fault.options.get("victim", Victim.TREE)))


def dies(run: RunContext, driver: Driver | None, *, within_s: float | None = None) -> bool:
    """Return whether the attempt has failed, or fails in time, by default within the seconds that an attempt takes
    whose query has just failed."""
    if driver is None:
        return False
    try:
        until(
            f"attempt {driver.number} of the driver to end",
            lambda: run.supervisor.ended(driver.number),
            within_s=DIES_WITHIN_S if within_s is None else within_s,
            stop=run.stop,
        )
    except WaitError:
        return False
    return failed(run, driver)


def failed(run: RunContext, driver: Driver | None) -> bool:
    """Return whether the attempt has ended, and not well. A program that had nothing left to do died of nothing."""
    if driver is None or not run.supervisor.ended(driver.number):
        return False
    return run.supervisor.ending(driver.number, within_s=0.0) != 0


def python_alone(fault: Fault, trigger: Trigger | None) -> Refusals:
    """Without its program the JVM goes on for a moment."""
    point = trigger.point if trigger is not None else None
    if victim_of(fault) is Victim.PYTHON and point is not None and point in WITHOUT_PROGRAM:
        yield WITHOUT_PROGRAM[point]


def kill_driver(
    run: RunContext, fault: Fault, reached: Reached, *, executors: bool = False, proof: Proof = Proof.AFTER
) -> Injection:
    """SIGKILL to the driver's processes that are the fault's victims, JVMs first, and to the `executors`."""
    victim, driver = victim_of(fault), run.supervisor.driver
    own = run.supervisor.processes(victim)
    # Without a driver those are a dead one's, which is no crash of this attempt.
    targets = [*own, *(signals.family(run.stack.executors(run.own)) if executors and own else [])]
    scheduled(run, driver, targets)
    done = replace(kill(run, reached, targets, driver=own), proof=proof)
    # The JVM has the end of its program: it stands still until all was read.
    return replace(done, later=True) if victim is Victim.PYTHON else killed(run, driver, done)


class KillsDriver:
    """What the faults share that kill the driver, and its executors where `needs` names them."""

    impact = Impact.DRIVER_KILLED
    needs = frozenset({Means.SIGNAL_DRIVER})
    # Its JVM dies anyway.
    freezes = True

    def refusals(self, fault: Fault, trigger: Trigger | None, planned: Planned) -> Refusals:
        """At any trigger, but for a program that dies without its JVM."""
        return python_alone(fault, trigger)

    def inject(self, run: RunContext, step: Step, reached: Reached) -> Injection:
        """Kill all of them, and see them gone."""
        return kill_driver(run, step.do, reached, executors=Means.SIGNAL_EXECUTORS in self.needs)


def scheduled(run: RunContext, driver: Driver | None, targets: Sequence[Process]) -> None:
    """The driver's end is ours, not the program's. What is left of its tree is no longer found through its parent."""
    if driver is not None:
        run.supervisor.expect_death(driver.number, [each for each in run.supervisor.processes() if each not in targets])


def kill(run: RunContext, reached: Reached, targets: Sequence[Process], *, driver: Sequence[Process] = ()) -> Injection:
    """SIGKILL all at once. The evidence tells the targets that are the `driver`'s from those of executors. It has each
    under its own name: the judge asks the snapshot whether that one is still alive."""
    # A JVM that lives on must not commit what the dead one had in flight before that was read.
    jvms = run.supervisor.processes(Victim.JVM)
    reached.frozen += signals.freeze([each for each in jvms if each not in targets] if targets else [])
    # All are frozen before the first dies, so that none can act on the death of another.
    signals.freeze(targets)
    run.note_writers(reached)
    gone = signals.kill(targets)
    roles = {each.name: "JVM of the driver" if each in jvms else "process of the driver" for each in driver}
    words = {
        name: f"{roles.get(name, 'process of an executor')}, {'gone after SIGKILL' if died else 'alive'}"
        for name, died in gone.items()
    }
    return Injection(signalled=words, lived=not all(gone.values()))


def ending(run: RunContext, driver: Driver | None, done: Injection) -> Injection:
    """Return the same, and how the driver ended."""
    if driver is None or done.lived or not done.signalled:
        return done
    status = run.supervisor.ending(driver.number, within_s=DEATH_WITHIN_S)
    signalled = {**done.signalled, f"driver {driver.number}": _ended(status)}
    return replace(done, signalled=signalled, lived=status is None, driver_status=status)


def killed(run: RunContext, driver: Driver | None, done: Injection) -> Injection:
    """Return the same, and that the driver ended by our signal."""
    done = ending(run, driver, done)
    # A driver that had ended by itself takes the signal too, as a zombie: the wait status tells them apart.
    return replace(done, confirm=lambda: "" if done.driver_status == -signal.SIGKILL else NOT_BORNE_OUT)


def _ended(status: int | None) -> str:
    if status is None:
        return "alive"
    return signal.Signals(-status).name if status < 0 else f"exit status {status}"
