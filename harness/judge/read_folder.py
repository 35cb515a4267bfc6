"""Reads what a verdict needs from a run folder: the claim, the ledger's columns, the schedule's outcome."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import history
from harness.checkers.offset_ranges import between
from harness.errors import HarnessError, UsageError
from harness.executions import Execution, executions
from harness.ledger import Source
from harness.run_folder import store
from harness.scenario import Scenario, StepOutcome
from harness.scenario.progress import IN_CHECKPOINT
from harness.snapshot import Offsets, Progressed, Query, Snapshot, Stalled


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What run.json says became of the run, as far as a verdict rests on it. `grew`: so did the source, after it had
    been read back; `unsettled`: a sink, or its server, had not come to rest."""

    grew: bool = False
    unsettled: bool = False
    reasons: tuple[str, ...] = ()
    stalled: Stalled | None = None
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a run folder holds, read. `readings` is where everything stood at each reading of the sinks, by step and
    moment."""

    folder: Path
    scenario: Scenario
    columns: tuple[tuple[str, str, str], ...]
    outcome: Outcome
    progressed: Progressed
    steps: tuple[StepOutcome, ...]
    readings: Mapping[tuple[int, str], Snapshot]
    short: bool = False
    """The pipeline may have taken records that the ledger has not."""
    executions: Sequence[Execution] = ()

    @property
    def source(self) -> Path:
        return self.folder / "ledger" / "source.parquet"

    @property
    def ledger(self) -> Source:
        """What `expected` is asked of: the source as read back, by the run's batches."""
        return Source(
            parquet=self.source,
            columns=self.columns,
            batches=self.progressed.batches,
            committed=self.committed,
        )

    @property
    def caught_up(self) -> bool:
        """Return whether the run loop says that the pipeline has committed every record. It gives no reason then why
        something is open, such as a sink's server at work."""
        return self.progressed.caught_up and not self.outcome.reasons

    @property
    def committed(self) -> dict[int, int]:
        """Next offsets by partition, as far as the pipeline has committed."""
        return dict(self.progressed.committed)

    @property
    def reached(self) -> bool:
        """Return whether each query of the newest attempt has committed the whole source, as far as checkpoints say."""
        if self.scenario.pipeline.progress not in IN_CHECKPOINT:
            return True
        # A checkpoint that was deleted and made again comes again: the last one counts.
        ours = {query.checkpoint: query for query in self.progressed.queries if query.ours}.values()
        newest = max((attempt for query in ours for attempt in query.first), default=0)
        return all(self._reached(query) for query in ours if newest in query.first)

    def _reached(self, query: Query) -> bool:
        # Batches of DStreams pass what was sent to a receiver and is in none of them.
        end = self.progressed.end
        return (query.by_time and not between(self.progressed.committed, end)) or done(query, end)


def done(query: Query, end: Offsets) -> bool:
    """Return whether the query has committed the source up to `end`."""
    kept = [batch for batch in query.batches if batch.committed and batch.ranges]
    ranges = max(kept, key=lambda batch: batch.batch).ranges if kept else {}
    return all(ranges.get(partition, (0, 0))[1] >= offset for partition, offset in end.items())


def read_run(folder: Path) -> Run:
    """Return the run in `folder`. Raises UsageError if something that a verdict needs is not there or not readable."""
    plan, run = (read_json(folder / name) for name in ("plan.json", "run.json"))
    lines = history.whole(folder / "history.jsonl")
    outcome = store.noun(Outcome, run.get("outcome") or {}, str(folder / "run.json"))
    progressed = history.progressed(lines)
    if progressed is None:
        words = "its history ends before its sinks were read. Was the run ended early?"
        raise UsageError(f"asked to judge {folder}; {words}")
    return Run(
        folder=folder,
        scenario=store.noun(Scenario, plan.get("scenario"), str(folder / "plan.json")),
        columns=_columns(plan, folder / "plan.json"),
        outcome=outcome,
        progressed=progressed,
        steps=history.steps(lines),
        readings=history.readings(lines),
        short=outcome.grew,
        executions=executions(lines),
    )


def _columns(plan: Mapping[str, Any], path: Path) -> tuple[tuple[str, str, str], ...]:
    try:
        return tuple((str(c["name"]), str(c["type"]), str(c["expression"])) for c in plan["columns"])
    except (KeyError, TypeError) as failure:
        words = f"{path} is damaged: it has no columns of the ledger ({failure!r})"
        raise UsageError(f"{words}. Run the scenario again") from failure


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a file of the run. Raises UsageError if it is not there or holds none, HarnessError if it is
    not readable."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"asked to judge {path.parent}; it has no {path.name}. Was the run ended early?") from None
    except (OSError, ValueError, RecursionError) as failure:
        request = f"asked to judge {path.parent}; {path.name} is not readable"
        raise HarnessError(f"{request}: {failure}. Run the scenario again") from failure
    if not isinstance(data, dict):
        raise UsageError(f"{path} is damaged: it holds no object. Run the scenario again")
    return data
