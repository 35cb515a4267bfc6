"""Pipelines of which the truth is known, fixed and broken ones, and schedules drawn for them from a seed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random

from harness.faults import fault
from harness.load import load
from harness.nightly.draw import batches
from harness.nightly.possible import exposes
from harness.scenario import (
    CrashPoint,
    Expected,
    Fault,
    Guarantee,
    Harm,
    Kind,
    Scenario,
    Step,
    Trigger,
    Victim,
    Word,
)
from harness.triggers import trigger

PROVING = Path(__file__).parents[1] / "scenarios" / "proving"
LAST_BATCH = 5
ROWS = 20
APART = 60
RECORDS = 500


@dataclass(frozen=True, kw_only=True)
class Version:
    """A pipeline of which the truth is known under a guarantee. `harm` is what it cannot survive and the guarantee
    forbids, None if it keeps it; `total` the column that a sink of totals is weighed by; `own_offsets`: only its
    failpoints can be aimed at, and with `rows` the rows in its sink."""

    file: str
    harm: Harm | None = None
    kind: Kind = Kind.DUPLICATED
    total: str = ""
    failpoints: tuple[str, ...] = ()
    rows: bool = True
    own_offsets: bool = False
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE

    @property
    def name(self) -> str:
        """No two versions have the same."""
        return self.file if self.guarantee is Guarantee.EXACTLY_ONCE else f"{self.file}, {self.guarantee}"


@cache
def proving(file: str) -> Scenario:
    """The scenario that a version comes from."""
    return load(PROVING / f"{file}.yaml")


AT_LEAST, AT_MOST = Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE
FIXED = (
    Version(file="upsert_before_offset_commit"),
    Version(file="partition_ledger_mid_sink"),
    Version(file="errors_added_once", total="errors", rows=False),
    Version(file="two_systems_upsert_between", failpoints=("first-written",)),
    Version(
        file="offsets_together_at_sink_written",
        failpoints=("offsets-saved", "sink-written"),
        rows=False,
        own_offsets=True,
    ),
    Version(file="group_upsert_in_offset_commit", failpoints=("sink-written",), rows=False, own_offsets=True),
    Version(file="append_before_offset_commit", guarantee=AT_LEAST),
    Version(file="offsets_before_the_sink", own_offsets=True, guarantee=AT_MOST),
)
AGAIN = Harm.REPETITION
LOSES = Version(
    file="offsets_before_the_sink",
    harm=Harm.LOSS,
    kind=Kind.LOST,
    failpoints=("offsets-saved",),
    rows=False,
    own_offsets=True,
)
BROKEN = (
    Version(file="append_before_offset_commit", harm=AGAIN),
    Version(file="autocommit_mid_sink", harm=AGAIN),
    Version(file="jdbc_before_offset_commit", harm=AGAIN),
    Version(file="errors_added", harm=AGAIN, kind=Kind.WRONG_AGGREGATE, total="errors", rows=False),
    Version(file="two_systems_append_between", harm=AGAIN, failpoints=("first-written",)),
    Version(file="offsets_after_the_sink", harm=AGAIN, failpoints=("sink-written",), rows=False, own_offsets=True),
    Version(
        file="group_append_in_offset_commit", harm=AGAIN, failpoints=("sink-written",), rows=False, own_offsets=True
    ),
    LOSES,
    replace(LOSES, guarantee=AT_LEAST),
    Version(file="append_before_offset_commit", harm=AGAIN, guarantee=AT_MOST),
)


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """One schedule, and the pipeline that it is for. The same seed and index give the same one."""

    seed: int
    index: int
    version: Version
    schedule: tuple[Step, ...]

    def scenario(self) -> Scenario:
        """What is run."""
        base = proving(self.version.file)
        word = Expected(word=Word.VIOLATED, kinds=(self.version.kind,)) if self.version.harm else Expected()
        name = f"soak {self.seed}/{self.index}: {self.version.name}"
        changed = replace(base, name=name, schedule=self.schedule, verdict=word, guarantee=self.version.guarantee)
        return replace(changed, seed=self.seed + self.index)


def draw(seed: int, index: int) -> Drawn:
    """Even places have a fixed version, odd ones a broken one."""
    random = Random(f"{seed}/{index}")
    version = random.choice(BROKEN if index % 2 else FIXED)
    steps: list[Step] = []
    kept = batches(random, LAST_BATCH)
    for place, batch in enumerate(kept, 1):
        idle = place == len(kept) and not any(exposes(step.when) for step in steps)
        steps.append(_step(random, version, batch, idle=idle))
    return Drawn(seed=seed, index=index, version=version, schedule=tuple(steps))


def named(name: str) -> tuple[int, int, Version]:
    """Return seed, index and version by the name that `Drawn.scenario` gave. Raises ValueError for another name."""
    found = re.fullmatch(r"soak (\d+)/(\d+): (.+)", name)
    if found:
        seed, index = int(found[1]), int(found[2])
        for version in BROKEN if index % 2 else FIXED:
            if version.name == found[3]:
                return seed, index, version
    raise ValueError(f"{name!r} is no scenario of a soak")


def _step(random: Random, version: Version, batch: int, *, idle: bool) -> Step:
    """A step in a batch. With `idle` none before it exposes anything: then it has to."""
    when = random.choice(list(_triggers(random, version, batch, idle=idle)))
    return Step(when=when, do=random.choice(list(_faults(when))))


def _triggers(random: Random, version: Version, batch: int, *, idle: bool) -> Iterator[Trigger]:
    for name in version.failpoints:
        yield trigger("failpoint", name, batch=batch)
    if version.own_offsets:
        if version.rows:
            # No file says when its batches begin: all rows are counted, and each step comes after the one before.
            yield trigger("rows", APART * batch + random.randint(1, ROWS))
        return
    for point in (CrashPoint.BATCH_PLANNED, CrashPoint.SINK_COMMITTED, CrashPoint.BATCH_COMMITTED):
        # A run of nothing but these would be untested, rightly and for nothing.
        if point is not CrashPoint.BATCH_COMMITTED or not idle:
            yield trigger("point", point, batch=batch)
    if version.rows:
        yield trigger("rows", random.randint(1, ROWS), batch=batch)
    yield trigger("records", random.randint(1, RECORDS))
    yield trigger("elapsed", random.randint(1, 40) / 10)


def _faults(when: Trigger) -> Iterator[Fault]:
    yield fault("kill driver")
    yield fault("crash application")
    if when.kind != "failpoint":
        # There the Python program stands still, and would outlive its JVM.
        yield fault("kill driver", victim=Victim.JVM)
    if when.point is CrashPoint.BATCH_PLANNED:
        # Later on the JVM would commit the batch before it notices.
        yield fault("kill driver", victim=Victim.PYTHON)
    if when.kind == "rows" and when.batch is not None:
        # A program that promises at most once is not asked: Spark runs a task again that had committed beside the held
        # one and had not said so yet, whatever the driver saved before.
        yield fault("kill executor", which="one")
        yield fault("kill executor", which="all")
    if when.kind in ("records", "elapsed"):
        yield fault("stop driver")
