"""What a scenario costs, in seconds and CPU-seconds: warm (one stack, our levers) against stock (a fresh stack for
each run, JVMs with their default flags), in one sitting, as a ratio.

    .venv/bin/python bench/scenarios.py [--rounds 3] [SCENARIO…]

CPU-seconds are those of the whole machine (/proc/stat), since half of what a run starts is killed and leaves no
account: let nothing else run beside it. Absolute times are noise on a shared machine; the ratio is the figure.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic

from harness.load import load
from harness.run.loop import run
from harness.scenario import Scenario
from harness.stack.processes import ProcessesStack

DEFAULT = ("scenarios/proving/append_before_offset_commit.yaml", "scenarios/proving/upsert_before_offset_commit.yaml")


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


def warm(scenario: Scenario, stack: ProcessesStack, reports: Path) -> Cost:
    meter = Meter()
    run(scenario, stack, reports=reports)
    return meter.cost()


def stock(scenario: Scenario, reports: Path) -> Cost:
    meter = Meter()
    with ProcessesStack(reports / "stock-logs", levers=False) as stack:
        run(scenario, stack, reports=reports)
    return meter.cost()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", type=Path, default=[Path(name) for name in DEFAULT])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    table: dict[str, dict[str, list[Cost]]] = {}
    with tempfile.TemporaryDirectory(prefix="onceproof-bench-") as folder:
        reports = Path(folder)
        for path in options.scenarios:
            scenario = load(path)
            rows = table.setdefault(path.stem, {"cold": [], "warm": [], "stock": []})
            for _ in range(options.rounds):
                # Side by side in each round, so that a slow minute of the machine hurts both.
                meter = Meter()
                with ProcessesStack(reports / "logs") as stack:
                    run(scenario, stack, reports=reports)
                    rows["cold"].append(meter.cost())
                    rows["warm"].append(warm(scenario, stack, reports))
                rows["stock"].append(stock(scenario, reports))
    print(json.dumps({name: {k: [asdict(c) for c in v] for k, v in rows.items()} for name, rows in table.items()}))
    for name, rows in table.items():
        for kind in ("cold", "warm", "stock"):
            s, c = median(rows[kind])
            base_s, base_c = median(rows["stock"])
            print(f"{name:40} {kind:6} {s:6.1f} s {c:6.1f} CPU-s   {s / base_s:4.2f} and {c / base_c:4.2f} of stock")


def median(costs: list[Cost]) -> tuple[float, float]:
    return statistics.median(c.seconds for c in costs), statistics.median(c.cpu_seconds for c in costs)


if __name__ == "__main__":
    main()
