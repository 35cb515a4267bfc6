"""Peak memory of the whole stack with one run in flight: the sum of the proportional set sizes (PSS) of every process
of the session, the harness included, sampled while a scenario runs.

    .venv/bin/python bench/memory.py [SCENARIO]
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from pathlib import Path

import psutil

from harness.load import load
from harness.run.loop import run
from harness.stacks.processes import ProcessesStack

EVERY_S = 0.25
DEFAULT = "scenarios/proving/autocommit_executor_killed.yaml"


def pss(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.Error:
        return 0


def name(process: psutil.Process) -> str:
    line = " ".join(process.cmdline())
    kinds = ("kafka.Kafka", "deploy.master", "deploy.worker", "SparkSubmit", "CoarseGrained", "pyspark", "postgres")
    return next((kind for kind in kinds if kind in line), "python")


class Sampler(threading.Thread):
    """Remembers the highest sum and what it was made of."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.stop = threading.Event()
        self.peak = 0
        self.parts: dict[str, int] = {}

    def run(self) -> None:
        me = psutil.Process(os.getpid())
        while not self.stop.wait(EVERY_S):
            parts: dict[str, int] = {}
            for process in [me, *me.children(recursive=True)]:
                try:
                    parts[name(process)] = parts.get(name(process), 0) + pss(process)
                except psutil.Error:
                    continue
            if sum(parts.values()) > self.peak:
                self.peak, self.parts = sum(parts.values()), parts


def main() -> None:
    scenario = load(Path(sys.argv[1] if len(sys.argv) > 1 else DEFAULT))
    with tempfile.TemporaryDirectory(prefix="onceproof-bench-") as folder:
        sampler = Sampler()
        sampler.start()
        with ProcessesStack(Path(folder) / "logs") as stack:
            result = run(scenario, stack, reports=Path(folder))
        sampler.stop.set()
        sampler.join()
    print(f"{scenario.name}: {result.verdict.word}; peak {sampler.peak / 2**20:,.0f} MiB")
    for part, size in sorted(sampler.parts.items(), key=lambda item: -item[1]):
        print(f"  {size / 2**20:8,.0f} MiB  {part}")


if __name__ == "__main__":
    main()
