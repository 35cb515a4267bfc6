"""How surely each operation is struck, with several runs at once and wherever the checkpoint lies: kills the driver
again and again at one operation of every third batch, in runs side by side.

    PYTHONPATH=. .venv/bin/python bench/aimed.py [--kills 100] [--jobs 4] [--checkpoint s3] [--spark 4.0] [OPERATION…]
    PYTHONPATH=. .venv/bin/python bench/aimed.py --stored REPORTS      the same of runs that were played before

An OPERATION is `before rename of commits`, for example; without any, four are tried. A kill is right if the next
attempt begins with its batch, as Spark's own files show, and that had not been committed; where the operation commits
it, with the batch after it. Anything else is *elsewhere*. A try that comes too late is a miss, which the history
says; the driver goes on unhurt, and the next batch is tried. A driver that died of no step that the history tells,
and a step that it does not tell, are *unsaid*.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic

from harness.history import AttemptEnded, CheckpointOp, Event, FaultInjected, FaultMissed, SinkCommitted, read
from harness.load import load
from harness.run.loop import run
from harness.scenario import CrashPoint, Scenario, StepOutcome
from harness.stacks.needed_parts import needed
from harness.stacks.processes.stack import ProcessesStack
from harness.suite.side_by_side import played, threads

EACH = 5
OPERATIONS = (
    "before rename of offsets",
    "after rename of offsets",
    "before create of commits",
    "before rename of commits",
)
SCENARIO = """\
name: killed again and again {operation}
why: how surely is the operation caught
pipeline: {{entry: pipelines/transactions/upsert.py{more}}}
input: {{workload: transactions, records: 1800}}
schedule:
{steps}
verdict: held
restart: {{max_restarts: 20}}
timeout: 600s
"""
STEP = "  - {{when: {{op: {op}, path: {path}, when: {side}, batch: {batch}}}, do: kill driver}}"
CHECKPOINT, JARS = ", checkpoint: {0}", ", conf: {{spark.jars: '{{{0}.jars}}'}}"
WITH_JARS = ("s3", "azure")
LATENCY_MS = (0.5, 0.9, 1.0)


def scenario(folder: Path, operation: str = OPERATIONS[-1], checkpoint: str = "", spark: str = "") -> Scenario:
    """Kills at every third batch, under that version of Spark, or the installed one."""
    path = folder / "aimed.yaml"
    side, op, _, log = operation.split()
    batches = (2 + 3 * number for number in range(EACH))
    steps = "\n".join(STEP.format(op=op, path=log, side=side, batch=batch) for batch in batches)
    more = CHECKPOINT.format(checkpoint) if checkpoint else ""
    more += JARS.format(checkpoint) if checkpoint in WITH_JARS else ""
    more += f', spark: "{spark}"' if spark else ""
    path.write_text(SCENARIO.format(operation=operation, more=more, steps=steps), encoding="utf-8")
    return load(path)


def outcomes(history: Path, steps: int = EACH) -> Iterator[str]:
    """Yield how each try of so many steps went: `right`, `elsewhere`, `missed` (it came too late and the driver went
    on), or `unsaid` (the history does not have it)."""
    events = [line.event for line in read(history)]
    tries = [(at, event) for at, event in enumerate(events) if isinstance(event, FaultInjected | FaultMissed)]
    for at, event in tries:
        if event.outcome.evidence.signalled:
            yield "right" if _right(event.outcome, events[at:]) else "elsewhere"
        else:
            yield "missed"
    signalled = {event.outcome.attempt for _, event in tries if event.outcome.evidence.signalled}
    deaths = [event for event in events if isinstance(event, AttemptEnded) and event.attempt not in signalled]
    missing = steps - sum(isinstance(event, FaultInjected) for _, event in tries)
    yield from ["unsaid"] * (len(deaths) + max(0, missing))


def _right(step: StepOutcome, after: Sequence[Event]) -> bool:
    """Return whether its batch is committed as the crash point says, and the next attempt begins with the batch that
    follows from it."""
    assert step.batch is not None
    committed = step.batch in step.evidence.checkpoint_after.get("commits", ())
    reached = (event for event in after if isinstance(event, SinkCommitted) and event.attempt == step.attempt + 1)
    began = next((event.batch for event in reached), None)
    over = step.crash_point is CrashPoint.BATCH_COMMITTED
    return step.injected and committed is over and began == step.batch + over


def ended_ms(history: Path) -> Iterator[float]:
    """From the operation to the driver's death."""
    seen = 0.0
    for line in read(history):
        if isinstance(line.event, CheckpointOp):
            seen = line.at_s
        if isinstance(line.event, AttemptEnded):
            yield 1000 * (line.at_s - seen)


def measured(operation: str, given: argparse.Namespace) -> None:
    """Kill at one operation as often as asked, and print how each try went."""
    counts: Counter[str] = Counter()
    words: Counter[str] = Counter()
    latencies: list[float] = []
    began = monotonic()
    with tempfile.TemporaryDirectory(prefix="onceproof-bench-", dir=Path.cwd()) as name:
        folder = Path(name)
        wanted = scenario(folder, operation, given.checkpoint, given.spark)
        histories: list[Path] = []

        def play(number: int, each: Scenario) -> None:
            result = run(each, stack, reports=folder)
            words[result.verdict.word.value] += 1
            histories.append(result.folder / "history.jsonl")

        with threads(given.jobs) as pool, ProcessesStack(folder / "logs", needs=needed([wanted])) as stack:
            played([wanted] * -(-given.kills // EACH), pool, play)
        for history in histories:
            counts.update(outcomes(history))
            latencies += ended_ms(history)
    where = f"checkpoint {given.checkpoint or 'local'}, Spark {given.spark or 'as installed'}, {given.jobs} at once"
    shown(f"{operation}, {where}", counts, latencies)
    print(f"  verdicts: {dict(words)}; {monotonic() - began:.0f} s", flush=True)


def shown(what: str, counts: Counter[str], latencies: Sequence[float]) -> None:
    """Print how tries went, and how long after the operation the driver was dead."""
    print(f"{what}: {sum(counts.values())} tries, {dict(counts)}")
    ordered = sorted(latencies)
    shares = ", ".join(f"{ordered[int(share * (len(ordered) - 1))]:.0f}" for share in LATENCY_MS)
    print(f"  from the operation to the death, median, 90 % and most: {shares} ms", flush=True)


def stored(reports: Path) -> None:
    """Print how each try of the runs below a folder went."""
    counts: Counter[str] = Counter()
    latencies: list[float] = []
    for history in sorted({each.resolve() for each in reports.glob("*/*/history.jsonl")}):
        plan = json.loads((history.parent / "plan.json").read_text(encoding="utf-8"))
        counts.update(outcomes(history, len(plan["scenario"]["schedule"])))
        latencies += ended_ms(history)
    shown(str(reports), counts, latencies)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--checkpoint", default="", help="the component that keeps the checkpoint; local without one")
    parser.add_argument("--spark", default="", help="a version that `doctor` lists; the installed one without it")
    parser.add_argument("operation", nargs="*", default=list(OPERATIONS), metavar="OPERATION")
    parser.add_argument("--stored", type=Path, metavar="REPORTS", help="play nothing, and count the runs below it")
    given = parser.parse_args()
    if given.stored is not None:
        return stored(given.stored)
    for operation in given.operation:
        measured(operation, given)


if __name__ == "__main__":
    main()
