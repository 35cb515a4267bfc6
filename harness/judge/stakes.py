"""What each hit put at stake in each sink, and whether this effect and this sink would show it.

*Repetition*: writing had begun on records that may be processed once more. *Loss*: a batch or slice was planned and not
committed, or the next attempt began beyond it. For each, the effect is asked what the sink would hold then; the same
comparison that judges the run must see that in a copy of the right rows, which are the run's own if it holds. Where it
does not, the hit has shown nothing, and the note says why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from harness.checkers.cells import Row
from harness.checkers.compare import Case, Key, compare
from harness.checkers.explain import only_rounding
from harness.checkers.spans import Cut, Spans, between, covers, highest, joined
from harness.effect import Effects
from harness.judge.look import Held, Look, look
from harness.judge.strikes import Reach, Seen, Strike
from harness.scenario import Harm, Sink, Stake
from harness.sinks import SinkTable

EARLY, PLANNED, WRITING, WRITTEN, COMMITTED = (
    "offsets committed, sink not written",
    "batch planned, sink not written",
    "sink written in part",
    "sink written, batch not committed",
    "batch committed",
)
POINTS = (PLANNED, WRITING, WRITTEN)
"""The crash points at which a pipeline can be struck with something at stake; one that keeps its offsets itself may
save them too early as well."""
SAFE: dict[Harm | None, tuple[str, ...]] = {Harm.REPETITION: (WRITTEN,), Harm.LOSS: (EARLY, PLANNED)}
"""Those at which nothing but this harm is at stake."""
BATCHES_MAX = 200
"""So many batches are asked whether their loss would hide a repetition."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """What a hit is weighed with: the effect, the judged case (whole and right rows where it has marks), the sink, and
    the harm that the guarantee allows."""

    effects: Effects
    sink: Sink
    position: int
    case: Case
    table: SinkTable
    allows: Harm | None = None

    @property
    def sql(self) -> str:
        return self.sink.effect or ""

    def rows(self, cut: Cut) -> list[Row]:
        """The effect over a cut of the ledger, its columns in the order of the case."""
        return self.effects.table(self.sql, cut=cut).rows


@dataclass(frozen=True, kw_only=True)
class Weighed:
    """One hit against one sink. `why` says why nothing was at stake. `again` and `missing` are the records that
    repetition and loss would touch; `at` and `last` what the sink held when it struck, and before the next attempt
    worked. What is None is not known."""

    strike: Strike
    point: str = ""
    stakes: tuple[Stake, ...] = ()
    why: str = ""
    reach: Reach | None = None
    again: Spans = ()
    missing: Spans = ()
    at: Look | None = None
    last: Look | None = None

    @property
    def counting(self) -> tuple[Stake, ...]:
        """What was at stake that the guarantee forbids, and would have been seen."""
        return tuple(stake for stake in self.stakes if stake.counts)


@dataclass(frozen=True, kw_only=True)
class Known(Weighed):
    """One of which snapshots tell how far its query was, and what the sink held."""

    reach: Reach
    at: Look
    last: Look


def weigh(scale: Scale, strike: Strike, found: Sequence[Reach]) -> Weighed:
    """Weigh one hit. `found` are the queries that may feed the sink."""
    if strike.at is None:
        return Weighed(strike=strike, why=strike.why)
    at = _look(scale, strike.at)
    restart = _look(scale, strike.restart) if strike.restart else None
    if at is None:
        return Weighed(strike=strike, why=f"{scale.case.sink} could not be read when it struck")
    if not found:
        return Weighed(strike=strike, why="no query of the topic was seen at work when it struck")
    reach = _feeding(scale, found, at)
    if reach is None:
        many = f"{len(found)} queries read the topic, and nothing shows which of them feeds {scale.case.sink}"
        return Weighed(strike=strike, why=f"{many}: name it in the sink (`query`)")
    last = restart or at
    return _Weighing(scale, strike, _early(scale, strike, reach, last), at, last).weighed()


def _look(scale: Scale, seen: Seen) -> Look | None:
    names = [column.name for column in scale.table.columns]
    return look(scale.case, seen.tables[scale.position], names=names)


def _feeding(scale: Scale, found: Sequence[Reach], at: Look) -> Reach | None:
    """The query that feeds the sink: the only one, or the only one whose progress the rows agree with."""
    fit = [reach for reach in found if _agrees(scale, reach, at)] if len(found) > 1 else list(found)
    alike = all((reach.low, reach.high) == (fit[0].low, fit[0].high) for reach in fit)
    return fit[0] if fit and alike else None


def _early(scale: Scale, strike: Strike, reach: Reach, now: Look) -> Reach:
    """Where a pipeline stood that keeps its offsets itself: whoever saves them before the sink has the slice still has
    it in hand. Nothing of it is there yet, or a part while somebody writes."""
    if not reach.own or not reach.last:
        return reach
    begin = {span.partition: span.start for span in reach.last}
    low = {partition: begin.get(partition, end) for partition, end in reach.low.items()}
    before, saved = (now.of(scale.rows(Cut(only=between({}, ends)))) for ends in (low, reach.low))
    absent = [now.rows[key] == before[key] for key in _changed(before, saved)]
    writing = bool(_handed(scale, strike))
    if not any(absent) or not (writing or all(absent)):
        return reach
    return replace(reach, low=low, high=reach.low, early=True)


def _handed(scale: Scale, strike: Strike) -> str:
    """What shows that somebody was writing into the sink, though no row of it can be seen; empty if nothing does."""
    assert strike.at is not None
    snapshot = strike.at.snapshot
    if snapshot.writing.get(str(scale.position)):
        return f"an open transaction had written into {scale.case.sink}"
    counted, before = snapshot.rows_counted, snapshot.rows_before
    rows = counted - before if counted is not None and before is not None else 0
    ours = strike.counted in (None, scale.position)
    return f"{rows} rows had been handed to the sink" if rows > 0 and ours else ""


def _agrees(scale: Scale, reach: Reach, at: Look) -> bool:
    """Is each row what the query's committed or planned batches make of it?"""
    base = at.of(scale.rows(Cut(only=between({}, reach.low))))
    full = at.of(scale.rows(Cut(only=between({}, reach.high))))
    keys = {*base, *full, *at.rows}
    return all(at.rows[key] in (base[key], full[key]) for key in keys)


def _changed(one: Held, other: Held) -> list[Key]:
    """The keys whose rows differ."""
    return [key for key in {**one, **other} if one[key] != other[key]]


class _Weighing:
    """One hit, one sink, one query."""

    def __init__(self, scale: Scale, strike: Strike, reach: Reach, at: Look, last: Look) -> None:
        assert strike.at is not None
        self.scale, self.strike, self.reach, self.at, self.last = scale, strike, reach, at, last
        self.snapshot = strike.at.snapshot
        self.base = last.of(scale.rows(Cut(only=between({}, reach.low))))
        full = last.of(scale.rows(Cut(only=between({}, reach.high))))
        changed = _changed(self.base, full)
        # A row that is there with the batch and without it, and is not in the sink, is late: no trace of writing. So is
        # one as it was after an earlier batch.
        late = {key for key in changed if not self.last.rows[key] and key in self.base and key in full}
        late |= self._behind([key for key in changed if self.last.rows[key] not in (self.base[key], full[key])])
        self.touched = [key for key in changed if key not in late and self.last.rows[key] != self.base[key]]
        # Where the batch changes nothing that shows, nothing shows that it was written.
        self.whole = bool(changed) and all(self.last.rows[key] >= full[key] for key in changed)

    def _behind(self, keys: Sequence[Key]) -> set[Key]:
        """Those of the keys whose rows are as they were after a batch before the last committed one."""
        out, end = set[Key](), dict[int, int]()
        if not keys:
            return out
        for _, spans in self.scale.effects.ranges():
            end = highest([end, {span.partition: span.end for span in spans}])
            if not between(end, self.reach.low):
                break
            then = self.last.of(self.scale.rows(Cut(only=between({}, end))))
            out |= {key for key in keys if self.last.rows[key] == then[key]}
        return out

    def weighed(self) -> Known:
        """The stakes, and why there are none."""
        again, missing = self._again(), self._missing()
        stakes = [*self._repetition(again), *self._loss(missing)]
        return Known(
            strike=self.strike,
            point=self.point,
            stakes=tuple(stakes),
            why="" if stakes else self._nothing(),
            reach=self.reach,
            again=again,
            missing=missing,
            at=self.at,
            last=self.last,
        )

    @property
    def point(self) -> str:
        """Where the sink stood, whatever the trigger was called."""
        if not self.reach.taken or not self._in_hand():
            return EARLY if self._unwritten() else COMMITTED
        if self.reach.early and not self.begun:
            return EARLY
        if self.whole:
            return WRITTEN
        return WRITING if self.begun else PLANNED

    @property
    def begun(self) -> str:
        """What shows that the batch had begun to write; empty if nothing does."""
        if self.touched:
            return f"{sum(self._more(key) for key in self.touched)} rows in {self.scale.case.sink}"
        return _handed(self.scale, self.strike)

    def _more(self, key: Key) -> int:
        return (self.last.rows[key] - self.base[key]).total()

    def _again(self) -> Spans:
        """What may be processed once more, and has left something in the sink."""
        return joined(self._redone(), self.reach.again)

    def _redone(self) -> Spans:
        """What of the batch in hand may be done again: not if whoever had it in hand only stood still."""
        return self.reach.taken if self.begun and not self.strike.paused else ()

    def _missing(self) -> Spans:
        """What may never be processed, as far as the sink has not got it yet."""
        taken = () if self.whole or not self._in_hand() else self.reach.taken
        return joined(taken, self.reach.skipped, self._unwritten())

    def _in_hand(self) -> bool:
        """Spark's log says what is planned; of a pipeline that keeps its own offsets, only what it has begun does."""
        return not self.reach.own or self.reach.early or bool(self.begun or any(self.snapshot.writing.values()))

    def _unwritten(self) -> Spans:
        """What the pipeline calls done, and the sink has nothing of."""
        last = self.reach.last
        before = self.last.of(self.scale.rows(Cut(only=self._before(last))))
        changed = _changed(before, self.base)
        absent = bool(changed) and all(self.last.rows[key] == before[key] for key in changed)
        return last if absent else ()

    def _before(self, last: Spans) -> Spans:
        ends = {span.partition: span.start for span in last}
        return between({}, {p: ends.get(p, end) for p, end in self.reach.low.items()})

    def _nothing(self) -> str:
        if self.reach.batch is not None and not self.reach.taken:
            return f"batch {self.reach.batch} held no record"
        if self.reach.taken:
            return "nothing shows that a slice was in hand: no row beyond the saved offsets, no open transaction"
        return "every planned batch was committed: nothing was in hand"

    def _repetition(self, spans: Spans) -> Iterator[Stake]:
        if not spans:
            return
        why = self._invisible(Harm.REPETITION, spans)
        yield self._stake(Harm.REPETITION, spans, why, self._repeated(bool(self._redone())))

    def _repeated(self, taken: bool) -> str:
        log = "the saved offsets" if self.reach.own else "Spark's commit log"
        told = self.begun if self.reach.early else f"{self.begun}, not in {log}"
        own = f"repetition of {self._named()} ({told})" if taken else ""
        count = self.scale.effects.size(cut=Cut(only=self.reach.again))
        back = f"repetition of {count} committed records: the next attempt began before them" if count else ""
        return "; ".join(filter(None, (own, back)))

    def _loss(self, spans: Spans) -> Iterator[Stake]:
        if not spans:
            return
        why = "not whole in the sink" if self.reach.early else "planned, not committed"
        words = [f"loss of {self._named()} ({why})"] if self.reach.taken else []
        if self._unwritten():
            words.append("loss of what was called done (not in the sink)")
        if (beyond := self.reach.skipped) and not self.reach.early:
            count = self.scale.effects.size(cut=Cut(only=beyond))
            words.append(f"loss of {count} records before which the next attempt began")
        yield self._stake(Harm.LOSS, spans, self._invisible(Harm.LOSS, spans), "; ".join(words))

    def _named(self) -> str:
        if self.reach.batch is not None:
            return f"batch {self.reach.batch}"
        return "the slice that the saved offsets call done" if self.reach.early else "the slice after the saved offsets"

    def _stake(self, harm: Harm, spans: Spans, why: str, words: str) -> Stake:
        return Stake(
            step=self.strike.number,
            position=self.scale.position,
            sink=self.scale.case.sink,
            harm=harm,
            point=self.point,
            shown=not why,
            note=f"{words}: not shown, {why}" if why else words,
            records=self.scale.effects.size(cut=Cut(only=spans)),
            attempt=self.strike.outcome.attempt,
            checkpoint=self.reach.checkpoint,
            batch=self.reach.batch,
            allowed=harm is self.scale.allows,
        )

    def _invisible(self, harm: Harm, spans: Spans) -> str:
        """Why nobody would see the harm; empty if the comparison sees a model of it."""
        scale = self.scale
        if not (count := scale.effects.size(cut=Cut(only=spans))):
            return "it holds no record"
        if harm is Harm.REPETITION and scale.table.folds:
            return "the sink's query folds equal rows"
        if harm is Harm.REPETITION and scale.table.folds is None and scale.table.folding:
            return f"nobody knows whether the sink's query folds equal rows: {scale.table.folding}"
        seen = [self._seen(model) for model in self._models(harm, spans)]
        if not any(seen):
            part = scale.rows(Cut(only=spans))
            words = f"none of its {count} records pass the effect"
            return f"the effect of {scale.case.sink} is the same with it" if part else words
        # Rows that are added again beside a total show in any case: only what goes into the total can be hidden.
        return self._hidden(harm, spans) if seen[0] else ""

    def _models(self, harm: Harm, spans: Spans) -> Iterator[list[Row]]:
        """What the sink would hold."""
        scale, rows = self.scale, self.scale.rows
        if harm is Harm.LOSS:
            yield rows(Cut(without=spans))
            return
        yield rows(Cut(again=(spans,)))
        if scale.case.aggregate and not scale.table.unique:
            yield [*scale.case.expected, *rows(Cut(only=spans))]

    def _seen(self, model: Sequence[Row]) -> bool:
        """Does the comparison see the model in the place of what the sink should hold, as a right run does?"""
        case = self.scale.case
        marks = compare(replace(case, found=list(model)))
        return any(not only_rounding(mark, case.families) for mark in marks)

    def _hidden(self, harm: Harm, spans: Spans) -> str:
        """Which other batch would hide it: one lost where this one is doubled, or doubled where this one is lost."""
        scale = self.scale
        if not scale.case.aggregate:
            return ""
        expected = Counter(scale.case.expected)
        for batch, other in self._others(spans):
            cut = Cut(again=(spans,), without=other) if harm is Harm.REPETITION else Cut(without=spans, again=(other,))
            if Counter(scale.rows(cut)) == expected:
                return f"batch {batch} comes to the same totals, and one {_OPPOSITE[harm]} would hide it"
        return ""

    def _others(self, spans: Spans) -> list[tuple[int, Spans]]:
        """All other batches: where totals tie, they do not say of an earlier one that it was right at the strike. Where
        Spark's own word says that this batch was in the sink, and the totals are just that, they do."""
        known = [each for each in self.scale.effects.ranges() if set(each[1]).isdisjoint(spans)]
        if self.whole and self.reach.after:
            known = [each for each in known if not covers(between({}, self.reach.low), each[1])]
        return known[-BATCHES_MAX:]


_OPPOSITE = {Harm.REPETITION: "lost", Harm.LOSS: "counted twice"}
