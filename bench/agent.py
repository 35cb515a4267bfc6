"""What the agent in Spark costs: a stateful query of many batches with it and without it, turn by turn in one sitting.

    PYTHONPATH=. .venv/bin/python bench/agent.py [--rounds 5] [--batches 20]

Each operation on the checkpoint is reported, and its thread waits for the answer; nothing is held. CPU-seconds are
those of the whole machine: let nothing else run beside it.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from contextlib import closing
from pathlib import Path

from bench.scenarios import Cost, Meter
from harness.run.progress.agent import AgentServer
from tests.agent_runs import laid_out, played, with_agent


def measured(folder: Path, batches: int, *, agent_in_it: bool) -> Cost:
    """Return what one run costs."""
    laid_out(folder, batches)
    meter = Meter()
    with closing(AgentServer(lambda event: None)) as server:
        given = with_agent() if agent_in_it else {}
        done = played(folder, given, server.address if agent_in_it else "")
    if done.status != 0:
        raise SystemExit(done.log[-2000:])
    return meter.cost()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=20)
    given = parser.parse_args()
    pairs: list[tuple[Cost, Cost]] = []
    for number in range(1, given.rounds + 1):
        with tempfile.TemporaryDirectory(prefix="onceproof-bench-") as name:
            costs = {each: measured(Path(name) / f"{each}", given.batches, agent_in_it=each) for each in (False, True)}
        pairs.append((costs[False], costs[True]))
        both = ", ".join(f"{each.seconds:.1f} s and {each.cpu_seconds:.1f} CPU-s" for each in pairs[-1])
        print(f"round {number}, without and with the agent: {both}", flush=True)
    for name in ("seconds", "cpu_seconds"):
        ratios = [getattr(with_it, name) / getattr(without, name) for without, with_it in pairs]
        print(
            f"{name}, with / without: median {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
        )


if __name__ == "__main__":
    main()
