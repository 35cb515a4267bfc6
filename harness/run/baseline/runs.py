"""Baseline runs: the same scenario without its schedule, to see what the program does without faults.

A baseline run is in the run's folder as `baseline/<k>/`, with those parts of a run folder that a judge reads; its
outcome also says `seconds`, and `error` where the program without faults did not work. One that came to its end is kept
in our cache by the digest of all that decides it. The next run that asks for the same takes it from there.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from time import monotonic
from typing import Any

from harness import __version__, failpoint
from harness.component import COMPONENTS
from harness.errors import SetupError, WaitError
from harness.history import BaselineRun, History
from harness.judge import completed
from harness.machine import cache
from harness.resources import components
from harness.run.baseline.digest import files, inherited, variables
from harness.run.last_words import last_error, tail
from harness.run.live_run import Live
from harness.run.run_or_baseline import ended, planned, play
from harness.run.sink_commits import committed_to
from harness.run_folder.redact import Redactor, redact_file, redact_folder
from harness.run_folder.store import RunFolder, disk
from harness.run_folder.store import digest as file_sum
from harness.scenario import Scenario, plain
from harness.sinks import SINKS
from harness.sinks.table import load
from harness.sources import SOURCES
from harness.stack import Stack
from harness.stacks import other_versions
from harness.stacks.needed_parts import code, parts
from harness.workloads import WORKLOADS, make, read_files

KEPT = 200
"""Digests in the cache."""
FOLDER = "baseline"
FORM = 3
"""Counts up when what a baseline run tells changes."""
VOLATILE = frozenset({"session", "shared", "reapers_replaced", "cluster_id", "driver_host", "flags"})
"""What a stack says of itself that is new each time it comes up, or where a file of ours lies."""


def baseline_run(
    scenario: Scenario,
    stack: Stack,
    *,
    folder: Path,
    number: int,
    seed: int,
    root: Path,
    portions: Sequence[int],
    history: History,
) -> Path:
    """Baseline run `number` of the run in `folder`: from the cache, or run now. `portions` are the sizes in which it is
    fed.

    A program that does not work without faults is an outcome, not an error. Raises StackError, and HarnessError for a
    disk."""
    target = folder / FOLDER / str(number)
    key = digest(
        scenario, other_versions.described(stack, scenario), seed=seed, root=root, excluded=folder.parent.parent
    )
    kept, ours = cache.folder(FOLDER) / key / str(number), of_ours(scenario)
    history.write(BaselineRun(number=number, state="begins", digest=key))
    began = monotonic()
    with disk("keep a baseline run", target), cache.filling(target) as path:
        run_folder = RunFolder(path)
        cached = ours and cache.taken(kept, run_folder.path)
        if not cached:
            without_faults(scenario, stack, run_folder, seed=seed, root=root, portions=portions)
        run_folder.save(1, run={"cached": cached, "digest": key})
        outcome = run_folder.read()["run"]["outcome"]
        if ours and not cached and _done(run_folder, outcome, scenario):
            _keep(run_folder, kept)
    history.write(
        BaselineRun(
            number=number,
            state="cached" if cached else "ended",
            seconds=round(monotonic() - began, 3),
            caught_up=outcome["caught_up"],
            failed=bool(outcome["error"]),
        )
    )
    return target


def of_ours(scenario: Scenario) -> bool:
    """Return whether all kinds that feed and read the run are ours. The digest does not cover the code of others."""
    origins = [SOURCES.origin(scenario.input.source), WORKLOADS.origin(scenario.input.workload)]
    origins += [SINKS.origin(sink.kind) for sink in scenario.sinks]
    origins += [COMPONENTS.origin(name) for name in components(parts(scenario))]
    return all(origin.startswith("harness.") for origin in origins)


def _done(run_folder: RunFolder, outcome: Mapping[str, Any], scenario: Scenario) -> bool:
    """Return whether it came to its end, and every sink could be read. Another try may show more of one that did
    not."""
    if not outcome["caught_up"] or outcome["reasons"] or outcome["error"]:
        return False
    tables = [load(run_folder.path, place) for place in range(len(scenario.sinks))]
    if not all(table is not None and not table.unreadable for table in tables):
        return False
    # A batch without records may have had yet to close windows, when all records were committed.
    return not any(sink.watermark for sink in scenario.sinks) or completed(run_folder.path)


def _keep(run_folder: RunFolder, kept: Path) -> None:
    # Without a cache the next run does it again.
    with suppress(OSError):
        cache.keep(run_folder.path, kept)
        cache.trim(kept.parent.parent, most=KEPT)


def without_faults(
    scenario: Scenario, stack: Stack, run_folder: RunFolder, *, seed: int, root: Path, portions: Sequence[int]
) -> None:
    """Run the scenario without its schedule into `run_folder`. Raises what a run does but for a program that fails."""
    began = monotonic()
    alone = replace(scenario, schedule=())
    for part in (run_folder.path / "ledger", run_folder.sink, run_folder.logs):
        part.mkdir(mode=0o700)
    workload = make(alone.input, seed=seed, root=root)
    run_id = f"r{secrets.token_hex(4)}"
    known = planned(alone, workload, stack, seed=seed, run_id=run_id)
    run_folder.save(0, plan=known["plan"], run={**known["run"], "portions": list(portions)})
    history = History(run_folder.history)
    live = Live(alone, stack, run_folder, history, run_id=run_id, root=root, seed=seed, portions=portions)
    error, passed = "", dict[str, Any]()
    try:
        play(live, workload)
        error = died(live)
        passed = {
            "failpoints": failpoint.seen(live.own.folder / "failpoints"),
            "commit_logs": committed_to(alone, live.own),
            "tables": live.tables,
        }
    except (SetupError, WaitError) as failure:
        error = str(failure)
    finally:
        ended(live, history)
        history.close()
        redact_file(run_folder.history, live.own.secrets)
        if error:
            redact_folder(run_folder.logs, live.own.secrets)
        else:
            shutil.rmtree(run_folder.logs)
    outcome = {**_outcome(live, run_folder), "error": error or None, **passed}
    redacted = Redactor(live.own.secrets).data(outcome)
    run_folder.save(1, run={"outcome": {**redacted, "seconds": round(monotonic() - began, 3)}})


def _outcome(live: Live, run_folder: RunFolder) -> dict[str, Any]:
    """Return what is known at the end, however far it came."""
    supervisor = getattr(live, "supervisor", None)
    deaths = supervisor.deaths if supervisor is not None else []
    return {
        "caught_up": False,
        "reasons": [],
        "stalled": None,
        **(run_folder.read()["run"].get("outcome") or {}),
        "gap_s": round(live.rhythm.gap_s(), 3),
        "deaths": [{"number": death.number, "status": death.status} for death in deaths],
    }


def died(live: Live) -> str:
    """Return words for a death of the driver that no step caused, after all was fed; empty if there was none."""
    failed = [death for death in live.supervisor.deaths if death.status != 0]
    if not failed:
        return ""
    saw = live.supervisor.gave_up or f"the pipeline ended with status {failed[0].status}"
    error = "" if live.supervisor.gave_up else f": {last_error(failed[-1].log)}"
    return f"{saw}, though no fault was injected{error}\n{tail(failed[-1].log)}"


def digest(
    scenario: Scenario, described: Mapping[str, Any], *, seed: int, root: Path, excluded: Path | None = None
) -> str:
    """Return SHA-256 over what decides how a baseline run goes. Placeholders stand unfilled: each run fills them again.
    `excluded`, the folder of the reports, is no part of the program. Nor are the portions: they follow the pipeline's
    progress, and so differ from one run of a scenario to the next."""
    known = {
        "files": files(scenario.pipeline, root, excluded=excluded),
        "inherited": inherited(scenario.pipeline, os.environ, excluded=excluded),
        "variables": variables(scenario.pipeline, os.environ),
        "pipeline": plain(scenario.pipeline),
        "setup": dict(scenario.setup),
        "input": plain(scenario.input),
        "read": [file_sum(path) for path in read_files(scenario.input, root=root)],
        "readers": [(path.name, file_sum(path)) for path in code(scenario)],
        "seed": seed,
        "sinks": [plain(sink) for sink in scenario.sinks],
        "quiet_period_s": scenario.quiet_period_s,
        "stack": lasting(described),
        "form": FORM,
        "versions": {"onceproof": __version__, "python": platform.python_version(), "pyspark": version("pyspark")},
    }
    return sha256(json.dumps(known, sort_keys=True, default=str).encode()).hexdigest()


def lasting(described: Any) -> Any:
    """Return what a stack says of itself, without what is new each time."""
    if isinstance(described, Mapping):
        return {key: lasting(value) for key, value in described.items() if key not in VOLATILE}
    return described
