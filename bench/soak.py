"""Drawn schedules over repaired and broken pipelines on one warm stack, each verdict held against the truth.

    PYTHONPATH=. .venv/bin/python bench/soak.py N [--seed S] [--minutes M] [--keep-going] [--out FILE]
    PYTHONPATH=. .venv/bin/python bench/soak.py N --seed S --only INDEX      one schedule again, as its line has it
    PYTHONPATH=. .venv/bin/python bench/soak.py N --seed S --dry             the schedules as files, nothing is run

What the truth is. A repaired twin is never violated. For a broken one the snapshots before each restart say it, without
the judge: what its sink holds beyond (repetition) or short of (loss) what is committed will be processed again, or
never: it must be violated. With the harm only at stake (an open transaction, an orphan) it may be. Else it never is.
Held needs a stake that shows, void none or a step that missed; unknown and error are wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from random import Random, randrange
from typing import Any

from harness import store, suite
from harness.effect import Effects, Source
from harness.errors import HarnessError
from harness.judge.folder import Run as Folder
from harness.judge.folder import read_run
from harness.load import dump, load
from harness.report.summary import Run
from harness.scenario import (
    Do,
    Expect,
    Fault,
    Harm,
    Kind,
    Scenario,
    Step,
    Trigger,
    Verdict,
    Victim,
    When,
    Window,
    Word,
    plain,
)
from harness.sinks import load as load_sink
from harness.snapshot import Snapshot
from harness.wait import Deadline

PROVING = Path(__file__).parents[1] / "scenarios" / "proving"
LAST_BATCH = 5
ROWS = 20
RECORDS = 500


@dataclass(frozen=True, kw_only=True)
class Twin:
    """A pipeline of which the truth is known. `harm` is what it cannot survive, None if it is a repaired one; `total`
    the column that a sink of totals is weighed by; `own_offsets`: only its failpoints can be aimed at."""

    file: str
    harm: Harm | None = None
    kind: Kind = Kind.DUPLICATED
    total: str = ""
    failpoints: tuple[str, ...] = ()
    rows: bool = True
    own_offsets: bool = False


@cache
def proving(file: str) -> Scenario:
    """The scenario that a twin comes from."""
    return load(PROVING / f"{file}.yaml")


REPAIRED = (
    Twin(file="upsert_before_offset_commit"),
    Twin(file="partition_ledger_mid_sink"),
    Twin(file="errors_added_once", total="errors", rows=False),
    Twin(file="two_systems_upsert_between", failpoints=("first-written",)),
    Twin(file="offsets_together_at_sink_written", failpoints=("offsets-saved", "sink-written"), own_offsets=True),
    Twin(file="group_upsert_in_offset_commit", failpoints=("sink-written",), own_offsets=True),
)
AGAIN = Harm.REPETITION
BROKEN = (
    Twin(file="append_before_offset_commit", harm=AGAIN),
    Twin(file="autocommit_mid_sink", harm=AGAIN),
    Twin(file="jdbc_before_offset_commit", harm=AGAIN),
    Twin(file="errors_added", harm=AGAIN, kind=Kind.WRONG_AGGREGATE, total="errors", rows=False),
    Twin(file="two_systems_append_between", harm=AGAIN, failpoints=("first-written",)),
    Twin(file="offsets_after_the_sink", harm=AGAIN, failpoints=("sink-written",), own_offsets=True),
    Twin(file="group_append_in_offset_commit", harm=AGAIN, failpoints=("sink-written",), own_offsets=True),
    Twin(
        file="offsets_before_the_sink", harm=Harm.LOSS, kind=Kind.LOST, failpoints=("offsets-saved",), own_offsets=True
    ),
)


class Truth(StrEnum):
    """What the verdict on a run has to be: violated, perhaps, or not."""

    MUST = "must"
    MAY = "may"
    NEVER = "never"


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """One schedule, and the pipeline that it is for. The same seed and index give the same one."""

    seed: int
    index: int
    twin: Twin
    schedule: tuple[Step, ...]

    def scenario(self) -> Scenario:
        """What is run."""
        base = proving(self.twin.file)
        word = Expect(word=Word.VIOLATED, kinds=(self.twin.kind,)) if self.twin.harm else Expect()
        name = f"soak {self.seed}/{self.index}: {self.twin.file}"
        return replace(base, name=name, schedule=self.schedule, expect=word, seed=self.seed + self.index)


def draw(seed: int, index: int) -> Drawn:
    """Even places have a repaired twin, odd ones a broken one."""
    random = Random(f"{seed}/{index}")
    twin = random.choice(BROKEN if index % 2 else REPAIRED)
    batch, steps = 0, []
    count = random.choice((1, 1, 2, 3))
    for _ in range(count):
        batch += random.randint(1, 2) if batch < LAST_BATCH - 1 else 1
        if batch > LAST_BATCH:
            break
        steps.append(_step(random, twin, batch, alone=count == 1))
    return Drawn(seed=seed, index=index, twin=twin, schedule=tuple(steps))


def _step(random: Random, twin: Twin, batch: int, *, alone: bool) -> Step:
    when = random.choice(list(_moments(random, twin, batch, alone=alone)))
    fault = random.choice(list(_faults(when)))
    return Step(when=when, do=fault, name=str(fault.kind if fault.victim is Victim.TREE else fault))


def _moments(random: Random, twin: Twin, batch: int, *, alone: bool) -> Iterator[Trigger]:
    for name in twin.failpoints:
        yield Trigger(kind=When.FAILPOINT, failpoint=name, batch=batch)
    if twin.own_offsets:
        return
    for window in Window:
        # Between two batches nothing is at stake: by itself such a step makes the run void, rightly and for nothing.
        if window is not Window.OFFSETS_COMMITTED or not alone:
            yield Trigger(kind=When.WINDOW, window=window, batch=batch)
    if twin.rows:
        yield Trigger(kind=When.ROWS, count=random.randint(1, ROWS), batch=batch)
    yield Trigger(kind=When.RECORDS, count=random.randint(1, RECORDS))
    yield Trigger(kind=When.ELAPSED, elapsed_s=random.randint(1, 40) / 10)


def _faults(when: Trigger) -> Iterator[Fault]:
    yield Fault(kind=Do.KILL_DRIVER)
    yield Fault(kind=Do.CRASH_APPLICATION)
    if when.kind is not When.FAILPOINT:
        # There the Python program stands still, and would outlive its JVM.
        yield Fault(kind=Do.KILL_DRIVER, victim=Victim.JVM)
    if when.window is Window.OFFSETS_WRITTEN:
        # Later on the JVM would commit the batch before it notices.
        yield Fault(kind=Do.KILL_DRIVER, victim=Victim.PYTHON)
    if when.kind is When.ROWS:
        yield Fault(kind=Do.KILL_EXECUTOR, which="one")
        yield Fault(kind=Do.KILL_EXECUTOR, which="all")
    if when.kind in (When.RECORDS, When.ELAPSED):
        yield Fault(kind=Do.STOP_DRIVER)


@dataclass(frozen=True, kw_only=True)
class Ahead:
    """How a sink stood before one restart: rows (or the sum of its totals) beyond what was committed, below zero if
    short of it; and the batches that were planned and not committed, None where no query has any."""

    surplus: tuple[int, ...]
    batches: frozenset[int] | None = None


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A run as it is held against the truth."""

    verdict: Verdict
    ahead: tuple[Ahead, ...] = ()

    def certain(self, harm: Harm) -> bool:
        """Do the snapshots show that something will be processed again, or never?"""
        sign = 1 if harm is Harm.REPETITION else -1
        return any(sign * surplus > 0 for each in self.ahead for surplus in each.surplus)

    @property
    def shown(self) -> bool:
        return any(stake.shown for stake in self.verdict.stakes)

    @property
    def missed(self) -> bool:
        return any(not step.hit for step in self.verdict.steps)


def truth(twin: Twin, seen: Seen) -> Truth:
    """What the verdict has to be."""
    if twin.harm is None:
        return Truth.NEVER
    if seen.certain(twin.harm):
        return Truth.MUST
    staked = any(stake.harm is twin.harm for stake in seen.verdict.stakes)
    return Truth.MAY if staked else Truth.NEVER


def wrong(twin: Twin, seen: Seen) -> str:
    """Why the verdict is not the right one; empty if it is."""
    word, asked = seen.verdict.word, truth(twin, seen)
    if word in (Word.ERROR, Word.UNKNOWN):
        return f"{word}: {'; '.join(seen.verdict.reasons)[:500]}"
    if word is Word.VIOLATED:
        return (
            "violated, and nothing that it cannot survive was at stake" if asked is Truth.NEVER else _named(twin, seen)
        )
    if asked is Truth.MUST:
        return f"{word}, and the snapshots show that it cannot be"
    if word is Word.HELD and not seen.shown:
        return "held, and nothing that was at stake would show"
    if word is Word.VOID and seen.shown and not seen.missed:
        return f"void, and what was at stake would show: {'; '.join(seen.verdict.reasons)[:500]}"
    return ""


def _named(twin: Twin, seen: Seen) -> str:
    """Kind, batch and fault of a violation."""
    verdict = seen.verdict
    kinds = {finding.kind for finding in verdict.findings} - {Kind.RECOVERED}
    if kinds != {twin.kind}:
        return f"violated by {', '.join(sorted(kinds))}, not by {twin.kind}"
    caused = [finding for finding in verdict.findings if finding.faults]
    if not caused:
        return "violated, and no fault is named"
    hits = {step.batch for step in verdict.steps if step.hit and step.batch is not None}
    planned = {batch for each in seen.ahead for batch in each.batches or ()}
    possible = planned or hits
    blamed = {batch for finding in caused for batch in finding.batches}
    if possible and not blamed <= possible:
        return f"batches {sorted(blamed)} are blamed, and only {sorted(possible)} were in hand"
    if not any(stake.harm is twin.harm for stake in verdict.stakes):
        return f"violated, and no {twin.harm} was said to be at stake"
    return ""


def ahead(folder: Path, twin: Twin) -> tuple[Ahead, ...]:
    """How each sink stood before each restart, from the snapshots of a run folder. Raises HarnessError for damage."""
    rooms = sorted((folder / "snapshots").glob("*-restart"))
    if not rooms:
        return ()
    run = read_run(folder)
    return tuple(_ahead(run, room, twin) for room in rooms)


def _ahead(run: Folder, room: Path, twin: Twin) -> Ahead:
    text = (room / "snapshot.json").read_text(encoding="utf-8")
    snapshot: Snapshot = store.noun(Snapshot, json.loads(text), str(room))
    ours = [query for query in snapshot.queries if query.ours]
    done = snapshot.position if snapshot.position is not None else (ours[0].committed if ours else {})
    source = Source(parquet=run.source, columns=run.columns, frontier=done)
    surplus = []
    with Effects(source, where=f"scenario `{run.scenario.name}`") as effects:
        for place, sink in enumerate(run.scenario.sinks):
            found, effect = load_sink(room, place), effects.table(sink.effect or "", behind=True)
            if found is None or found.unreadable:
                continue
            names = [column.name for column in found.columns]
            held = weight(names, found.rows, twin.total)
            surplus.append(held - weight(effect.columns, effect.rows, twin.total))
    batches = frozenset(batch for query in ours for batch in set(query.offsets) - set(query.commits))
    return Ahead(surplus=tuple(surplus), batches=batches if ours else None)


def weight(names: Sequence[str], rows: Sequence[Sequence[str | None]], total: str) -> int:
    """How many rows, or the sum of the column `total`."""
    if not total:
        return len(rows)
    place = list(names).index(total)
    return sum(int(row[place] or 0) for row in rows)


def line(drawn: Drawn, run: Run, seen: Seen) -> dict[str, Any]:
    """One run as the file of lines keeps it."""
    verdict = run.verdict
    caused = [finding for finding in verdict.findings if finding.faults]
    return {
        "seed": drawn.seed,
        "index": drawn.index,
        "twin": drawn.twin.file,
        "broken": drawn.twin.harm is not None,
        "schedule": [f"{step.do} at {step.when}" for step in drawn.schedule],
        "steps": [plain(step) for step in drawn.schedule],
        "truth": truth(drawn.twin, seen).value,
        "wrong": wrong(drawn.twin, seen),
        "verdict": verdict.word.value,
        "kinds": verdict.kinds(),
        "batches": sorted({batch for finding in caused for batch in finding.batches}),
        "faults": sorted({fault for finding in caused for fault in finding.faults}),
        "stakes": [f"{stake.step}: {stake.harm}: {stake.shown}: {stake.note}" for stake in verdict.stakes],
        "surplus": [list(each.surplus) for each in seen.ahead],
        "hits": [step.hit for step in verdict.steps],
        "reasons": list(verdict.reasons),
        "seconds": round(run.seconds, 1),
        "folder": str(run.folder) if run.folder else None,
    }


def counted(lines: Iterable[dict[str, Any]]) -> str:
    """The words against the truth, for repaired and for broken twins."""
    words = [word.value for word in Word]
    rows = [["twins", "violated?", *words, "wrong"]]
    kept = list(lines)
    for broken, asked in ((False, Truth.NEVER), *((True, each) for each in Truth)):
        own = [each for each in kept if each["broken"] == broken and each["truth"] == asked]
        tally = Counter(each["verdict"] for each in own)
        bad = sum(bool(each["wrong"]) for each in own)
        name = "broken" if broken else "repaired"
        rows.append([name, asked.value, *(str(tally[word]) for word in words), str(bad)])
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)


@dataclass
class Soak:
    """The runs of one sitting."""

    options: argparse.Namespace
    lines: list[dict[str, Any]] = field(default_factory=list)

    def run(self, work: Sequence[Drawn]) -> None:
        """Run each until one is wrong (but see `--keep-going`) or the time is up."""
        given, deadline = suite.Options(reports=self.options.reports), Deadline(self.options.minutes * 60)
        with suite.signals(), suite.only_suite(given.reports), suite.up(given) as stack:
            for drawn in work:
                if deadline.over():
                    print(f"the time is up after {len(self.lines)} of {len(work)} schedules")
                    return
                stack.health()
                run = suite.one(drawn.scenario(), stack, options=given, listener=lambda event: None)
                if self.add(drawn, run) and not self.options.keep_going:
                    return

    def add(self, drawn: Drawn, run: Run) -> bool:
        """Keep one run's line, and its folder if it is wrong; True if it is."""
        entry = self._entry(drawn, run)
        if not entry["wrong"] and run.folder and not self.options.keep:
            store.RunFolder.open(run.folder).remove()
            entry["folder"] = None
        self.lines.append(entry)
        self.options.out.parent.mkdir(parents=True, exist_ok=True)
        with self.options.out.open("a", encoding="utf-8") as out:
            out.write(json.dumps(entry, default=str) + "\n")
        said = f"WRONG: {entry['wrong']}" if entry["wrong"] else "right"
        schedule = "; ".join(entry["schedule"])
        print(f"{drawn.index} {drawn.twin.file}: {schedule}: {entry['verdict']} ({entry['truth']}): {said}", flush=True)
        return bool(entry["wrong"])

    def _entry(self, drawn: Drawn, run: Run) -> dict[str, Any]:
        try:
            # A run that ended in an error may have left half a folder.
            found = ahead(run.folder, drawn.twin) if run.folder and run.verdict.word is not Word.ERROR else ()
        except (HarnessError, OSError, ValueError) as failure:
            return line(drawn, run, Seen(verdict=run.verdict)) | {"wrong": f"its snapshots are not readable: {failure}"}
        return line(drawn, run, Seen(verdict=run.verdict, ahead=found))


def asked(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, metavar="N", help="how many schedules; every second one on a broken twin")
    parser.add_argument("--seed", type=int, default=None, help="of the schedules; drawn and said if it is left out")
    parser.add_argument("--only", type=int, default=None, metavar="INDEX", help="this one alone")
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no run after so long")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the first wrong verdict")
    parser.add_argument("--keep", action="store_true", help="keep the folders of right verdicts too")
    parser.add_argument("--reports", type=Path, default=Path("reports/soak"))
    parser.add_argument("--out", type=Path, default=None, help="the file of lines; REPORTS/soak-SEED.jsonl")
    parser.add_argument("--dry", action="store_true", help="print the schedules and run nothing")
    found = parser.parse_args(arguments)
    found.seed = randrange(10**6) if found.seed is None else found.seed
    found.out = found.out or found.reports / f"soak-{found.seed}.jsonl"
    return found


def main() -> int:
    options = asked()
    work = [draw(options.seed, index) for index in range(options.count) if options.only in (None, index)]
    if not work:
        print(f"asked for schedule {options.only} of {options.count}; they count from 0", file=sys.stderr)
        return 2
    if options.dry:
        print("---\n".join(dump(drawn.scenario()) for drawn in work))
        return 0
    print(f"seed {options.seed}; lines in {options.out}")
    soak = Soak(options)
    try:
        soak.run(work)
    except HarnessError as failure:
        print(failure, file=sys.stderr)
        return failure.exit_code
    finally:
        print(counted(soak.lines))
    return 1 if any(each["wrong"] for each in soak.lines) else 0


if __name__ == "__main__":
    sys.exit(main())
