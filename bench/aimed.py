"""Are crash points hit as surely with several runs at once as with one? Kills the driver again and again in the window
before `commits/N`, some 40 ms wide, in runs side by side.

    PYTHONPATH=. .venv/bin/python bench/aimed.py [--kills 100] [--jobs 4]

A kill is right if its batch is the one that the next attempt begins with, as Spark's own files show, and had not been
committed: anything else is *elsewhere*. A try that comes too late is a miss, which the history says; the driver goes on
unhurt, and the next batch is tried. A driver that died of no step that the history tells, and a step that it does not
tell, are *unsaid*.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic

from harness.history import AttemptEnded, Event, FaultInjected, FaultMissed, SinkCommitted, read
from harness.load import load
from harness.run.loop import run
from harness.scenario import Scenario, StepOutcome
from harness.stacks.processes.stack import ProcessesStack
from harness.suite.side_by_side import played, threads

EACH = 5
SCENARIO = """\
name: killed again and again before the offset commit
why: how surely is the window hit
pipeline: pipelines/transactions/upsert.py
input: {{workload: transactions, records: 1800}}
schedule:
{steps}
expect: held
restart: {{max_restarts: 20}}
timeout: 600s
"""
STEP = "  - {{when: {{batch: {batch}, point: sink-committed}}, do: kill driver}}"
LATENCY_MS = (0.5, 0.9, 1.0)


def scenario(folder: Path) -> Scenario:
    """Kills at every third batch."""
    path = folder / "aimed.yaml"
    steps = "\n".join(STEP.format(batch=2 + 3 * number) for number in range(EACH))
    path.write_text(SCENARIO.format(steps=steps), encoding="utf-8")
    return load(path)


def told(history: Path, steps: int = EACH) -> Iterator[str]:
    """How each try of so many steps went: `right`, `elsewhere`, `missed`, where it came too late and the driver went on
    unhurt, or `unsaid`."""
    events = [line.event for line in read(history)]
    tries = [(at, event) for at, event in enumerate(events) if isinstance(event, FaultInjected | FaultMissed)]
    for at, event in tries:
        if event.outcome.evidence.signalled:
            yield "right" if _right(event.outcome, events[at:]) else "elsewhere"
        else:
            yield "missed"
    said = {event.outcome.attempt for _, event in tries if event.outcome.evidence.signalled}
    deaths = [event for event in events if isinstance(event, AttemptEnded) and event.attempt not in said]
    untold = steps - sum(isinstance(event, FaultInjected) for _, event in tries)
    yield from ["unsaid"] * (len(deaths) + max(0, untold))


def _right(step: StepOutcome, after: Sequence[Event]) -> bool:
    """Was its batch in the window, and is it the one that the next attempt begins with?"""
    committed = step.batch in step.evidence.checkpoint_after.get("commits", ())
    reached = (event for event in after if isinstance(event, SinkCommitted) and event.attempt == step.attempt + 1)
    began = next((event.batch for event in reached), None)
    return step.hit and began == step.batch and not committed


def ended_ms(history: Path) -> Iterator[float]:
    """From the event of the window to the driver's death."""
    seen = 0.0
    for line in read(history):
        if isinstance(line.event, SinkCommitted):
            seen = line.at_s
        if isinstance(line.event, AttemptEnded):
            yield 1000 * (line.at_s - seen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=4)
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    words: Counter[str] = Counter()
    latencies: list[float] = []
    began = monotonic()
    with tempfile.TemporaryDirectory(prefix="onceproof-bench-", dir=Path.cwd()) as name:
        folder = Path(name)
        wanted = scenario(folder)
        histories: list[Path] = []

        def play(number: int, each: Scenario) -> None:
            result = run(each, stack, reports=folder)
            words[result.verdict.word.value] += 1
            histories.append(result.folder / "history.jsonl")

        with threads(given.jobs) as pool, ProcessesStack(folder / "logs", needs=["kafka", "postgres"]) as stack:
            played([wanted] * -(-given.kills // EACH), pool, play)
        for history in histories:
            counts.update(told(history))
            latencies += ended_ms(history)
    print(f"{sum(counts.values())} tries, {given.jobs} runs at once: {dict(counts)}")
    ordered = sorted(latencies)
    shares = ", ".join(f"{ordered[int(share * (len(ordered) - 1))]:.0f}" for share in LATENCY_MS)
    print(f"from the window's event to the death, median, 90 % and most: {shares} ms")
    print(f"verdicts: {dict(words)}; {monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
