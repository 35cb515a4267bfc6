"""The cells of a pipeline: each place in a batch's course that a run without faults shows, with each fault that it
admits."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from random import Random

from harness.faults import FAULTS
from harness.faults.base import Implies
from harness.fields import values as v
from harness.history import BatchPlanned, CheckpointOp, Line
from harness.nightly.possible import Target, exposes, faults, planned, triggers
from harness.operation import Op, Side, file_batch
from harness.scenario import CrashPoint, Fault, Impact, Scenario, Step, Trigger
from harness.scenario.impact import ENDS_EXECUTOR
from harness.stack import Means
from harness.triggers import TRIGGERS
from harness.triggers.base import AtOperations, Trait, at_point, has

FILES = ("offsets", "commits", "state")
CHANGES = (Op.CREATE, Op.RENAME, Op.DELETE)
WATCHED = (CrashPoint.BATCH_PLANNED, CrashPoint.SINK_COMMITTED, CrashPoint.BATCH_COMMITTED)
"""The places that a checkpoint's files show where no agent reports operations."""
FIRST, LATER = "first batch", "later batch"
OF_SERVERS = (Impact.NONE, Impact.SERVER_AWAY)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One or more crashes of one batch: each a place and a fault, the next one in the recovery from the one before. The
    triggers name no batch yet."""

    steps: tuple[Step, ...]
    first: bool = False

    @property
    def batch(self) -> str:
        """Return the kind of batch, in words."""
        return FIRST if self.first else LATER

    @property
    def place(self) -> str:
        """Return the crash points, in words."""
        return ", then ".join(called(step.when) for step in self.steps)

    @property
    def fault(self) -> str:
        """Return the faults, in words."""
        return ", ".join(dict.fromkeys(str(step.do) for step in self.steps))


def called(when: Trigger) -> str:
    """Return what the grid calls a crash point."""
    return when.place if when.query is None else f"{when.place}, {when.query}"


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a run without faults shows: the cells, and the number of the first batch that has records."""

    cells: Sequence[Cell]
    first_batch: int


@dataclass(frozen=True, kw_only=True)
class Passed:
    """What a run without faults shows beside its history: the failpoints that the program came to, true for one that a
    task came to; the queries of the sinks that have a commit log, None for a sink that names none."""

    failpoints: Mapping[str, bool] = field(default_factory=dict)
    commit_logs: Sequence[str | None] = ()
    tables: Sequence[str] | None = None
    """The sinks whose rows can be counted."""


def found(
    history: Sequence[Line],
    scenario: Scenario,
    means: Collection[Means],
    passed: Passed = Passed(),
    *,
    pairs: bool = False,
) -> Found:
    """Return the cells of the pipeline whose run without faults has this history and passed these places, on a stack
    with these means. `pairs`: also a second crash in the recovery from each."""
    taken = _batches(history)
    first_batch = min((batch for _, batch in taken), default=0)
    begun = {(query, min(batch for each, batch in taken if each == query)) for query, _ in taken}
    every = [*_inside(scenario, passed)]
    inside = [when for place, when in enumerate(every) if when not in every[:place]]
    several = len({query for query, _ in taken}) > 1
    logs = dict.fromkeys(query if several else None for query in passed.commit_logs if taken)
    own = [at_point(CrashPoint.SINK_COMMITTING, batch=None, query=query) for query in logs]
    whens = {first: (*_operations(history, begun if first else taken), *own, *inside) for first in (False, True)}
    cells = [
        Cell(steps=(Step(when=when, do=do),), first=first)
        for first in whens
        for when in whens[first]
        for do in _faults(scenario, when, means, in_task=_in_task(when, passed, scenario))
        if _plain(do) or (not first and (when.point is CrashPoint.BATCH_PLANNED or when in inside))
    ]
    cells = [cell for cell in cells if not _refused(cell.steps[0], scenario, passed)]
    plain = [cell.steps[0] for cell in cells if not cell.first and _plain(cell.steps[0].do)]
    twice = [Cell(steps=(one, two)) for one, two in product(plain, plain) if pairs and _follows(one.when, two.when)]
    return Found(cells=[*cells, *twice], first_batch=first_batch)


def _refused(step: Step, scenario: Scenario, passed: Passed) -> bool:
    """Return whether the step can never be injected in a batch of such a run."""
    seen, when = planned(scenario, passed.tables), replace(step.when, batch=1)
    return any(TRIGGERS[when.kind].refusals(when, seen)) or any(FAULTS[step.do.kind].refusals(step.do, when, seen))


def _follows(one: Trigger, two: Trigger) -> bool:
    """Return whether the attempt after a crash at one place comes to another place in the same batch. It does not plan
    again what is planned, nor run again what is committed."""
    if (one.query and two.query and one.query != two.query) or one.point is CrashPoint.BATCH_COMMITTED:
        return False
    planning = (CrashPoint.BATCH_PLANNING, CrashPoint.BATCH_PLANNED)
    return one.point is CrashPoint.BATCH_PLANNING or two.point not in planning


def _batches(history: Sequence[Line]) -> set[tuple[str, int]]:
    """Return the batches that took records of the run's source, each with its query."""
    events = (line.event for line in history if isinstance(line.event, BatchPlanned))
    return {(event.query, event.batch) for event in events if any(end > start for start, end in event.ranges.values())}


def _operations(history: Sequence[Line], taken: set[tuple[str, int]]) -> Iterator[Trigger]:
    """Yield the operations on the files of batches that took records, in the order in which a batch has them; the crash
    points that a checkpoint's files show where none was reported."""
    many = len({query for query, _ in taken}) > 1
    seen: dict[tuple[str, Op, str, Side], None] = {}
    for event in (line.event for line in history):
        if not isinstance(event, CheckpointOp) or (event.query, file_batch(event.path)) not in taken:
            continue
        log = event.path.partition("/")[0]
        if event.op in CHANGES and log in FILES:
            seen[event.query, event.op, log, event.when] = None
    for query, op, log, side in seen:
        name = query.rpartition("/")[2] if many else None
        yield from (kind.at(op, side, log, query=name) for kind in TRIGGERS if isinstance(kind, AtOperations))
    if not seen:
        yield from (at_point(point, batch=None) for point in WATCHED if taken)


def _inside(scenario: Scenario, passed: Passed) -> Iterator[Trigger]:
    """Yield the places while the sink is written: a row, and the failpoints."""
    in_program = [kind for kind in TRIGGERS if has(kind, Trait.IN_PROGRAM)]
    passed_by = [(kind, name) for kind in in_program for name in passed.failpoints if v.reads(kind.about.options, name)]
    named = tuple(kind.trigger(name) for kind, name in passed_by)
    target = Target(base=scenario, named=named, counted=passed.tables)
    for when in triggers(Random(scenario.seed), target, target.base, 0):
        kind = TRIGGERS[when.kind]
        if not when.implied and (has(kind, Trait.COUNTS_ROWS) or has(kind, Trait.IN_PROGRAM)) and exposes(when):
            yield replace(when, batch=None)


def _in_task(when: Trigger, passed: Passed, scenario: Scenario) -> bool:
    """Return whether a task of the only executor comes to it. Of several, another one may be killed."""
    alone = scenario.pipeline.executors == 1 and has(TRIGGERS[when.kind], Trait.IN_PROGRAM)
    return alone and passed.failpoints.get(str(when.value), False)


def _faults(scenario: Scenario, when: Trigger, means: Collection[Means], *, in_task: bool) -> Iterator[Fault]:
    """Yield what kills the driver, executors or a server at a place: of each kind the first of its options."""
    kinds: dict[str, Fault] = {}
    for do in faults(Random(scenario.seed), scenario, replace(when, batch=1), means, in_task=in_task):
        if not isinstance(FAULTS[do.kind], Implies):
            kinds.setdefault(do.kind, do)
    yield from (do for do in kinds.values() if do.impact in (Impact.DRIVER_KILLED, *ENDS_EXECUTOR, *OF_SERVERS))


def _plain(do: Fault) -> bool:
    """Return whether it is the driver's death alone: its executors live on for a moment."""
    return do.impact is Impact.DRIVER_KILLED and not {Means.SIGNAL_EXECUTORS} & FAULTS[do.kind].needs
