"""Rules 1 to 3: what a step interrupted of the query that feeds a sink, and whether a naive pipeline would have been
caught by it.

A step strikes one query at one place (`QueryProgress`): everything before `low` is committed, and all before `high`
planned. What the sink holds then says how much of what lies between had taken effect. Where the query began again says
what of it is processed again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from harness.checkers.cells import Row
from harness.checkers.compare import Key
from harness.checkers.offset_ranges import Cut, OffsetRange, OffsetRanges, Offsets, between, covers, joined
from harness.errors import UsageError
from harness.executions import Execution
from harness.judge.injections import Injection, lasting
from harness.judge.progress_at_injection import QueryProgress
from harness.judge.ran_again import Ran, ran_again
from harness.judge.readings.in_flight import bounded, feeding, handed, has
from harness.judge.readings.read_at import dropped_since, state_at
from harness.judge.readings.scale import Scale, changed
from harness.judge.readings.sink_state import RowsByKey, SinkState, blind, same, whole
from harness.judge.readings.traces import Traces
from harness.scenario import Exposure, Harm

EARLY, PLANNED, WRITING, WRITTEN, COMMITTED = (
    "offsets committed, sink not written",
    "batch planned, sink not written",
    "sink written in part",
    "sink written, batch not committed",
    "batch committed",
)
RECEIVED = "received, in no batch"
"""Of a receiver of DStreams, where every planned batch was committed, or held no record."""
SAFE: dict[Harm | None, tuple[str, ...]] = {Harm.REPETITION: (WRITTEN,), Harm.LOSS: (EARLY, PLANNED)}
"""The crash points at which only the harm that the guarantee allows can come about, while the checkpoint stays."""


@dataclass(frozen=True, kw_only=True)
class Exposed:
    """One step and one sink. `why` says why nothing was exposed, `unknown` that the evidence does not tell.
    `interrupted` are the offset ranges that the step interrupted. Of these, `reprocessed` ran again, and may have left
    something in the sink; `incomplete` were not whole there. `at_fault` is what the sink held when the fault was
    injected, `before_restart` what it held before the next attempt wrote."""

    injection: Injection
    why: str = ""
    unknown: bool = False
    progress: QueryProgress | None = None
    interrupted: OffsetRanges = ()
    reprocessed: OffsetRanges = ()
    incomplete: OffsetRanges = ()
    point: str = ""
    at_fault: SinkState | None = None
    before_restart: SinkState | None = None
    exposures: tuple[Exposure, ...] = ()
    wrote_first: bool = False
    """The sink held rows beyond the saved offsets."""

    @property
    def counting(self) -> tuple[Exposure, ...]:
        """The exposures that count for the guarantee."""
        return tuple(exposure for exposure in self.exposures if exposure.counts)


def exposed(
    scale: Scale,
    injection: Injection,
    found: Sequence[QueryProgress],
    *,
    many: int,
    until: Injection | None,
    executions: Sequence[Execution],
    writes_first: bool = False,
) -> Exposed:
    """Return what a step exposed in one sink. `found` are the queries at work that may feed it, of `many` in all;
    `until` is the next step, `executions` are the run's. `writes_first`: the program is known to save its offsets after
    it has written."""
    if injection.at is None:
        return Exposed(injection=injection, why=injection.why, unknown=True)
    at = state_at(scale, injection.at)
    if at is None:
        return Exposed(
            injection=injection, why=f"{scale.case.sink} could not be read when the fault was injected", unknown=True
        )
    last = (state_at(scale, injection.restart) if injection.restart else None) or at
    if not found:
        return _nothing_at_work(injection, at, last)
    try:
        progress = feeding(
            scale, found, many, last if injection.restart and lasting(injection) is injection.restart else at
        )
        if progress is None:
            words = f"{max(many, len(found))} queries read the source, and the evidence does not tell which one feeds"
            return Exposed(
                injection=injection, why=f"{words} {scale.case.sink}: name it in the sink (`query`)", unknown=True
            )
        if progress.own and not handed(scale, injection):
            progress = bounded(scale, progress, last)
        return _Interrupted(
            scale=scale,
            injection=injection,
            progress=progress,
            at=at,
            last=last,
            until=until,
            ran_again=_again(executions, injection, progress),
            writes_first=writes_first,
        ).exposed()
    except UsageError as failure:
        return Exposed(injection=injection, why=scale.refused(failure), unknown=True)


def _nothing_at_work(injection: Injection, at: SinkState, last: SinkState) -> Exposed:
    assert injection.at is not None
    seen = injection.at.snapshot
    idle = not (seen.queries or seen.error) and seen.position is None
    words = "no query that reads the source was at work when the fault was injected"
    if injection.only is None:
        words = "several queries were at work, and the evidence does not tell whose executor was killed"
    elif injection.only:
        words = f"only an executor at work for {injection.only} is known to have been killed"
    return Exposed(injection=injection, why=words, unknown=not idle, at_fault=at, before_restart=last)


def _again(executions: Sequence[Execution], injection: Injection, progress: QueryProgress) -> Ran:
    """Return how the batch in flight ran again though the driver lived. Without an agent nothing tells; tasks of an
    executor that was killed are tried again."""
    assert injection.at is not None
    step = injection.outcome
    mine = [
        e for e in executions if (e.attempt, e.query, e.batch) == (step.attempt, progress.checkpoint, progress.batch)
    ]
    seen = ran_again(mine, since_s=injection.at.snapshot.at_s)
    return Ran.RETRIED if seen is Ran.UNKNOWN and injection.retried else seen


@dataclass(kw_only=True)
class _Interrupted:
    """One step, one sink, one query."""

    scale: Scale
    injection: Injection
    progress: QueryProgress
    at: SinkState
    last: SinkState
    until: Injection | None
    ran_again: Ran
    writes_first: bool

    def exposed(self) -> Exposed:
        reprocessed, incomplete = self.reprocessed, self.incomplete
        exposures = (*self._of(Harm.REPETITION, reprocessed), *self._of(Harm.LOSS, incomplete))
        return Exposed(
            injection=self.injection,
            why="" if exposures else self._why(),
            progress=self.progress,
            interrupted=joined(self.progress.taken, self.progress.reread, self.progress.skipped, incomplete),
            reprocessed=reprocessed,
            incomplete=incomplete,
            point=self.point,
            at_fault=self.at,
            before_restart=self.last,
            exposures=exposures,
            wrote_first=self.progress.own and bool(self.touched),
        )

    @cached_property
    def partial(self) -> set[Key]:
        return self.scale.keys(self.progress.partial)

    @cached_property
    def units(self) -> list[OffsetRange]:
        """The offset ranges of what was planned and not committed, each of one batch and partition as far as batches
        are known."""
        taken = self.progress.taken
        inner = [_overlap(mine, other) for mine in taken for _, ranges in self.scale.batch_ranges for other in ranges]
        known = sorted({each for each in inner if each is not None})
        return known if joined(tuple(known)) == joined(taken) else list(taken)

    @cached_property
    def saved_unwritten(self) -> OffsetRanges:
        """What a program that manages its own offsets has saved, and its sink does not hold whole; nothing where it
        comes though no attempt reads it again: the sink shows it late."""
        if not self.progress.own or self.writes_first or (self.scale.late and not self.handed):
            return ()
        lacking = tuple(each for each in self.progress.last if self._lacks(each))
        return () if self._right(lacking) else lacking

    @cached_property
    def plan_known(self) -> bool:
        """Spark's log says what is planned; of a program that manages its own offsets, only what it has begun to write
        does, in this sink or in another one."""
        assert self.injection.at is not None
        elsewhere = any(words for place, words in self.injection.at.snapshot.writing.items() if place)
        return not self.progress.own or bool(self.left) or elsewhere

    @cached_property
    def handed(self) -> str:
        return handed(self.scale, self.injection)

    @cached_property
    def base(self) -> RowsByKey:
        return self.scale.upto(self.progress.low, self.last)

    @cached_property
    def full(self) -> RowsByKey:
        return self.scale.upto(self.progress.high, self.last)

    def _changed(self, unit: OffsetRanges) -> tuple[list[Key], RowsByKey]:
        with_it = self.last.of(self.scale.rows(Cut(only=joined(between({}, self.progress.low), unit))))
        return [key for key in changed(self.base, with_it) if key not in self.partial], with_it

    @cached_property
    def keys(self) -> list[Key]:
        return [key for key in changed(self.base, self.full) if key not in self.partial]

    @cached_property
    def touched(self) -> list[Key]:
        """The keys under which records that were not committed have left something."""
        traces = Traces(self.scale, self.last, self.base, self.full)
        return [key for key in self.keys if key not in self._late and traces.of(key)]

    @cached_property
    def _late(self) -> set[Key]:
        """The keys that the sink shows as they were after an earlier batch."""
        rows = self.last.rows
        late = {key for key in self.keys if not rows[key] and key in self.base and key in self.full}
        odd = [key for key in self.keys if rows[key] not in (self.base[key], self.full[key])]
        for _, then in self.scale.steps(self.last, before=self.progress.low) if odd else ():
            late |= {key for key in odd if rows[key] == then[key]}
            if late.issuperset(odd):
                break
        return late

    def _whole_unit(self, unit: OffsetRange) -> bool:
        keys, with_it = self._changed((unit,))
        return bool(keys) and all(
            has(self.last.rows[key], with_it[key]) or has(self.last.rows[key], self.full[key]) for key in keys
        )

    def _lacks(self, offset_range: OffsetRange) -> bool:
        """Return whether the sink lacks something of records that the program calls done."""
        without = self.last.of(self.scale.rows(Cut(only=between({}, self.progress.low), without=(offset_range,))))
        return any(not has(self.last.rows[key], self.base[key]) for key in changed(without, self.base))

    @cached_property
    def unseen(self) -> bool:
        """The sink does not tell whether it has what was in flight: it changes nothing but sums of floating point
        numbers. Either harm may show, so that it counts where neither is allowed."""
        low, high = (self.scale.rows(Cut(only=between({}, end))) for end in (self.progress.low, self.progress.high))
        case = self.scale.case
        floats = not self.keys and bool(changed(whole(case, low), whole(case, high)))
        known = self.plan_known or bool(self.saved_unwritten)
        return (blind(case) or floats) and known and self.scale.allows is None

    @cached_property
    def whole(self) -> bool:
        """The sink holds all that was planned."""
        rows = self.last.rows
        return bool(self.keys) and all(has(rows[key], self.full[key]) for key in self.keys)

    @cached_property
    def left(self) -> str:
        """What shows that the interrupted execution may have left something in the sink; empty if nothing does."""
        if self.touched:
            return f"{len(self.touched)} keys in the sink"
        committed = "Spark says that its sink is committed" if self.progress.after and not self._never_written else ""
        return committed or ("" if self._none_open else self.handed)

    @property
    def _never_written(self) -> bool:
        """The sink lacked all that was committed before, too: it is another one that the program writes."""
        none = not any(self.at.rows.values()) and not any(self.last.rows.values())
        return none and any(self.base.values()) and not self.scale.late

    @property
    def _none_open(self) -> bool:
        """The server had no open transaction on the sink when all had been read: what was handed to it and was not
        there is gone. The reading before the next attempt's work tells it, where there is one."""
        assert self.injection.at is not None
        left = self.injection.restart.snapshot.writing if self.injection.restart else self.injection.at.snapshot.left
        return left is not None and not left.get(str(self.scale.position))

    @cached_property
    def finished(self) -> bool:
        """The next attempt began beyond all that was in flight, and the sink is right there at the next step and in the
        end: a process of the interrupted attempt finished it, so that it was not interrupted."""
        if self.progress.next is None or self.progress.other or not self.progress.taken:
            return False
        beyond = between(self.progress.low, self.progress.next)
        return covers(beyond, self.progress.taken) and self._right(beyond) and self._seen_by_the_next_step(beyond)

    def _seen_by_the_next_step(self, ranges: OffsetRanges) -> bool:
        then = state_at(self.scale, self.until.at) if self.until and self.until.at else None
        if then is None or self.scale.case.aggregate or not self.scale.ledger.plain(self.scale.sql):
            return True
        due = then.of(self.scale.rows(Cut(only=ranges)))
        return all(has(then.rows[key], rows) for key, rows in due.items())

    def _right(self, ranges: OffsetRanges) -> bool:
        """Return whether the sink holds these records rightly in the end."""
        end, right = self._end
        return all(same(self.scale.case, key, end[key], right[key]) for key in self.scale.keys(ranges))

    def _kept(self, ranges: OffsetRanges) -> bool:
        """Return whether nothing of these records is missing in the end. A later step may have given rows again."""
        end, right = self._end
        if self.scale.case.aggregate:
            return self._right(ranges)
        return all(right[key] <= end[key] for key in self.scale.keys(ranges))

    @cached_property
    def _end(self) -> tuple[RowsByKey, RowsByKey]:
        """What the sink holds in the end, and what it should hold."""
        case = self.scale.case
        return whole(case, case.found), whole(case, case.expected)

    @property
    def died(self) -> bool:
        """The driver died of it, or ended later: then the next attempt shows what ran again."""
        return self.injection.died or self.progress.restarted

    def _ran_again(self, ranges: OffsetRanges) -> OffsetRanges:
        """Return what of these offsets ran again: beyond where the next attempt began, or all where the same attempt
        ran its batch again."""
        if not self.died:
            return ranges if self.ran_again in (Ran.RETRIED, Ran.RESTARTED) else ()
        start = self.progress.next if self.injection.died else self.progress.resumed
        return _beyond(ranges, start) if start is not None else ()

    @cached_property
    def reprocessed(self) -> OffsetRanges:
        before = () if self.progress.other else self.progress.reread
        if self.finished or not (self.left or self.unseen):
            return before
        mine = self.units
        retried = not self.died and self.ran_again is not Ran.RESTARTED
        if retried and not self.scale.case.aggregate:
            # A task that had finished is not tried again, and one that has left nothing adds nothing. Which task had
            # the open transaction, no reading tells.
            touched, open_ = {*self.touched}, bool(self.handed) and not self._none_open
            mine = [unit for unit in mine if open_ or self.scale.keys((unit,)) & touched]
            mine = [unit for unit in mine if not self._whole_unit(unit)]
        elif retried and self.whole:
            mine = []
        return joined(self._ran_again(tuple(mine)), before)

    @cached_property
    def incomplete(self) -> OffsetRanges:
        if self._went_on:
            return self.progress.received
        complete = not self.unseen and (self.progress.after or not self.keys or self.whole or self.finished)
        skipped = () if self.progress.other or self.whole or self.finished else self.progress.skipped
        units = () if complete or not self.plan_known else tuple(u for u in self.units if not self._whole_unit(u))
        return joined(units, skipped, self.saved_unwritten, self.progress.received)

    @property
    def _went_on(self) -> bool:
        """The driver lived, nothing ran again, and nothing of the batch is missing in the end. Either the driver was
        paused, or its tasks were not those of the executor that was killed. Or it did without what was away, such as a
        source that its tasks had read. A pause that outlasted a session or a transaction interrupted the batch,
        whatever the program did then; executors are not paused, and one that committed meanwhile has left rows."""
        if self.died or self.ran_again in (Ran.RETRIED, Ran.RESTARTED) or not self._kept(self.progress.taken):
            return False
        evidence = self.injection.outcome.evidence
        if self.injection.paused and self.scale.sink.kind in evidence.disconnected:
            return False
        if self.injection.paused and self.handed and self._none_open and not self.touched:
            return False
        meanwhile = evidence.committed_meanwhile.get(self.progress.checkpoint, -1)
        without = self.progress.batch is not None and self.progress.batch <= meanwhile
        without = without or (self.injection.source_away and self.ran_again is Ran.DONE)
        return self.injection.paused or self.injection.retried or not evidence.healed or without

    @property
    def point(self) -> str:
        if not self.progress.taken:
            return EARLY if self.saved_unwritten else RECEIVED if self.progress.received else COMMITTED
        if self.saved_unwritten and not self.left:
            return EARLY
        if self.whole or (self.progress.after and not self.keys):
            return WRITTEN
        return WRITING if self.left else PLANNED

    def _of(self, harm: Harm, ranges: OffsetRanges) -> Iterator[Exposure]:
        if not ranges:
            return
        scale = self.scale
        rows = scale.rows(Cut(only=ranges))
        why, note, came = "", "", False
        if not rows:
            why = f"none of its {scale.ledger.size(cut=Cut(only=ranges))} records has an expected row"
        elif harm is Harm.LOSS and not _differs(scale, Cut(without=ranges)):
            why = "the expected rows are the same without it"
        elif harm is Harm.REPETITION:
            came = self._came(rows)
            why = "" if came else _removed(scale)
            if not why and not _differs(scale, Cut(again=(ranges,))):
                note = "reprocessing cannot change these expected rows"
        words = "reprocessing" if harm is Harm.REPETITION else "loss"
        described = "; ".join(filter(None, (f"{words} of {self._records(ranges)}", note)))
        yield Exposure(
            step=self.injection.number,
            position=scale.position,
            sink=scale.case.sink,
            harm=harm,
            point=self.point,
            came=came,
            note=f"{described}: does not count, {why}" if why else described,
            records=scale.ledger.size(cut=Cut(only=ranges)),
            attempt=self.injection.outcome.attempt,
            checkpoint=self.progress.checkpoint,
            batch=self.progress.batch,
            allowed=harm is scale.allows,
            why=why,
        )

    def _came(self, rows: Sequence[Row]) -> bool:
        """Return whether the sink's reader has left out all of these rows as repetitions since the fault."""
        if not self.scale.table.folds or self.scale.case.aggregate:
            return False
        return Counter(rows) <= dropped_since(self.scale, self.injection, self.until)

    def _records(self, ranges: OffsetRanges) -> str:
        if self.progress.batch is not None:
            return f"batch {self.progress.batch}"
        last = covers(self.saved_unwritten, ranges)
        return "the records whose offsets were saved last" if last else "the records after the saved offsets"

    def _why(self) -> str:
        if not self.progress.taken and self.progress.batch is not None:
            what = "held no record" if self.scale.sink.watermark is None else "wrote no window"
            return f"batch {self.progress.batch} {what}"
        if not self.progress.taken:
            return "every planned batch was committed: nothing was in flight"
        if not self.died:
            return "the driver lived, and nothing shows that it ran what was in flight again"
        if self.finished:
            return "all that was planned is in the sink, and the next attempt began beyond it"
        return "nothing that was in flight is in the sink, or ran again"


def _removed(scale: Scale) -> str:
    """Return why a repetition would not be seen in the sink; empty if it would."""
    if scale.table.folds:
        return "the sink's query folds equal rows"
    if scale.table.folds is None and scale.table.folding:
        return f"the sink's query may fold equal rows: {scale.table.folding}"
    return ""


def _differs(scale: Scale, cut: Cut) -> bool:
    return Counter(scale.rows(cut)) != Counter(scale.case.expected)


def _overlap(one: OffsetRange, other: OffsetRange) -> OffsetRange | None:
    start, end = max(one.start, other.start), min(one.end, other.end)
    return OffsetRange(one.partition, start, end) if one.partition == other.partition and start < end else None


def _beyond(ranges: OffsetRanges, start: Offsets) -> OffsetRanges:
    cut = (each._replace(start=max(each.start, start.get(each.partition, 0))) for each in ranges)
    return tuple(each for each in cut if each.start < each.end)
