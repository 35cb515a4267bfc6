"""Peak memory of the whole stack with runs in flight: the sum of the proportional set sizes (PSS) of every process of
the session, the harness included, sampled while a scenario runs.

    PYTHONPATH=. .venv/bin/python bench/memory.py [SCENARIO] [--jobs N]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from harness.load import load
from harness.run.loop import run
from harness.session.reaper import MARKER
from harness.stacks.processes.stack import ProcessesStack

EVERY_S = 0.25
MARK = f"{MARKER}=".encode()
"""In the environment of each process of a session, of whatever command: nothing else may run meanwhile."""
DEFAULT = Path("scenarios/proving/autocommit_executor_killed.yaml")


def pss(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.Error:
        return 0


def name(process: psutil.Process) -> str:
    line = " ".join(process.cmdline())
    kinds = ("kafka.Kafka", "deploy.master", "deploy.worker", "SparkSubmit", "CoarseGrained", "pyspark", "postgres")
    return next((kind for kind in kinds if kind in line), "python")


def marked() -> list[psutil.Process]:
    """Those of a session without a parent: executors of a driver that was killed."""
    found = []
    for pid in psutil.pids():
        with contextlib.suppress(OSError, psutil.Error):
            if MARK in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(psutil.Process(pid))
    return found


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
            for process in {me, *me.children(recursive=True), *marked()}:
                try:
                    parts[name(process)] = parts.get(name(process), 0) + pss(process)
                except psutil.Error:
                    continue
            if sum(parts.values()) > self.peak:
                self.peak, self.parts = sum(parts.values()), parts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", nargs="?", default=DEFAULT, type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    scenario = load(given.scenario)
    with tempfile.TemporaryDirectory(prefix="onceproof-bench-") as folder:
        sampler = Sampler()
        sampler.start()
        with ProcessesStack(Path(folder) / "logs") as stack, ThreadPoolExecutor(given.jobs) as pool:
            runs = [pool.submit(run, scenario, stack, reports=Path(folder)) for _ in range(given.jobs)]
            words = [each.result().verdict.word.value for each in runs]
        sampler.stop.set()
        sampler.join()
    print(f"{scenario.name}, {given.jobs} at once: {', '.join(words)}; peak {sampler.peak / 2**20:,.0f} MiB")
    for part, size in sorted(sampler.parts.items(), key=lambda item: -item[1]):
        print(f"  {size / 2**20:8,.0f} MiB  {part}")


if __name__ == "__main__":
    main()
