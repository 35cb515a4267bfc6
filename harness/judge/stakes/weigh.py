"""What each hit put at stake in each sink, and whether this effect and this sink would show it.

*Repetition*: writing had begun on records that may be processed once more. *Loss*: a batch or slice was planned and not
committed, or the next attempt began beyond it. For each, the effect is asked what the sink would hold then; the same
comparison that judges the run must see that in a copy of the right rows, which are the run's own if it holds. Where it
does not, the hit has shown nothing, and the note says why.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from harness.checkers.compare import Key
from harness.checkers.offset_ranges import Cut, Offsets, Spans, between, covers, highest, joined, meet
from harness.errors import UsageError
from harness.judge.injections import Injection, lasting
from harness.judge.progress_at_hit import Reach
from harness.judge.stakes.in_flight import feeding, finished, handed, has, in_flight, lived
from harness.judge.stakes.looks import dropped_since, look
from harness.judge.stakes.scale import Scale, changed
from harness.judge.stakes.sink_state import RowsByKey, SinkState, blind, same, whole
from harness.judge.stakes.traces import Traces
from harness.judge.stakes.visible import Visibility
from harness.judge.stakes.weighed import COMMITTED, EARLY, PLANNED, RECEIVED, WRITING, WRITTEN, Known, Weighed
from harness.scenario import Harm, Stake


def weigh_all(scale: Scale, hits: Sequence[tuple[Injection, Sequence[Reach]]], *, many: int) -> list[Weighed]:
    """Weigh the hits of a run. It is one program: what one snapshot shows of when it saves offsets holds for all."""
    nexts = [*(injection for injection, _ in hits[1:]), None][: len(hits)]
    weighed = [weigh(scale, *hit, many=many, until=until) for hit, until in zip(hits, nexts, strict=True)]
    if not any(each.reach and each.reach.first for each in weighed):
        return weighed
    first = [(injection, [replace(reach, first=reach.own) for reach in found]) for injection, found in hits]
    return [weigh(scale, *hit, many=many, until=until) for hit, until in zip(first, nexts, strict=True)]


def weigh(
    scale: Scale, injection: Injection, found: Sequence[Reach], *, many: int = 1, until: Injection | None = None
) -> Weighed:
    """Weigh one hit. `many` queries may feed the sink, `found` are those that had begun; `until` is the next hit."""
    if injection.at is None:
        return _untold(injection, injection.why)
    at = look(scale, injection.at)
    restart = look(scale, injection.restart) if injection.restart else None
    if at is None:
        return _untold(injection, f"{scale.case.sink} could not be read when the fault hit")
    if not found:
        seen = injection.at.snapshot
        idle = not (seen.queries or seen.error) and seen.position is None
        words = "no query that reads the source was seen at work when the fault hit"
        if injection.only is None:
            words = "several queries were at work, and nothing shows for which of them the executor that died was"
        elif injection.only:
            words = f"only an executor at work for {injection.only} is known to have died"
        return Weighed(injection=injection, why=words, idle=idle, untold=not idle)
    late = injection.restart is not None and lasting(injection) is injection.restart
    if late and restart is None and len(found) > 1:
        return _untold(injection, f"{scale.case.sink} could not be read before the next attempt")
    last = restart or at
    try:
        reach = feeding(scale, found, many, restart if late and restart is not None else at)
        if reach is None:
            words = f"{max(many, len(found))} queries read the source, and nothing shows which of them feeds"
            return _untold(injection, f"{words} {scale.case.sink}: name it in the sink (`query`)")
        taken = in_flight(scale, injection, reach, last)
        return _Weighing(scale, injection, taken, at, last, until=until).weighed()
    except UsageError as failure:
        return _untold(injection, scale.refused(failure))


def _untold(injection: Injection, why: str) -> Weighed:
    return Weighed(injection=injection, why=why, untold=True)


class _Weighing:
    """One hit, one sink, one query."""

    def __init__(
        self,
        scale: Scale,
        injection: Injection,
        reach: Reach,
        at: SinkState,
        last: SinkState,
        *,
        until: Injection | None = None,
    ) -> None:
        assert injection.at is not None
        self.until = until
        self.scale, self.injection, self.reach, self.at, self.last = scale, injection, reach, at, last
        self.snapshot = injection.at.snapshot
        self.base, self.full = scale.upto(reach.low, last), scale.upto(reach.high, last)
        partial = scale.keys(reach.partial)
        keys = [key for key in changed(self.base, self.full) if key not in partial]
        self.blind = blind(scale.case) or (not keys and self._floats())
        # A row that is there with the batch and without it, and is not in the sink, is late: no trace of writing. So is
        # one as it was after an earlier batch.
        late = {key for key in keys if not self.last.rows[key] and key in self.base and key in self.full}
        late |= self._behind([key for key in keys if self.last.rows[key] not in (self.base[key], self.full[key])])
        traces = Traces(scale, last, self.base, self.full)
        self.touched = [key for key in keys if key not in late and traces.of(key)]
        # Where the batch changes nothing that shows, nothing shows that it was written, but for Spark's own word.
        self.there = bool(keys) and all(map(self._written, keys))
        self.whole = self.there or reach.after

    def _behind(self, keys: Sequence[Key]) -> set[Key]:
        """Those of the keys whose rows are as they were after a batch before the last committed one."""
        out = set[Key]()
        for end, then in self.scale.steps(self.last) if keys else ():
            if between(end, self.reach.low):
                out |= {key for key in keys if self.last.rows[key] == then[key]}
        return out

    def _floats(self) -> bool:
        """Does the batch change nothing but floating point numbers, which are left out of looks?"""
        low, high = (self.scale.rows(Cut(only=between({}, end))) for end in (self.reach.low, self.reach.high))
        return bool(changed(whole(self.scale.case, low), whole(self.scale.case, high)))

    def weighed(self) -> Known:
        """The stakes, and why there are none."""
        again, missing = self._again(), self._missing()
        # What another query may begin before, or a client that waits may ask for anew, is not known to be at stake; if
        # it comes again, that one did it.
        known = self._redone() if self.reach.other else self.reach.again if self._waited else again
        stakes = [*self._repetition(known), *self._loss(missing)]
        return Known(
            injection=self.injection,
            point=self.point,
            stakes=tuple(stakes),
            why="" if stakes else self._nothing(),
            reach=self.reach,
            again=again,
            missing=missing,
            late=self._late(),
            at=self.at,
            last=self.last,
        )

    @property
    def point(self) -> str:
        """Where the sink stood, whatever the trigger was called."""
        if not self.reach.taken or not self._in_flight():
            return RECEIVED if self.reach.stored or self.reach.gone else COMMITTED
        if self.reach.early and not self.begun:
            return EARLY
        if self.whole:
            return WRITTEN
        return WRITING if self.begun else PLANNED

    @property
    def begun(self) -> str:
        """What shows that the batch had begun to write; empty if nothing does."""
        if self.touched:
            return f"{sum(self._more(key) for key in self.touched)} rows in the sink"
        said = "Spark says that its sink is committed" if self.reach.after else ""
        return handed(self.scale, self.injection) or said

    def _more(self, key: Key) -> int:
        return (self.last.rows[key] - self.base[key]).total()

    def _again(self) -> Spans:
        """What may be processed once more, and has left something in the sink."""
        return joined(self._redone(), self.reach.again)

    def _redone(self) -> Spans:
        """What of the batch in flight may be done again, and would be there twice: not if whoever had it in flight was
        only paused, nor if all of it was rolled back before the next attempt worked."""
        unseen = self._unseen() and self.scale.allows is Harm.LOSS
        nobody = self._paused or self.reach.volatile or self._without
        return joined(*self._batches) if self._stays() and not (nobody or unseen or self._left) else ()

    @cached_property
    def _batches(self) -> tuple[Spans, ...]:
        """What was in flight as it may be done again: of DStreams what was done, and the next batch, each by itself;
        the next one only if somebody had begun to write it."""
        if not (over := between(self.reach.low, self._done)):
            return (self.reach.taken,)
        next_, base = between(self._done, self.reach.high), self.scale.upto(self._done, self.last)
        traces = Traces(self.scale, self.last, base, self.full)
        begun = any(map(traces.of, changed(base, self.full))) or handed(self.scale, self.injection)
        return (over, next_) if next_ and begun else (over,)

    @cached_property
    def _done(self) -> Offsets:
        """Up to where batches of DStreams were done in the sink, and may be done again."""
        return finished(self.scale, self.reach, self.last) if self.reach.by_time else self.reach.low

    @property
    def _lived(self) -> bool:
        return lived(self.injection, self.reach)

    @property
    def _paused(self) -> bool:
        return self.injection.paused and self._lived

    @cached_property
    def _read(self) -> bool:
        """Had whoever lived read what the fault took for good? All of it is in the sink, and it was gone since."""
        return self.injection.outcome.evidence.unhealed and self._lived and self._came(self.reach.taken)

    @cached_property
    def _without(self) -> bool:
        """Did whoever lived do without what was away? The batch was committed meanwhile, and is right."""
        newest = self.injection.outcome.evidence.committed_meanwhile.get(self.reach.checkpoint, -1)
        committed = self.reach.batch is not None and self.reach.batch <= newest
        return committed and self._lived and self._came(self.reach.taken)

    @property
    def _waited(self) -> bool:
        return self.injection.waited and self._lived

    def _retried(self, spans: Spans) -> Spans:
        """Of these, what is known to be written once more. A driver that lives retries the tasks that had not finished:
        one whose rows are all in the sink may have, one that got half of a partition in has not. Which task wrote to a
        total, nothing says, nor what a program asks a server for again that was away."""
        if not self._lived or not self.begun:
            return spans
        if self.whole:
            return ()
        if not self.injection.retried:
            return spans
        return spans if self.scale.case.aggregate else tuple(s for s in spans if self._half(self.scale.keys((s,))))

    def _half(self, keys: Collection[Key]) -> bool:
        """Are some of the rows there, and some not?"""
        return any(map(self._written, keys)) and not all(map(self._written, keys))

    def _written(self, key: Key) -> bool:
        """Is all there that the batch writes under this key?"""
        return self.last.rows[key] != self.base[key] and has(self.last.rows[key], self.full[key])

    def _stays(self) -> bool:
        """Is some of it in the sink, or may it still be?"""
        late = self.injection.restart
        left = late.snapshot.writing if late is not None else self.snapshot.left
        rolled_back = left is not None and not left.get(str(self.scale.position))
        return bool(self.touched or self._unseen() or self.reach.after or (self.begun and not rolled_back))

    @cached_property
    def _left(self) -> bool:
        """Did the next attempt begin beyond all that was in flight, and is it right in the end? Then nobody did it
        again, and it was not lost: an orphan finished it, or the sink was late."""
        if self.reach.next is None or self.reach.other or not self.reach.taken:
            return False
        beyond = between(self.reach.low, self.reach.next)
        return covers(beyond, self.reach.taken) and self._came(beyond)

    def _unseen(self) -> bool:
        """Does nothing show whether the sink has it? Spark's own word is that it has; the program may write later. Then
        either harm is at stake, and under a guarantee that allows one of them it may be that one."""
        said = self.reach.after and not self.touched and not self.scale.late
        return bool(self.reach.taken) and (said or (self.blind and self._in_flight()))

    def _missing(self) -> Spans:
        """What may never be processed, as far as the sink has not got it yet. Whoever was only paused goes on."""
        gone = () if self._came(self.reach.gone) else self.reach.gone
        return joined(() if self._left else self._planned(), gone, self.reach.stored)

    def _planned(self) -> Spans:
        """The same of what was planned, and of what the next attempt has skipped."""
        known = self._in_flight() and not (self.whole or self._vague())
        open_ = self.scale.allows is not Harm.REPETITION if self._unseen() else known
        shut = not open_ or self._paused or self._read or self._without
        taken = () if shut else between(self._done, self.reach.high)
        skipped = () if self.reach.other else self.reach.skipped
        if skipped and not self.reach.early and self._came(skipped):
            # The rest of the batch, which the next attempt began with, is as it would be without that.
            return between(highest([self.reach.low, self.reach.next or {}]), self.reach.high) if taken else ()
        return joined(taken, skipped)

    def _came(self, spans: Spans) -> bool:
        """Is all of it right in the end, though the next attempt began beyond it? Then an orphan of the one before
        wrote it."""
        case = self.scale.case
        end, right = (whole(case, rows) for rows in (case.found, case.expected))
        keys = self.scale.keys(spans)
        if self.scale.allows is Harm.REPETITION and not case.aggregate:
            # What came again later, and may, does not make it wrong.
            return all(right[key] <= end[key] for key in keys)
        return all(same(case, key, end[key], right[key]) for key in keys)

    def _vague(self) -> bool:
        """Does nothing say how much of it was in flight? A total does not, and what was taken next may be more."""
        own = self.reach.own and not self.reach.early
        return own and self.scale.case.aggregate and not handed(self.scale, self.injection)

    def _in_flight(self) -> bool:
        """Spark's log says what is planned; of a pipeline that keeps its own offsets, only what it has begun does: in
        this sink, in another one, or where it saves them. Who writes beside these may do so at any time."""
        elsewhere = any(words for sink, words in self.snapshot.writing.items() if sink)
        return not self.reach.own or self.reach.early or bool(self.begun or elsewhere)

    def _late(self) -> Spans:
        """What Spark's commit log has, and the sink has nothing of: a sink may show it later, or never. A loss of it
        may be this hit's doing, and nothing more can be said."""
        last = () if self.reach.own else self.reach.last
        before = (
            self.last.of(self.scale.rows(Cut(without=last, only=between({}, self.reach.low)))) if last else RowsByKey()
        )
        keys = changed(before, self.base) if last else []
        return last if keys and all(self.last.rows[key] == before[key] for key in keys) else ()

    def _nothing(self) -> str:
        if self.reach.volatile and (self._left or self.whole):
            return "what its receiver had stored is gone, and all of that is in the sink"
        if self._left or (self.reach.skipped and not self.reach.early and self.injection.restart is None):
            return "all that was planned is in the sink, though the next attempt began beyond it: an orphan wrote it"
        if self.reach.partial and not self.reach.taken:
            apart = "the sources of its query stood at different offsets, or one had gone back"
            return f"{apart}, and no record was in flight of all of them"
        if self.reach.by_time and self._lived and not self.reach.taken:
            return "the driver lived, and does nothing again that is done"
        if self.reach.batch is not None and not self.reach.taken:
            what = "held no record" if self.scale.sink.watermark is None else "wrote no window"
            return f"batch {self.reach.batch} {what}"
        if self.reach.taken and self._paused:
            return "the driver was paused, and went on with what it had in flight"
        if self.reach.taken and self._read:
            return "what was taken for good had been read before: the driver lived, and all of the batch is in the sink"
        if self.reach.taken and self._without:
            return "the batch was committed before what was away came back: whoever wrote it had no need of it"
        if self.reach.taken and self._waited and self.whole:
            return "no driver ended while the server was away, so nothing was done again, and all of it is in the sink"
        if self.reach.taken:
            return "nothing shows that a slice was in flight: no row beyond the saved offsets, no open transaction"
        return "every planned batch was committed: nothing was in flight"

    @cached_property
    def _visibility(self) -> Visibility:
        # Where Spark's own word says that this batch was in the sink, and the totals are just that, they were right.
        right = self.reach.low if self.there and self.reach.after else {}
        return Visibility(self.scale, bool(self.touched), right, dropped_since(self.scale, self.injection, self.until))

    def _repetition(self, spans: Spans) -> Iterator[Stake]:
        if not spans:
            return
        sure = self._retried(spans)
        came = bool(sure) and self._visibility.came(sure)
        why = _FINISHED if not sure else "" if came else self._unshown(sure)
        yield self._stake(Harm.REPETITION, sure or spans, why, self._repeated(bool(self._redone())), came=came)

    def _unshown(self, spans: Spans) -> str:
        """Why nobody would see that they came again; empty if one of the batches would show, as each may come alone."""
        parts = self._batches if len(self._batches) > 1 else (spans,)
        whys = [self._visibility.why_not(Harm.REPETITION, part) for part in parts]
        return whys[0] if all(whys) else ""

    def _repeated(self, taken: bool) -> str:
        log = "the saved offsets" if self.reach.own else "Spark's commit log"
        begun = self.begun or "nothing shows whether it was written"
        told = f"{begun}, {'and a restart does it again' if self.reach.by_time else f'not in {log}'}"
        told = begun if self.reach.early else told
        own = f"repetition of {self._named()} ({told})" if taken else ""
        count = 0 if self.reach.other else self.scale.effects.size(cut=Cut(only=self.reach.again))
        back = f"repetition of {count} committed records: the next attempt began before them" if count else ""
        return "; ".join(filter(None, (own, back)))

    def _loss(self, spans: Spans) -> Iterator[Stake]:
        if not spans:
            return
        why = "not whole in the sink" if self.reach.early else "planned, not committed"
        words = [f"loss of {self._named()} ({why})"] if meet(spans, self.reach.taken) else []
        if (beyond := self.reach.skipped) and not self.reach.early:
            count = self.scale.effects.size(cut=Cut(only=beyond))
            words.append(f"loss of {count} records before which the next attempt began")
        sent, stored = "were sent to its receiver, and are in no batch", "its receiver had stored, and no batch had"
        for part, what in ((self.reach.gone, sent), (self.reach.stored, stored)):
            if meet(spans, part):
                words.append(f"loss of {self.scale.effects.size(cut=Cut(only=part))} records that {what}")
        yield self._stake(Harm.LOSS, spans, self._visibility.why_not(Harm.LOSS, spans), "; ".join(words))

    def _named(self) -> str:
        if self.reach.batch is not None:
            return f"batch {self.reach.batch}"
        return "the slice that the saved offsets call done" if self.reach.early else "the slice after the saved offsets"

    def _stake(self, harm: Harm, spans: Spans, why: str, words: str, *, came: bool = False) -> Stake:
        return Stake(
            step=self.injection.number,
            position=self.scale.position,
            sink=self.scale.case.sink,
            harm=harm,
            point=self.point,
            shown=not (why or came),
            came=came,
            note=f"{words}: not shown, {why}" if why else words,
            records=self.scale.effects.size(cut=Cut(only=spans)),
            attempt=self.injection.outcome.attempt,
            checkpoint=self.reach.checkpoint,
            batch=self.reach.batch,
            allowed=harm is self.scale.allows,
            why=why,
        )


_FINISHED = "all of it was written, and the driver lived: it retries no task that has finished"
