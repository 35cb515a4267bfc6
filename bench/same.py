"""Does a verdict depend on how runs are played? The proving suite one by one and side by side, with drivers that begin
cold and with standbys, all on one stack in one process; and what grows of ours meanwhile.

    PYTHONPATH=. .venv/bin/python bench/same.py [--stack processes] [--rounds 1] [--jobs 4] [-k WORD] [--into FILE]
                                            [--reports FOLDER]

Each round is four times the suite. What a run says (verdict, kinds, crash points, hits, self-tests) has to be the same
in all of them, and a driver that waited has to have been taken: else the exit code is 1. After each quarter of a round
it counts the session's processes, and the descriptors, threads and resident memory of the harness and of each server.
With `--into` each run is a line.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import psutil

from harness.errors import HarnessError, Interrupted, StackError
from harness.load import find, load_all
from harness.run.loop import run
from harness.run.plan import with_standby
from harness.run_folder.store import RunFolder
from harness.scenario import Scenario, Verdict
from harness.stack import Stack, Start
from harness.stacks.containers import ContainersStack
from harness.stacks.processes import ProcessesStack
from harness.suite.side_by_side import played, threads

CONTAINER = "/docker/"
"""In the control group of what runs in a container."""
SERVERS = ("kafka.Kafka", "deploy.master.Master", "deploy.worker.Worker", "pginstall/bin/postgres", "session/reaper")


def said(verdict: Verdict) -> dict[str, Any]:
    """What must not depend on the stack, nor on how a run was played."""
    return {
        "verdict": verdict.word,
        "as expected": verdict.as_expected,
        "kinds": sorted(verdict.kinds()),
        "steps": [(step.name, step.point, step.hit) for step in verdict.steps],
        "self-tests": dict(verdict.self_tests),
    }


def size() -> dict[str, str]:
    """Of the harness and of each server: descriptors, threads, MiB resident; and how many processes there are. Those of
    containers are found by their control group: other containers of this machine are counted too."""
    gc.collect()
    me = psutil.Process(os.getpid())
    found, others = {"harness": me}, [*me.children(recursive=True), *contained()]
    # The largest of each name: an init of a container has its server's words in its own command line.
    for process in sorted(others, key=resident, reverse=True):
        with contextlib.suppress(psutil.Error):
            line = " ".join(process.cmdline())
            for name in SERVERS:
                if name in line:
                    found.setdefault(name, process)
    out = {"processes": str(len(others))}
    for name, process in found.items():
        with contextlib.suppress(psutil.Error):
            held = f"{resident(process) / 2**20:.0f} MiB"
            out[name] = f"{process.num_fds()} fds, {process.num_threads()} threads, {held}"
    return out


def resident(process: psutil.Process) -> int:
    """In bytes; 0 for one that is gone."""
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def contained() -> list[psutil.Process]:
    """The processes of this machine's containers."""
    out = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if CONTAINER in Path(f"/proc/{process.pid}/cgroup").read_text():
                out.append(process)
    return out


class Played:
    """Plays the suite in several ways and remembers what each run said."""

    def __init__(self, stack: Stack, reports: Path, into: Path | None) -> None:
        self._stack, self._reports, self._into = stack, reports, into
        self._lock = threading.Lock()
        self.words: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        """By scenario, by what it said, the ways in which it was played."""
        self.starts: dict[str, Counter[str]] = defaultdict(Counter)
        """By way, how the attempts after a death began."""
        self.runs = 0

    def suite(self, work: Sequence[Scenario], *, jobs: int, standby: bool, number: int) -> None:
        """All of them once."""
        began, way = monotonic(), f"round {number}, {jobs} at once, {'standby' if standby else 'cold'}"
        with threads(jobs) as pool:
            played([with_standby(each, standby=standby) for each in work], pool, lambda _, each: self._one(each, way))
        seconds, restarts = monotonic() - began, dict(self.starts[way])
        print(f"{way}: {len(work)} runs in {seconds:.0f} s; restarts: {restarts}; {size()}", flush=True)

    def _one(self, scenario: Scenario, way: str) -> None:
        try:
            result = run(scenario, self._stack, reports=self._reports)
        except (Interrupted, StackError):
            raise
        except HarnessError as failure:
            self._told(scenario, way, {"verdict": "error", "why": str(failure)}, [])
            return
        folder = RunFolder.open(result.folder)
        starts = folder.read("run")["run"]["outcome"]["starts"]
        self._told(scenario, way, said(result.verdict), [each["start"] for each in starts])
        if result.verdict.as_expected:
            folder.remove()

    def _told(self, scenario: Scenario, way: str, found: Mapping[str, Any], starts: Sequence[str]) -> None:
        with self._lock:
            self.runs += 1
            self.starts[way].update(starts[1:])
            self.words[scenario.name][json.dumps(found)].append(way)
            if self._into is not None:
                line = {"scenario": scenario.name, "way": way, **found, "starts": starts}
                with self._into.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")


def differences(words: Mapping[str, Mapping[str, Sequence[str]]]) -> list[str]:
    """The scenarios that did not say the same each time, with what they said and when."""
    return [
        f"{name}: " + "; ".join(f"{text} ({', '.join(ways)})" for text, ways in found.items())
        for name, found in words.items()
        if len(found) > 1
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stack", choices=["processes", "containers"], default="processes")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("-k", dest="word", default="")
    parser.add_argument("--into", type=Path)
    parser.add_argument("--reports", type=Path, help="where the folders of runs go that were not as expected")
    given = parser.parse_args()
    files = [path for path in find([Path("scenarios/proving")]) if given.word in path.stem]
    work, kind = load_all(files), ProcessesStack if given.stack == "processes" else ContainersStack
    with tempfile.TemporaryDirectory(prefix="onceproof-bench-") as folder, kind(Path(folder) / "logs") as stack:
        suites = Played(stack, given.reports or Path(folder), given.into)
        for number in range(1, given.rounds + 1):
            for jobs in (1, given.jobs):
                for standby in (False, True):
                    suites.suite(work, jobs=jobs, standby=standby, number=number)
    differ = differences(suites.words)
    print(f"{suites.runs} runs of {len(work)} scenarios on {given.stack}; {len(differ)} scenarios differ")
    print("\n".join(differ))
    cold = [way for way, starts in suites.starts.items() if way.endswith("standby") and Start.WARM not in starts]
    print("\n".join(f"{way}: no driver that had waited was taken" for way in cold))
    return 1 if differ or cold else 0


if __name__ == "__main__":
    sys.exit(main())
