"""What a scenario costs, in seconds and CPU-seconds: cold (the stack comes up for it) and warm (it is up already)
against stock (a fresh stack for each run, JVMs with their default flags), and the stack `containers` against
`processes`; in one sitting, as ratios.

    PYTHONPATH=. .venv/bin/python bench/scenarios.py [--rounds 3] [--by-hand] [--jobs N]... [--containers] [SCENARIO…]

CPU-seconds are those of the whole machine (/proc/stat), since half of what a run starts is killed and leaves no
account: let nothing else run beside it. Absolute times are noise on a shared machine; the ratio is the figure.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic

from bench.naive import naive
from harness.load import load
from harness.run.loop import run
from harness.scenario import Scenario
from harness.stack import Stack
from harness.stacks.containers.stack import ContainersStack
from harness.stacks.processes.stack import ProcessesStack
from harness.suite.side_by_side import played as side_by_side
from harness.suite.side_by_side import threads

DEFAULT = ("scenarios/proving/append_before_offset_commit.yaml", "scenarios/proving/upsert_before_offset_commit.yaml")
AGAINST = {
    "cold": "stock",
    "warm": "stock",
    "stock": "stock",
    "by hand": "stock",
    "containers cold": "cold",
    "containers warm": "warm",
}
"""Each kind of run, with the one that it is a ratio of."""


def against(kind: str) -> str:
    """Runs of which some are played at once are a ratio of a run by itself."""
    return AGAINST.get(kind, "warm")


@dataclass(frozen=True)
class Cost:
    seconds: float
    cpu_seconds: float


class Meter:
    """Wall and machine-wide CPU time between two points."""

    def __init__(self) -> None:
        self._began, self._busy = monotonic(), busy_s()

    def cost(self) -> Cost:
        return Cost(monotonic() - self._began, busy_s() - self._busy)


def busy_s() -> float:
    """Seconds that the machine's processors have not been idle, all together."""
    words = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:]
    ticks = [int(word) for word in words]
    return (sum(ticks[:8]) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def on_one_stack(
    scenario: Scenario, kind: type[ProcessesStack | ContainersStack], reports: Path, jobs: Sequence[int] = ()
) -> dict[str, Cost]:
    """A run for which the stack comes up, and another one on it. For each of `jobs` one of so many at once, as its
    share of what they cost together."""
    meter = Meter()
    with kind(reports / "logs") as stack:
        costs = {"cold": played(scenario, stack, reports, meter), "warm": played(scenario, stack, reports, Meter())}
        for many in jobs:
            meter = Meter()
            with threads(many) as pool:
                side_by_side([scenario] * many, pool, lambda number, each: _right(each, stack, reports))
            whole = meter.cost()
            costs[f"{many} at once"] = Cost(whole.seconds / many, whole.cpu_seconds / many)
    return costs


def stock(scenario: Scenario, reports: Path) -> Cost:
    """A run with a stack for itself, with a JVM's default flags."""
    meter = Meter()
    with ProcessesStack(reports / "stock-logs", tuned=False) as stack:
        return played(scenario, stack, reports, meter)


def played(scenario: Scenario, stack: Stack, reports: Path, meter: Meter) -> Cost:
    _right(scenario, stack, reports)
    return meter.cost()


def _right(scenario: Scenario, stack: Stack, reports: Path) -> None:
    verdict = run(scenario, stack, reports=reports).verdict
    if not verdict.as_expected:
        raise SystemExit(f"{scenario.name} on {stack.name}: {verdict.word}; nothing to compare: {verdict.reasons}")


def measure(
    scenario: Scenario, reports: Path, *, containers: bool, by_hand: bool, jobs: Sequence[int]
) -> dict[str, Cost]:
    """One round: everything side by side, so that a slow minute of the machine is one of all."""
    kinds = on_one_stack(scenario, ProcessesStack, reports, jobs)
    kinds["stock"] = stock(scenario, reports)
    if by_hand:
        meter = Meter()
        with tempfile.TemporaryDirectory(prefix="onceproof-naive-") as folder:
            if not naive(Path(folder)):
                raise SystemExit("the script by hand says that a payment is not in the table once")
        kinds["by hand"] = meter.cost()
    if containers:
        kinds |= {f"containers {kind}": cost for kind, cost in on_one_stack(scenario, ContainersStack, reports).items()}
    return kinds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", type=Path, default=[Path(name) for name in DEFAULT])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--by-hand", action="store_true", help="also the script of bench/naive.py, of upsert alone")
    parser.add_argument("--jobs", type=int, action="append", default=[], help="also so many runs at once")
    parser.add_argument("--containers", action="store_true", help="also in containers; needs an engine with the images")
    options = parser.parse_args()
    table: dict[str, list[dict[str, Cost]]] = {}
    with tempfile.TemporaryDirectory(prefix="onceproof-bench-") as folder:
        for path in options.scenarios:
            table[path.stem] = [
                measure(
                    load(path),
                    Path(folder),
                    containers=options.containers,
                    by_hand=options.by_hand,
                    jobs=options.jobs,
                )
                for _ in range(options.rounds)
            ]
    plain = {name: [{kind: asdict(cost) for kind, cost in row.items()} for row in rows] for name, rows in table.items()}
    print(json.dumps(plain))
    for name, rows in table.items():
        for kind in rows[0]:
            s, c = median([row[kind] for row in rows])
            base_s, base_c = median([row[against(kind)] for row in rows])
            of = f"{s / base_s:4.2f} and {c / base_c:4.2f} of {against(kind)}"
            print(f"{name:36} {kind:15} {s:6.1f} s {c:6.1f} CPU-s   {of}")


def median(costs: list[Cost]) -> tuple[float, float]:
    return statistics.median(c.seconds for c in costs), statistics.median(c.cpu_seconds for c in costs)


if __name__ == "__main__":
    main()
