"""How far each query was when a fault was injected, and where the next attempt began.

Offsets of one query: everything before `low` was committed then, everything before `high` planned, and the next attempt
began at `next`. With a checkpoint they are Spark's logs. A pipeline that manages its own offsets has planned what it
was seen to read next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from harness.checkers.offset_ranges import OffsetRange, OffsetRanges, Offsets, between, covers, highest, joined, lowest
from harness.judge.injections import Injection, lasting
from harness.judge.read_folder import done
from harness.scenario import CrashPoint, Sink
from harness.snapshot import Batch, Progressed, Query, QueryState, Snapshot


@dataclass(frozen=True, kw_only=True)
class QueryProgress:
    """How far one query had come when a fault was injected."""

    low: Offsets
    """Everything before was committed."""
    high: Offsets
    """Everything before was planned."""
    next: Offsets | None = None
    """Where the next attempt that worked began; None if the driver lived, or there was none."""
    resumed: Offsets | None = None
    """Where the next attempt began, if the driver lived and ended later."""
    last: OffsetRanges = ()
    """What was committed last."""
    batch: int | None = None
    """The batch in flight; None if there was none, or the pipeline manages its own offsets."""
    checkpoint: str = ""
    after: bool = False
    """The sink of the batch in flight was committed, as Spark says."""
    own: bool = False
    """The pipeline manages its own offsets."""
    partial: OffsetRanges = ()
    """What only some of a query's sources had committed, or planned: nothing is said of it."""
    other: bool = False
    """`next` may be that of another query, for this one had no more to do."""
    received: OffsetRanges = ()
    """What a receiver lost that died: it had not stored it, or stored it in no batch."""

    @property
    def taken(self) -> OffsetRanges:
        """Planned and not committed."""
        return between(self.low, self.high)

    @property
    def reread(self) -> OffsetRanges:
        """Committed before, and read again by the next attempt."""
        return between(self.next, self.low) if self.next is not None else ()

    @property
    def skipped(self) -> OffsetRanges:
        """Not committed, and the next attempt began beyond it."""
        return between(self.low, self.next) if self.next is not None else ()

    @property
    def restarted(self) -> bool:
        """Return whether the driver lived and ended later, and the next attempt began with some of what was in
        flight."""
        if self.resumed is None or not self.taken:
            return False
        return not covers(between(self.low, self.resumed), self.taken)


def query_progress(
    injection: Injection, progressed: Progressed, sink: Sink, *, later: Sequence[Injection] = ()
) -> list[QueryProgress]:
    """Return how far each query was that may feed `sink`; empty if that is not known. `later` are the steps after
    it."""
    snapshot = lasting(injection).snapshot
    if snapshot.position is not None:
        return [_by_hand(snapshot, progressed, died=injection.died, ends=_ended(injection, later))]
    states = [pair for pair in _states(snapshot, progressed.queries) if _current(pair, snapshot, progressed.queries)]
    touched = [pair for pair in states if injection.only in ("", pair[0].checkpoint)]
    named = [pair for pair in touched if may_feed(pair[0].checkpoint, sink)]
    ends = _ended(injection, later)
    found = [
        _progress(pair, injection, progressed, sink, _before(pair[0], injection, later), ends=ends) for pair in named
    ]
    return [progress for progress in found if progress is not None]


def _ended(injection: Injection, later: Sequence[Injection]) -> bool:
    """Return whether a later step ended the same attempt. Then the start of the next one says nothing of this step."""
    return any(each.died and each.outcome.attempt == injection.outcome.attempt for each in later)


def _before(state: QueryState, injection: Injection, later: Sequence[Injection]) -> Offsets:
    """Return what a query had planned when its attempt was struck again; empty if it was not, or that is not known."""
    again = (each.at.snapshot for each in later if each.at and each.outcome.attempt == injection.outcome.attempt)
    states = (each for snapshot in again for each in snapshot.queries if each.checkpoint == state.checkpoint)
    return next((each.planned for each in states), {})


def feeders(progressed: Progressed, sink: Sink) -> int:
    """Return how many queries may feed `sink`: as many as read the source in one and the same attempt."""
    ours = _ours(progressed, sink)
    return max((sum(attempt in query.first for query in ours) for query in ours for attempt in query.first), default=0)


def taken(progressed: Progressed, sink: Sink) -> list[list[tuple[int | None, OffsetRanges]]]:
    """Return the offset ranges that were read at once: by the batches of each query that may feed `sink`, otherwise
    between two saved positions."""
    if ours := _ours(progressed, sink):
        return [[(batch.batch, _as_ranges(batch.ranges)) for batch in query.batches] for query in ours]
    at = [position.next for position in progressed.positions]
    moves = (between(low, high) for low, high in pairwise(at))
    found: list[tuple[int | None, OffsetRanges]] = [(None, ranges) for ranges in moves if ranges]
    return [found] if found else []


def _ours(progressed: Progressed, sink: Sink) -> list[Query]:
    """Return the queries that read the source and may feed `sink`."""
    return [query for query in progressed.queries if query.ours and may_feed(query.checkpoint, sink)]


def may_feed(checkpoint: str, sink: Sink) -> bool:
    """Return whether the sink does not rule out the query."""
    return sink.query in (None, checkpoint.rpartition("/")[2])


def _states(snapshot: Snapshot, queries: Sequence[Query]) -> Iterator[tuple[QueryState, Query]]:
    """Yield each query of the source as it stood, and as it was in the end; the n-th of a folder is the n-th of it."""
    left = list(queries)
    for state in snapshot.queries:
        found = next((query for query in left if query.checkpoint == state.checkpoint), None)
        if found is not None:
            left.remove(found)
            if state.ours and found.ours:
                yield state, found


def _current(pair: tuple[QueryState, Query], snapshot: Snapshot, queries: Sequence[Query]) -> bool:
    """Return whether it was a query of the attempt that was struck, or of an earlier one whose checkpoint is still in
    use."""
    seen = [attempt for query in queries if query.ours for attempt in query.first if attempt <= snapshot.attempt]
    touched = pair[1].first
    return bool(seen) and bool(touched) and min(touched) <= snapshot.attempt and max(touched) >= max(seen)


def _progress(
    pair: tuple[QueryState, Query],
    injection: Injection,
    progressed: Progressed,
    sink: Sink,
    before: Offsets,
    *,
    ends: bool,
) -> QueryProgress | None:
    """Return how far one query was; None if it is not known what it had committed. `before`: what it had planned when
    the same attempt was struck again."""
    state, query = pair
    known = {batch.batch: batch for batch in query.batches}
    first = known[min(known)] if known else None
    newest = known.get(max(state.commits)) if state.commits else None
    if state.commits and not (state.committed or newest):
        return None
    start = {p: begin for p, (begin, _) in first.ranges.items()} if first else {}
    # Spark may have purged the offsets of the last committed batch.
    at = _beyond_gone(query, injection.outcome.attempt, state.committed or (_ends(newest) if newest else start))
    # A source that goes back has not done again what lies beyond; so it is from the plan on, whatever strikes then.
    slowest = {p: min(end, state.planned.get(p, end)) for p, end in at.items()}
    step = injection.outcome
    # What one source, or an earlier batch, had committed and another one had not is neither done nor in flight.
    done_once = [_ends(batch) for batch in query.batches if batch.batch <= max(state.commits, default=-1)]
    low = highest([at, state.committed_most, *done_once])
    high, most = highest([low, state.planned]), highest([slowest, state.planned_most])
    began, new = _next(query, step.attempt, progressed, sink)
    next_ = began if injection.died else None
    other = new and done(query, progressed.end)
    planned = max(state.offsets, default=None)
    batch = planned if planned not in state.commits else None
    last = _as_ranges(newest.ranges) if newest else ()
    dead = injection.died or injection.swept
    stored = between(high, highest([high, state.stored])) if dead else ()
    return QueryProgress(
        low=low,
        high=high,
        next=low if next_ is not None and _same(next_, slowest) else next_,
        resumed=None if injection.died or other or ends else began,
        partial=joined(between(slowest, low), between(high, most)),
        other=other and injection.died,
        last=last,
        batch=batch,
        checkpoint=state.checkpoint,
        after=step.crash_point is CrashPoint.SINK_COMMITTED
        and (step.checkpoint, step.batch) == (state.checkpoint, batch),
        received=joined(_gone(query, injection, state, before), stored),
    )


def _beyond_gone(query: Query, attempt: int, at: Offsets) -> Offsets:
    """Return these offsets, beyond what an earlier attempt's receiver had lost at just that place: no attempt reads
    that again."""
    out = dict(at)
    for each in sorted(query.gone, key=lambda gone: gone.start):
        if each.attempt < attempt and each.start <= out.get(each.partition, 0) < each.end:
            out[each.partition] = each.end
    return out


def _gone(query: Query, injection: Injection, state: QueryState, before: Offsets) -> OffsetRanges:
    """Return what a receiver that died had not stored: beyond what the query had planned by then, and not beyond what
    it had planned when the same attempt was struck again."""
    if not (injection.died or injection.retried):
        return ()
    here = (each for each in query.gone if each.attempt == injection.outcome.attempt)
    own = (
        OffsetRange(each.partition, each.start, each.end)
        for each in here
        if state.planned.get(each.partition, 0) <= each.start < before.get(each.partition, each.end)
    )
    return joined(tuple(own))


def _ends(batch: Batch) -> Offsets:
    return {p: end for p, (_, end) in batch.ranges.items()}


def _same(one: Offsets, other: Offsets) -> bool:
    return not (between(one, other) or between(other, one))


def _as_ranges(ranges: object) -> OffsetRanges:
    assert isinstance(ranges, dict)
    return between({p: s for p, (s, _) in ranges.items()}, {p: e for p, (_, e) in ranges.items()})


def _next(query: Query, attempt: int, progressed: Progressed, sink: Sink) -> tuple[Offsets | None, bool]:
    """Return where the next attempt that was seen at work began: in this query's checkpoint, else in a new one; and
    whether that has another name."""
    later = [each for q in progressed.queries if q.ours for each in q.first if each > attempt]
    if not attempt or not later:
        return None, False
    if own := [each for each in query.first if each > attempt]:
        return _began(query, min(own)), False
    fresh = [q for q in _ours(progressed, sink) if q.first and min(q.first) == min(later)]
    earlier = {q.checkpoint for q in progressed.queries if min(q.first, default=0) <= attempt} - {query.checkpoint}
    begun = [(found, q) for q in fresh if q.checkpoint not in earlier and (found := _began(q, min(later))) is not None]
    others = any(q.checkpoint != query.checkpoint for _, q in begun)
    return lowest([found for found, _ in begun]) if begun else None, others


def _began(query: Query, attempt: int) -> Offsets | None:
    """Return where an attempt began: with its first batch. A source of the program's own may go back in the first that
    the attempt planned by itself, which then ends before it begins; in a later one it does so for another reason than
    the start."""
    known = {each.batch: each for each in query.batches}
    first = known.get(query.first[attempt])
    # Of a DStreams program that made its checkpoint again this is not known before it has taken something.
    if first is None or (query.made_again and not first.ranges):
        return None
    again = any(earlier < attempt for earlier in first.attempts)
    own = known.get(first.batch + 1) if again else None
    ends = [_ends(first), *([_ends(own)] if own is not None and attempt in own.attempts else [])]
    return {p: min([start, *(end.get(p, start) for end in ends)]) for p, (start, _) in first.ranges.items()}


def _by_hand(snapshot: Snapshot, progressed: Progressed, *, died: bool, ends: bool) -> QueryProgress:
    """A pipeline that manages its own offsets: planned is what it took next, of what was sent by then."""
    low = snapshot.position or {}
    before = [p for p in progressed.positions if p.at_s <= snapshot.at_s and p.attempt <= snapshot.attempt]
    # What an earlier attempt saved last is where this one began.
    moves = [p.next for p in before if p.next != low or p.attempt < snapshot.attempt]
    after = [p.next for p in progressed.positions if p.at_s > snapshot.at_s and p.next != low]
    taken = lowest([after[0], highest([low, snapshot.sent])]) if after else dict(low)
    launched = next((p.next for p in progressed.positions if p.attempt > snapshot.attempt), None)
    return QueryProgress(
        low=low,
        high=highest([low, taken]),
        next=launched if died else None,
        resumed=None if died or ends else launched,
        last=between(moves[-1] if moves else {}, low),
        own=True,
    )
