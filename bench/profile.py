"""Where the CPU-seconds of a warm run go: by process, and by phase of the run.

    .venv/bin/python bench/profile.py [--rounds 3] [SCENARIO]

A second process reads the process table every 30 ms. What a process that is killed did in its last 30 ms is not seen,
nor are children that live for less (Spark's `chmod` and `readlink`).
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import tempfile
import time
from collections import defaultdict
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path

from harness.history import AttemptEnded, AttemptStarted, BatchCommitted, Event, Judged, OfBatch, Phase, read
from harness.load import load
from harness.run.loop import run
from harness.scenario import Scenario
from harness.stacks.processes.stack import ProcessesStack

SCENARIO = "scenarios/proving/upsert_before_offset_commit.yaml"
EVERY_S = 0.03
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
KINDS = (
    ("executor JVM", "CoarseGrainedExecutorBackend"),
    ("driver JVM", "org.apache.spark.deploy.SparkSubmit"),
    ("driver: scripts", "spark-submit"),
    ("master and worker", "org.apache.spark.deploy.master.Master"),
    ("master and worker", "org.apache.spark.deploy.worker.Worker"),
    ("Python workers", "pyspark.daemon"),
    ("Python workers", "pyspark.worker"),
    ("broker", "kafka.Kafka"),
    ("Postgres", "postgres"),
    ("driver: Python", "pipelines/"),
)
"""The kind of a process by a part of its command line; the first that fits counts."""
Seen = dict[tuple[int, int], tuple[str, float]]
"""For each process (pid, start): its kind and its CPU-seconds."""


Table = dict[str, dict[str, float]]
"""CPU-seconds by kind of process and phase."""


def kind(pid: int, owner: int) -> str:
    if pid == owner:
        return "harness"
    try:
        text = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return "other"
    return next((name for name, sign in KINDS if sign in text), "other")


def snapshot(owner: int, ours: int, known: dict[tuple[int, int], str]) -> Seen:
    """Return every process of the machine but this one."""
    out = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == ours:
            continue
        try:
            text = (folder / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        fields = text[text.rindex(")") + 2 :].split()
        at = (int(folder.name), int(fields[19]))
        if known.get(at, "other") in ("other", "driver: scripts"):
            known[at] = kind(int(folder.name), owner)
        out[at] = (known[at], (int(fields[11]) + int(fields[12])) * TICK_S)
    return out


def sampler(owner: int, pipe: Connection) -> None:
    """Take samples until the pipe has a message."""
    samples: list[tuple[float, Seen]] = []
    known: dict[tuple[int, int], str] = {}
    while not pipe.poll(EVERY_S):
        samples.append((time.time(), snapshot(owner, os.getpid(), known)))
    pipe.send(samples)


def spent(samples: list[tuple[float, Seen]]) -> list[tuple[float, str, float]]:
    """When, what kind of process, and the CPU-seconds since the sample before."""
    out: list[tuple[float, str, float]] = []
    for (_, before), (at, seen) in pairwise(samples):
        out += [(at, name, own - before.get(process, (name, 0.0))[1]) for process, (name, own) in seen.items()]
    return out


def phases(folder: Path, began: float) -> list[tuple[float, str]]:
    """When each phase of the run ends, by the history."""
    lines = list(read(folder / "history.jsonl"))
    begun = {line.event.name: line.at_s for line in lines if isinstance(line.event, Phase)}
    out, attempt = [], 0

    def first(kind: type[Event], after_s: float = 0.0) -> float:
        return next(line.at_s for line in lines if line.at_s > after_s and isinstance(line.event, kind))

    out.append((first(AttemptStarted), "set up"))
    out.append((first(OfBatch), "launch to the query's beginning"))
    out.append((first(BatchCommitted), "its first batch"))
    for line in lines:
        if isinstance(line.event, AttemptEnded):
            attempt += 1
            out.append((line.at_s, f"attempt {attempt} until it is killed"))
            out.append((first(BatchCommitted, line.at_s), "kill to the next commit"))
    out.append((begun["catching up"], "the rest of the input"))
    out.append((begun["reading"], "catch up"))
    out.append((first(Judged), "read, judge"))
    out.append((float("inf"), "save"))
    return [(began + at, name) for at, name in sorted(out)]


def measure(scenario: Scenario, stack: ProcessesStack, reports: Path) -> tuple[Table, dict[str, float]]:
    """CPU-seconds by kind of process and phase, and how long each phase took."""
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=sampler, args=(os.getpid(), theirs), daemon=True)
    child.start()
    began = time.time()
    result = run(scenario, stack, reports=reports)
    ended = time.time()
    ours.send("stop")
    samples = ours.recv()
    child.join()
    ends = phases(result.folder, began)
    table: Table = defaultdict(lambda: defaultdict(float))
    for at, name, cpu in spent(samples):
        table[name][next(label for end, label in ends if at <= end)] += cpu
    starts = [began, *(end for end, _ in ends)]
    return table, {label: min(end, ended) - start for start, (end, label) in zip(starts, ends, strict=False)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", nargs="?", type=Path, default=Path(SCENARIO))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    scenario = load(options.scenario)
    with tempfile.TemporaryDirectory(prefix="onceproof-bench-") as name, ProcessesStack(Path(name) / "logs") as stack:
        run(scenario, stack, reports=Path(name))
        rounds = [measure(scenario, stack, Path(name)) for _ in range(options.rounds)]
    labels = list(rounds[0][1])
    kinds = sorted({kind for table, _ in rounds for kind in table}, key=lambda kind: -sum(rounds[0][0][kind].values()))
    print(f"{'':20}" + "".join(f"{label[:18]:>20}" for label in labels) + f"{'all':>8}")
    lines = {"seconds": [statistics.median(lengths[label] for _, lengths in rounds) for label in labels]}
    for each in kinds:
        lines[each] = [statistics.median(table[each][label] for table, _ in rounds) for label in labels]
    lines["CPU-seconds"] = [
        sum(row[at] for kind, row in lines.items() if kind != "seconds") for at in range(len(labels))
    ]
    for each, row in lines.items():
        print(f"{each:20}" + "".join(f"{value:20.2f}" for value in row) + f"{sum(row):8.2f}")


if __name__ == "__main__":
    main()
