"""Does the fault of a step when its trigger is met, and brings back the evidence."""

from __future__ import annotations

from dataclasses import replace

from harness.context import Listing, Reached, RunContext, running
from harness.faults import FAULTS
from harness.faults.base import NOT_BORNE_OUT, Injection, Proof, killing
from harness.scenario import COMMITTING, CrashPoint, Evidence, Impact, Step, StepOutcome
from harness.scenario.impact import ENDS_DRIVER, ENDS_EXECUTOR
from harness.triggers import TRIGGERS, release
from harness.triggers.base import WATCHED

NO_VICTIM = Injection(signalled={})


def performed(run: RunContext, step: Step, reached: Reached) -> StepOutcome:
    """Do the fault. If the checkpoint no longer stands at the crash point, nothing is struck and `injected` is
    false."""
    in_flight = run.in_flight() or beyond(run, reached)
    open_still = agrees(step, reached, reached.before)
    done, after = NO_VICTIM, reached.before
    driver = run.supervisor.driver
    attempt = driver.number if driver else 0
    # The next attempt must not touch what the dead one left before it is read.
    with run.supervisor.without_restarts():
        try:
            if open_still:
                done = _injected(run, step, reached, attempt)
            # Before anything is released: this is how the fault left it.
            ended = run.supervisor.ended(attempt)
            after = reached.with_sink(
                run.observer.settled(reached.folder) if ended else run.observer.listing(reached.folder)
            )
            if done.signalled and not done.snapshot_taken:
                run.snapshot(reached)
        finally:
            release(run, step, reached)
        if done.later:
            done = killing.killed(run, driver, done)
        if run.snapshots is not None and done.signalled and run.supervisor.ended(attempt):
            run.snapshots.restart(reached.step, attempt)
    why = missed(in_flight, open_still, done)
    if not why and done.confirm is not None:
        why = done.confirm()
    borne_out = proved(step, reached, done, after)
    if not why and not borne_out:
        why = NOT_BORNE_OUT
    folder = run.checkpoint_of(reached)
    watched = "" if reached.folder is None or run.observer.reported(reached.folder) else WATCHED
    words = (why, beside(run, reached), *notes(step, reached, done, after), watched)
    return StepOutcome(
        name=step.name,
        point=step.when.place,
        crash_point=step.when.point,
        batch=reached.batch,
        injected=not why,
        evidence=Evidence(
            signalled=done.signalled,
            driver_status=done.driver_status,
            checkpoint_before=reached.before,
            checkpoint_after=after,
            rows_seen=reached.blocked.rows if reached.blocked else None,
            in_flight=in_flight,
            stop_requested=step.do.impact is Impact.DRIVER_STOPPED,
            struck=struck(done, why, borne_out),
            healed=done.healed,
            committed_meanwhile=done.committed_meanwhile,
            disconnected=done.disconnected,
            note="; ".join(filter(None, words)),
        ),
        at_s=round(run.history.elapsed_s(), 3),
        attempt=attempt if done.signalled else 0,
        checkpoint=run.observer.name(folder) if folder else "",
    )


def _injected(run: RunContext, step: Step, reached: Reached, attempt: int) -> Injection:
    """Do the fault. Whether the driver or an executor died of it is never the fault's own word alone."""
    executors = run.stack.executors(run.own) if step.do.impact in ENDS_EXECUTOR else ()
    done = FAULTS[step.do.kind].inject(run, step, reached)
    if not done.signalled or done.lived:
        return done
    if executors and all(executor.alive() for executor in executors):
        return replace(done, lived=True)
    if step.do.impact not in ENDS_DRIVER or done.later:
        return done
    status = run.supervisor.ending(attempt, within_s=killing.DEATH_WITHIN_S)
    return replace(done, driver_status=status, lived=status is None)


def beyond(run: RunContext, reached: Reached) -> str:
    """Return what a query that reads something else than the run's source has in flight; empty for others, which are
    counted in records."""
    folder, ours = reached.folder, [checkpoint.folder for checkpoint in run.observer.all()]
    if folder is None or folder in ours or run.observer.took_nothing(folder, reached.batch or 0):
        return ""
    return f"batch {reached.batch} of {folder.name}, which reads something else"


def beside(run: RunContext, reached: Reached) -> str:
    """Return which checkpoint it was, where there are several."""
    many = len(run.observer.current())
    return f"in the checkpoint {reached.folder.name}, one of {many}" if reached.folder and many > 1 else ""


def missed(in_flight: str, open_still: bool, done: Injection) -> str:
    """Return why nothing can have been struck; empty if something was."""
    if not open_still:
        return "the crash point was over before anything could be struck"
    if not done.signalled:
        return "there was no process to strike"
    if done.proof is Proof.SINK:
        return ""
    return done.why if in_flight else "nothing was in flight: every record sent was committed by the pipeline"


def struck(done: Injection, why: str, borne_out: bool) -> bool:
    """Return whether a process of the pipeline was affected; true also where it did not happen as it was to, so that
    this says nothing."""
    return not done.why or why != done.why or not borne_out


def agrees(step: Step, reached: Reached, listing: Listing) -> bool:
    """Return whether the checkpoint agrees that the batch is where the step's trigger says."""
    return TRIGGERS[step.when.kind].agrees(step.when, reached, listing)


def proved(step: Step, reached: Reached, done: Injection, after: Listing) -> bool:
    """Return whether the evidence says that the fault happened, to the right process, at its crash point, with a batch
    in flight."""
    if done.lived:
        return False
    if done.proof is Proof.IN_PROGRESS and after:
        return running(reached.batch, after)
    listing = after if done.proof is Proof.AFTER else reached.before
    return agrees(step, reached, listing)


def notes(step: Step, reached: Reached, done: Injection, after: Listing) -> list[str]:
    """Return what else a reader should know."""
    words = []
    if step.when.batch is not None and reached.batch not in (None, step.when.batch):
        words.append(f"batch {step.when.batch} was missed, batch {reached.batch} was tried instead")
    if step.when.point is CrashPoint.SINK_COMMITTED and reached.batch in after.get("begun", ()):
        words.append(f"commits/.{reached.batch}.*.tmp was begun and never renamed")
    if reached.operation is not None:
        held = reached.operation.operation
        words.append(f"{held.process} was held {held.side} {held.op} of {held.name}")
    if reached.request is not None:
        words += [reached.request.description, f"left in the checkpoint: {left(reached.batch, after)}"]
    if reached.commit is not None and reached.batch in after.get(COMMITTING, ()):
        words.append(f"{reached.commit.temporary.name} was written and never renamed to {reached.commit.final.name}")
    if done.note:
        words.append(done.note)
    if done.lived:
        words.append(f"it was signalled and lived on for {killing.DEATH_WITHIN_S:g} s")
    if reached.blocked is not None:
        words.append(
            f"the row breakpoint held server process {reached.blocked.backend} before row {reached.blocked.rows + 1}"
        )
    return words


def left(batch: int | None, after: Listing) -> str:
    """Return which files of a batch its checkpoint has in `commits`."""
    begun, done = batch in after.get("begun", ()), batch in after.get("commits", ())
    there = [f"commits/.{batch}.*.tmp"] * begun + [f"commits/{batch}"] * done
    return " and ".join(there) or f"neither commits/{batch} nor a temporary file of it"
