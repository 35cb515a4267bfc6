"""How surely each place of a batch is struck on YARN: an append and an upsert, ten kills of ApplicationMaster in a run,
at one place each, numbered as in docs/crash-points.md.

    PYTHONPATH=. .venv/bin/python bench/yarn_aimed.py [--only PROGRAM:PLACE]... [--record FILE] [ARGS...]

Each program and place is one run, on a new stack; ARGS are those of `onceproof run`. What it came to
becomes a line of bench/records/yarn-aimed.txt, with its commit. Those that have their ten kills of this commit
there are left out, unless `--only` names them: the bench can be ended at any time, and goes on there.

An injection counts if its evidence shows the place that was aimed at: the checkpoint after the kill, and the sink in
the snapshot. It is *elsewhere* if they show another one, and a miss if the driver was not killed. Exit code 1 if
kills are lacking, or a verdict is not the predicted one.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from harness import history
from harness.judge.exposure import PLANNED, WRITING, WRITTEN

ROOT = Path(__file__).parents[1]
RECORD = Path("bench", "records", "yarn-aimed.txt")
PROGRAMS = ("append", "upsert")
KILLS = 10
BATCHES = range(2, 2 + 2 * KILLS, 2)
RECORDS = 3600
"""So many that no batch up to the last kill is smaller than a batch may be: row 85 has to be in it."""


class Place(NamedTuple):
    """A place of a batch: in words, the trigger without its batch, and what is added to the program's name where the
    program has to say itself that it is there."""

    words: str
    when: str
    program: str = ""


PLACES = {
    "W2": Place("batch planned", "point: batch-planned"),
    "W3": Place("batch being written", "rows: 85"),
    "W6": Place("sink committed, commits/N not begun", "failpoint: sink-written", "_stoppable"),
    "W7": Place("commits/N being written", "point: sink-committed"),
    "W8": Place("batch committed", "point: batch-committed"),
}
COMMITTED = "W8"
SHOWN = {(PLANNED, False): "W2", (WRITING, False): "W3", (WRITTEN, False): "W6", (WRITTEN, True): "W7"}
"""Of a batch that is not committed, by where the sink stood, and whether a temporary file of `commits/N` is there."""
DUPLICATED = "violated: duplicated"
EXPECTED = {
    ("append", "W3"): DUPLICATED,
    ("append", "W6"): DUPLICATED,
    ("append", "W7"): DUPLICATED,
    ("append", "W8"): "untested",
    ("upsert", "W8"): "untested",
}
"""Elsewhere: held. After `commits/N` nothing is in flight, so nothing is tested."""


class Aim(NamedTuple):
    """What one run kills ten times."""

    program: str
    place: str

    def __str__(self) -> str:
        return f"{self.program}:{self.place}"

    @property
    def expected(self) -> str:
        """The verdict that is predicted, as a scenario expects it."""
        return EXPECTED.get((self.program, self.place), "held")


AIMS = {str(aim): aim for aim in (Aim(*each) for each in product(PROGRAMS, PLACES))}


class Tally(NamedTuple):
    """How the kills of a run, or of several, went."""

    right: int = 0
    misses: int = 0
    elsewhere: int = 0

    def __str__(self) -> str:
        return f"{self.right} in place, {self.misses} misses, {self.elsewhere} elsewhere"

    def plus(self, other: Tally) -> Tally:
        """Both together."""
        return Tally(*(one + more for one, more in zip(self, other, strict=True)))


class Recorded(NamedTuple):
    """What a line of the record says."""

    commit: str
    aim: str
    tally: Tally
    predicted: bool


LINE = re.compile(
    r", commit (?P<commit>[0-9a-f]+(?: with changes)?), (?P<aim>\w+:W\d): "
    r"(?P<right>\d+) in place, (?P<misses>\d+) misses, (?P<elsewhere>\d+) elsewhere; .*, (?P<wrong>not )?as predicted; "
)


def main(arguments: Sequence[str]) -> int:
    options, handed_on = parsed(arguments)
    done = finished(read(options.record), commit(options.record))
    for aim in options.only or [each for name, each in AIMS.items() if name not in done]:
        begun, now = datetime.now(UTC), commit(options.record)
        run, late = play(aim, handed_on)
        if run is None:
            print(f"{aim}: no run to report: `onceproof run` ended before its summary", file=sys.stderr)
            return 1
        recorded = line(aim, run, late, now, begun)
        print(recorded)
        with options.record.open("a", encoding="utf-8") as record:
            record.write(f"{recorded}\n")
    now = commit(options.record)
    for text in table(read(options.record), now):
        print(text)
    return 0 if {str(aim) for aim in options.only or AIMS.values()} <= finished(read(options.record), now) else 1


def parsed(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """The command line: what is for the bench, and what is handed on to `onceproof run`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--only", action="append", choices=AIMS, metavar="PROGRAM:PLACE", help=", ".join(AIMS))
    parser.add_argument("--record", type=Path, default=ROOT / RECORD, help="where the lines go")
    options, handed_on = parser.parse_known_args(arguments)
    options.only = [AIMS[name] for name in options.only or ()]
    return options, handed_on


def commit(record: Path) -> str:
    """What is tried: the commit, and whether files other than the record differ from it."""
    head = _git("rev-parse", "--short=8", "HEAD").strip()
    # The record grows meanwhile.
    own = record.resolve()
    changed = [text for text in _git("status", "--porcelain").splitlines() if (ROOT / text[3:]).resolve() != own]
    return f"{head} with changes" if changed else head


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def scenario(aim: Aim) -> str:
    """The text of a scenario file."""
    place = PLACES[aim.place]
    steps = "".join(f"  - {{when: {{{place.when}, batch: {batch}}}, do: kill driver}}\n" for batch in BATCHES)
    word, _, kind = aim.expected.partition(": ")
    return (
        f'name: "{aim}: {place.words}"\n'
        f"pipeline:\n  entry: pipelines/transactions/{aim.program}{place.program}.py\n"
        # Each kill counts for YARN.
        f'  conf: {{spark.yarn.maxAppAttempts: "{KILLS + 2}"}}\n'
        f"input: {{workload: transactions, records: {RECORDS}, keys: {RECORDS}}}\nschedule:\n{steps}"
        f"verdict: {f'{{{word}: [{kind}]}}' if kind else word}\ntimeout: 1500s\n"
    )


def play(aim: Aim, handed_on: Sequence[str]) -> tuple[Mapping[str, Any] | None, int]:
    """Do the run: its entry in the summary, None if there is none, and how many tries came too late and were followed
    by another one."""
    with TemporaryDirectory(prefix="onceproof-yarn-aimed-", dir=ROOT / "scenarios") as folder:
        path = Path(folder) / f"{aim.program}-{aim.place}.yaml"
        path.write_text(scenario(aim), encoding="utf-8")
        # A new one: a command that is refused must not leave the summary of another suite to be read.
        reports = Path(folder) / "reports"
        command = [sys.executable, "-m", "harness", "run", str(path), "--stack", "yarn", "--reports", str(reports)]
        with subprocess.Popen([*command, *handed_on], cwd=ROOT) as child:
            try:
                child.wait()
            except KeyboardInterrupt:
                # It has the signal too, and takes down what it has started.
                child.wait()
                raise
        try:
            (run,) = json.loads((reports / "latest" / "summary.json").read_text(encoding="utf-8"))["runs"]
        except (OSError, ValueError):
            return None, 0
        own = ROOT / (run["folder"] or "none") / "history.jsonl"
        lines = list(history.read(own)) if own.exists() else []
        return run, sum(isinstance(line.event, history.FaultMissed) for line in lines)


def tally(place: str, run: Mapping[str, Any], late: int) -> Tally:
    """How the kills of a run went, of its entry in the summary."""
    injected = [number for number, fault in enumerate(run["faults"], 1) if fault["injected"]]
    seen = [shown(run["faults"][number - 1], _points(run, number)) for number in injected]
    right = seen.count(place)
    return Tally(right, late + len(run["faults"]) - len(injected), len(injected) - right)


def _points(run: Mapping[str, Any], number: int) -> set[str]:
    return {exposure["point"] for exposure in run["exposures"] if exposure["step"] == number}


def shown(fault: Mapping[str, Any], points: Collection[str]) -> str:
    """Which place of a batch the evidence of an injection shows, where the sink stood at these `points`; empty if
    none."""
    after, batch = fault["evidence"].get("checkpoint_after", {}), fault["batch"]
    if batch in after.get("commits", ()):
        return COMMITTED
    if batch not in after.get("offsets", ()) or len(points) != 1:
        return ""
    (point,) = points
    return SHOWN.get((point, batch in after.get("begun", ())), "")


def line(aim: Aim, run: Mapping[str, Any], late: int, now: str, begun: datetime) -> str:
    """What the record has of a run."""
    found = ", ".join(f"{many} {kind}" for kind, many in run["findings"].items())
    verdict = f"{run['verdict']}: {found}" if found else run["verdict"]
    predicted = "as predicted" if run["as_expected"] else "not as predicted"
    counts = tally(aim.place, run, late)
    when = f"{begun:%Y-%m-%d %H:%M} UTC, commit {now}, {aim}"
    return f"{when}: {counts}; {verdict}, {predicted}; {run['seconds']:.0f} s"


def read(record: Path) -> list[Recorded]:
    """Return what the record says of runs, without its other lines."""
    lines = record.read_text(encoding="utf-8").splitlines() if record.exists() else []
    return [_recorded(found) for found in map(LINE.search, lines) if found]


def _recorded(found: re.Match[str]) -> Recorded:
    counts = Tally(*(int(found[name]) for name in ("right", "misses", "elsewhere")))
    return Recorded(found["commit"], found["aim"], counts, not found["wrong"])


def finished(recorded: Iterable[Recorded], now: str) -> set[str]:
    """The aims that have their kills of this commit, and no verdict that was not predicted."""
    own = [each for each in recorded if each.commit == now]
    wrong = {each.aim for each in own if not each.predicted}
    return {aim for aim in AIMS if _total(own, aim).right >= KILLS} - wrong


def table(recorded: Iterable[Recorded], now: str) -> Iterator[str]:
    """How the kills of this commit went, by program and place."""
    own = [each for each in recorded if each.commit == now]
    yield f"commit {now}:"
    for name, aim in AIMS.items():
        its = [each for each in own if each.aim == name]
        words = "as predicted" if all(each.predicted for each in its) else "not as predicted"
        counts = f"{_total(its, name)}, {words}" if its else "no run"
        yield f"{name} ({PLACES[aim.place].words}): {counts}"


def _total(recorded: Iterable[Recorded], aim: str) -> Tally:
    total = Tally()
    for each in recorded:
        total = total.plus(each.tally) if each.aim == aim else total
    return total


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
