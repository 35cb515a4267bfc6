"""The steps that struck, each with its readings: how far every query was, what the sinks held, which processes were
alive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from harness.judge.read_folder import Run
from harness.scenario import Impact, Scenario, StepOutcome
from harness.scenario.impact import ENDS_DRIVER, ENDS_EXECUTOR
from harness.scenario.progress import CHECKPOINT
from harness.sinks.table import SinkTable, load
from harness.snapshot import ENDED, INJECTION, RESTART, Progressed, Snapshot

FREE = (Impact.DRIVER_CUT_OFF, Impact.SERVER_AWAY, Impact.NONE)
"""Under these the driver works on, also while the snapshot is taken."""
SPARES = (*ENDS_EXECUTOR, *FREE)
"""Under these it works on; of those that end executors it stands still while the snapshot is taken."""
KILLS = (*ENDS_DRIVER, *ENDS_EXECUTOR)
"""Here the victims must be gone when the snapshot is taken."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One snapshot and what each sink held then; None for a sink that was not read."""

    snapshot: Snapshot
    tables: tuple[SinkTable | None, ...]


@dataclass(frozen=True, kw_only=True)
class Injection:
    """One step that struck. `restart` is the reading before the next attempt began to work, where there was one. `why`
    says why it is not known how far the run was."""

    number: int
    outcome: StepOutcome
    at: Seen | None = None
    restart: Seen | None = None
    why: str = ""
    impact: Impact | None = None
    """What the fault does; None where the schedule has no such step."""
    only: str | None = ""
    """The checkpoint whose query alone is known to have been struck; empty if all of them were, None if that is not
    known."""
    worked: bool = True
    """Its attempt had been seen at work."""
    swept: bool = False
    """No executor of the driver was left."""
    beside: bool = False
    """There are several checkpoints, and each numbers its own batches."""
    source_away: bool = False
    """It took away the source's server, on which neither a sink nor the checkpoint is."""

    @property
    def running(self) -> bool:
        """Return whether it worked on while the sinks were read, too."""
        return self.impact in FREE

    @property
    def paused(self) -> bool:
        """Return whether the driver was paused: it does nothing again."""
        return self.impact is Impact.DRIVER_PAUSED

    @property
    def retried(self) -> bool:
        """Return whether executors died: the driver retries their tasks that had not finished, and no others."""
        return self.impact in ENDS_EXECUTOR

    @property
    def died(self) -> bool:
        """Return whether the driver died of it. If it did not, the start of a later attempt says nothing of this
        step."""
        return died(self.outcome)

    @property
    def read_at(self) -> str:
        """When its reading was taken, in words."""
        if self.outcome.injected:
            return f"at the reading of step {self.number}"
        return f"when attempt {self.outcome.attempt} had ended by itself"

    @property
    def label(self) -> str:
        """How findings name it: fault, crash point, batch (of which checkpoint, where there are several), attempt."""
        step = self.outcome
        batch = f" of batch {step.batch}" if step.batch is not None else ""
        batch += f" of {step.checkpoint}" if batch and self.beside and step.checkpoint else ""
        where = f" at {step.point}{batch}" if step.point else batch
        return f"{step.name}{where}" + (f", attempt {step.attempt}" if step.attempt else "")


def died(step: StepOutcome) -> bool:
    """Return whether the driver died of it."""
    return step.evidence.driver_status is not None


@dataclass(frozen=True, kw_only=True)
class Readings:
    """The readings of a run: at its steps that struck, and after attempts that no step had ended, each of these as an
    injection that struck nothing."""

    steps: tuple[Injection, ...] = ()
    ended: tuple[Injection, ...] = ()


def readings(run: Run) -> Readings:
    """Return those of a run. Raises HarnessError or UsageError for damage."""
    return Readings(steps=read_injections(run), ended=_read_ended(run))


def read_injections(run: Run) -> tuple[Injection, ...]:
    """Return the steps of a run that struck, in order. Raises HarnessError or UsageError for a damaged snapshot."""
    steps = [(number, step) for number, step in enumerate(run.steps, 1) if step.injected]
    worked, beside = _worked(run), len(_folders(run.progressed)) > 1
    return tuple(_injection(run, number, step, worked=step.attempt in worked, beside=beside) for number, step in steps)


def _read_ended(run: Run) -> tuple[Injection, ...]:
    """Return the readings after attempts that no step had ended, in order, each as an injection that struck nothing:
    its number is that of the last step before it. Raises HarnessError or UsageError for damage."""
    found = [
        Injection(
            number=step,
            outcome=StepOutcome(name="", point="", batch=None, injected=False, at_s=each.at_s, attempt=each.attempt),
            at=_seen(run, step, moment),
        )
        for (step, moment), each in run.readings.items()
        if moment == ENDED.format(each.attempt)
    ]
    return tuple(sorted(found, key=lambda each: each.outcome.attempt))


def _source_away(scenario: Scenario, step: StepOutcome) -> bool:
    """Return whether only the source's server was away, and progress is kept in a checkpoint elsewhere."""
    pipeline, source = scenario.pipeline, scenario.input.source
    others = {*(sink.kind for sink in scenario.sinks), pipeline.checkpoint}
    away = {*step.evidence.signalled}
    return away == {source} and source not in others and pipeline.progress == CHECKPOINT


def _only(impact: Impact | None, executors: int, step: StepOutcome, at: Seen | None) -> str | None:
    """Return the query whose executor died, where others live on: tasks of another query may have been on those. Of
    several queries at work, only a writer that was held says whose executor it was."""
    if impact is not Impact.EXECUTOR_KILLED or executors < 2:
        return ""
    busy = [state for state in at.snapshot.queries if set(state.offsets) - set(state.commits)] if at else []
    if len(busy) < 2:
        return step.checkpoint
    held = step.evidence.rows_seen is not None
    return (step.checkpoint or None) if held else None


def _folders(progressed: Progressed) -> list[str]:
    return [query.checkpoint for query in progressed.queries if query.ours]


def numbered(progressed: Progressed) -> str:
    """Return the checkpoint whose batches number the records, where there are several; empty if there is one, or none
    does. A checkpoint that was deleted and made again is named with the attempt that made it."""
    folders = _folders(progressed)
    several = len(folders) > 1 and bool(progressed.batches)
    known = [query for query in progressed.queries if query.ours and query.batches == progressed.batches]
    if not several or not known:
        return ""
    name, attempt = known[0].checkpoint, min(known[0].first, default=0)
    return f"{name} since attempt {attempt}" if folders.count(name) > 1 and attempt else name


def _worked(run: Run) -> set[int]:
    """Return the attempts that were seen at work: a query of theirs took a batch, or they moved the offsets that they
    save."""
    return {each for query in run.progressed.queries for each in query.first} | moved(run.progressed)


def moved(progressed: Progressed) -> set[int]:
    """Return the attempts that moved the offsets that they save."""
    return {now.attempt for was, now in pairwise(progressed.positions) if now.next != was.next}


def _injection(run: Run, number: int, step: StepOutcome, *, worked: bool, beside: bool) -> Injection:
    schedule, executors = run.scenario.schedule, run.scenario.pipeline.executors
    impact = schedule[number - 1].do.impact if number <= len(schedule) else None
    at = _seen(run, number, INJECTION)
    why = _unusable(number, step, impact, at.snapshot if at is not None else None)
    at = None if why else at
    late = _seen(run, number, RESTART) if at is not None and _reread(at) else None
    if at is not None and late is not None and _wiped(at.snapshot, late.snapshot):
        late = None
    return Injection(
        number=number,
        outcome=step,
        at=at,
        restart=late,
        why=why,
        impact=impact,
        only=_only(impact, executors, step, at),
        worked=worked,
        # One executor that was killed may be the only one.
        swept=impact is Impact.EXECUTORS_KILLED or (impact is Impact.EXECUTOR_KILLED and executors < 2),
        beside=beside,
        source_away=_source_away(run.scenario, step),
    )


def _unusable(number: int, step: StepOutcome, impact: Impact | None, snapshot: Snapshot | None) -> str:
    """Return why the snapshot of a step does not say how far the run was; empty if it does."""
    if snapshot is None:
        return "no snapshot was taken when the fault was injected"
    if (snapshot.step, snapshot.attempt) != (number, step.attempt):
        return f"the snapshot in its place is that of step {snapshot.step} in attempt {snapshot.attempt}"
    if impact in ENDS_DRIVER and not died(step):
        return "its evidence does not say how the driver ended"
    if impact in KILLS and (why := _undead(step, snapshot)):
        return why
    known = step.evidence.checkpoint_before if impact in FREE else step.evidence.checkpoint_after
    if impact in SPARES and (why := _later(step, snapshot, known)):
        return why
    failed = snapshot.error and not snapshot.queries and snapshot.position is None
    return f"its snapshot failed: {snapshot.error}" if failed else ""


def _wiped(first: Snapshot, late: Snapshot) -> bool:
    """Return whether a query has planned or committed less than before. A zombie only adds: the next attempt was at
    work by then, and has made its checkpoint again."""
    then = {state.checkpoint: (_newest(state.offsets), _newest(state.commits)) for state in late.queries}
    return any(
        _newest(state.offsets) > then[state.checkpoint][0] or _newest(state.commits) > then[state.checkpoint][1]
        for state in first.queries
        if state.checkpoint in then
    )


def _newest(batches: Sequence[int]) -> int:
    return max(batches, default=-1)


def _reread(at: Seen) -> bool:
    """Return whether the reading before the next attempt's work counts. A checkpoint tells that work apart. Of a
    pipeline that manages its own offsets it counts only where a process of the dead attempt may still have written."""
    snapshot = at.snapshot
    if snapshot.position is None:
        return True
    return snapshot.alive != () or _open(snapshot.writing) or _open(snapshot.left or {})


def _open(writing: Mapping[str, Sequence[str]]) -> bool:
    """Return whether an open transaction has written into a sink, or into the place where offsets are saved. Other
    writes may come at any time."""
    return any(words for place, words in writing.items() if place)


def _undead(step: StepOutcome, snapshot: Snapshot) -> str:
    """Return why nothing shows that the victims of a kill are gone; empty if they are."""
    if not step.evidence.signalled:
        return "its evidence names no victim"
    if snapshot.alive is None:
        return "the process table could not be read, so its victims may live"
    alive = set(step.evidence.signalled) & set(snapshot.alive)
    return f"{', '.join(sorted(alive))} lived on when the fault was injected" if alive else ""


def _later(step: StepOutcome, snapshot: Snapshot, after: Mapping[str, Sequence[int]]) -> str:
    """Return why its snapshot was not taken when the fault was injected; empty if nothing says so."""
    for state in snapshot.queries if after else ():
        new = sorted(set(state.offsets) - set(after.get("offsets", ())))
        if state.checkpoint == step.checkpoint and new:
            return f"its snapshot was taken after the injection: batch {new[-1]} was planned by then"
    return ""


def _seen(run: Run, number: int, moment: str) -> Seen | None:
    snapshot = run.readings.get((number, moment))
    if snapshot is None:
        return None
    folder = run.folder / "snapshots" / f"{number}-{moment}"
    return Seen(snapshot=snapshot, tables=tuple(load(folder, place) for place in range(len(run.scenario.sinks))))


def lasting(injection: Injection) -> Seen:
    """Return the snapshot that says how far the queries were. It is the second one, since a zombie may have committed
    after the first one. It is the first one if there is no second one, or if the second one shows nothing."""
    assert injection.at is not None
    first, late = injection.at, injection.restart or injection.at
    complete = bool(late.snapshot.queries) >= bool(first.snapshot.queries)
    alike = (late.snapshot.position is None) == (first.snapshot.position is None)
    return late if complete and alike else first
