"""One run in the words of a continuous integration: its failure text, the command that repeats it, its properties."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

from harness.errors import HarnessError
from harness.report import claims, exposures, failure_text
from harness.report.escape import visible
from harness.report.summary import Run, exit_code, run_json, stack_options
from harness.run_folder import store
from harness.scenario import Verdict, Word
from harness.stacks import DEFAULT
from harness.stacks.kind import AtAddresses
from harness.stacks.registry import STACKS


def failure(run: Run, *, brief: bool = False) -> str:
    """Return the text of a run, whole or in brief; it ends with the command that repeats it, where one can."""
    more = {"stack_options": stack_options(run.folder), "again": command(run)}
    why = left(run.verdict, run.folder)
    return failure_text.failure(run.scenario, run.verdict, run.folder, **more, left=why, brief=brief)


def left(verdict: Verdict, folder: Path | None) -> list[str]:
    """Return why a stored run that did not catch up is inconclusive, and what to change; empty if that is not known."""
    if verdict.word is not Word.INCONCLUSIVE or folder is None:
        return []
    from harness.report import page, render

    try:
        end = page.open_end(replace(render.parts(store.RunFolder.open(folder)), verdict=verdict))
    except HarnessError:
        return []
    return [*end.summary, *end.cures] if end else []


CLUSTER = ["--spark-master", "URL", "--at", "NAME=ADDRESS"]
"""What a command needs on a cluster that is there already. No run folder says which one it was: the reader has to fill
it in."""


def command(run: Run) -> str:
    """Return the command that repeats a run: the first one of its page if its folder is there, otherwise its scenario
    file with its seed; empty if that is not known."""
    stored = run_json(run.folder) if run.folder is not None else {}
    if run.folder is not None and (stored or run.verdict.word is not Word.ERROR or not run.file):
        return visible(claims.again(str(run.folder), stored, run.verdict)[0][0])
    if not run.file:
        return ""
    seed = [] if run.seed is None else ["--seed", str(run.seed)]
    stack = ["--stack", run.stack] if run.stack not in {"", DEFAULT} else []
    cluster = CLUSTER if isinstance(STACKS.all().get(run.stack), AtAddresses) else []
    return shlex.join(["onceproof", "run", run.file, *seed, *stack, *cluster])


def properties(run: Run) -> list[tuple[str, str]]:
    """Return what JUnit and SARIF have of a run beside its text: names and visible texts."""
    verdict = run.verdict
    faults = [f"{step.name} ({step.point}): {'injected' if step.injected else 'MISSED'}" for step in verdict.steps]
    found = [
        ("seed", "" if run.seed is None else str(run.seed)),
        ("verdict", verdict.word.value),
        ("exit_code", str(exit_code([run]))),
        ("run_folder", "" if run.folder is None else str(run.folder)),
        ("faults", "; ".join(faults)),
        ("crash_points", "; ".join(exposures.points_reached(verdict))),
    ]
    return [(name, visible(text)) for name, text in found]
