"""One run: the loop that acts. Everything else is data, a checker, or a way to inject or to watch.

set up  save 0 -> resources -> set-up -> warm-up
run     producer || triggers || faults || supervisor
read    heal -> catch up -> read the sink -> save 1
judge   judge -> baseline runs, where it asks for them -> save 2 -> digests
"""

from __future__ import annotations

import secrets
import sys
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from harness.errors import HarnessError, Interrupted
from harness.history import History, Judged, Listener, Phase, progressed, whole
from harness.judge import judged
from harness.load import project_root
from harness.run.baseline.runs import baseline_run
from harness.run.feed import portions_of
from harness.run.live_run import Live
from harness.run.run_or_baseline import ended, planned, play
from harness.run_folder import digests
from harness.run_folder.redact import Redactor, redact_file, redact_folder
from harness.run_folder.store import RunFolder, disk
from harness.scenario import Scenario, Verdict, plain
from harness.stack import RunsSparkVersions, Stack
from harness.stacks import other_versions
from harness.stacks.needed_parts import needed
from harness.stacks.supported import refuse
from harness.workloads import make
from harness.workloads.base import Workload

SWITCH_S = 0.0005


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a run came to."""

    verdict: Verdict
    folder: Path
    seconds: float


def run(
    scenario: Scenario, stack: Stack, *, reports: Path, seed: int | None = None, listener: Listener | None = None
) -> Result:
    """Put one scenario to the test on a stack that is up.

    Raises HarnessError (SetupError if the pipeline does not work without faults, StackError if a component died that
    no fault struck, any for a full disk); the run folder then says `error` and keeps the logs."""
    began = monotonic()
    # The thread that watches for a crash point some 50 ms wide must not wait its turn behind the producer.
    sys.setswitchinterval(SWITCH_S)
    seed = scenario.seed if seed is None else seed
    root = project_root(Path(scenario.path))
    refuse([scenario], stack.name)
    workload = make(scenario.input, seed=seed, root=root)
    ready(scenario, stack)
    run_id = f"r{secrets.token_hex(4)}"
    folder = RunFolder.create(reports, scenario.name, run_id)
    with disk("keep the run", folder.path):
        begun = planned(scenario, workload, stack, seed=seed, run_id=run_id)
        # A whole path would say something of the machine.
        begun["run"]["reports"] = "" if reports.is_absolute() else str(reports)
        folder.save(0, **begun)
        history = History(folder.history)
        if listener is not None:
            history.listen(listener)
        live = Live(scenario, stack, folder, history, run_id=run_id, root=root, seed=seed)
        verdict = _judged(live, workload, began)
    return Result(verdict=verdict, folder=folder.path, seconds=monotonic() - began)


def ready(scenario: Scenario, stack: Stack) -> None:
    """Start what a run of the scenario needs and the stack has not started yet. Raises StackError."""
    stack.ensure(needed([scenario]))
    if (versions := other_versions.of_attempts(scenario)) and isinstance(stack, RunsSparkVersions):
        stack.need(versions)


def _judged(live: Live, workload: Workload, began: float) -> Verdict:
    """Play, judge, save; whatever happens, end what was started and take the secrets out of what is kept."""
    folder, history = live.folder, live.history
    redactor = Redactor(live.own.secrets)
    try:
        play(live, workload)
        # Nothing of it may write on, or take the cores, while a baseline run goes on.
        ended(live, history)
        verdict = _verdict(live, workload)
        folder.save(1, verdict=redactor.data(plain(verdict)))
        folder.save(2, run={"seconds": round(monotonic() - began, 3)})
        history.write(Judged(word=verdict.word, as_expected=verdict.as_expected, findings=verdict.kinds()))
    except BaseException as failure:
        words = str(failure) if isinstance(failure, HarnessError | Interrupted) else repr(failure)
        outcome = {"error": redactor.text(words)}
        folder.save(1, run={"outcome": outcome, "seconds": round(monotonic() - began, 3)})
        if isinstance(failure, HarnessError):
            failure.folder = folder.path
            failure.args = (redactor.text(words),)  # it ends with lines of the pipeline's log
        raise
    finally:
        try:
            ended(live, history)
        finally:
            history.close()
            redact_folder(folder.logs, live.own.secrets)
            redact_file(folder.history, live.own.secrets)
            folder.make_private()
    # Last of all: a run that was cut short anywhere above has no digests, and is not read.
    digests.write(folder.path)
    return verdict


def _verdict(live: Live, workload: Workload) -> Verdict:
    """Judge; while the answer hangs on what the program does without faults, run baseline runs and judge again."""
    folder, history = live.folder, live.history
    history.write(Phase(name="judging"))
    known = progressed(whole(folder.history))
    sizes = portions_of(known.batches if known is not None else (), workload.count)
    found, made = judged(folder.path), 0
    while found.baseline_runs_needed > made:
        made += 1
        baseline_run(
            live.scenario,
            live.stack,
            folder=folder.path,
            number=made,
            seed=live.seed,
            root=live.root,
            portions=sizes,
            history=history,
        )
        found = judged(folder.path)
    return found.verdict
