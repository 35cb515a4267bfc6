"""Which hit caused a finding, as far as the snapshots show it, and which may have.

A finding is *explained* by a hit if the sink shows both sides of it:

    duplicated       its row was there before the next attempt worked, and there are more of it afterwards
    lost             a whole stretch of what was planned was not there, and never came; or the next attempt skipped it
    corrupted        the right row was there, and another one is there now
    wrong aggregate  the total was right as far as the batch had written, and is now what the effect makes of the ledger
                     with those records once more, or without them; so are all totals that they went into, and no
                     other batch comes to the same

and if its records were at stake in that hit. Every other hit at whose stake they were *fits*, and nothing is claimed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from harness.checkers.cells import Row
from harness.checkers.compare import Key
from harness.checkers.explain import TOO_HIGH, TOO_LOW
from harness.checkers.spans import Cut, Span, Spans, between, joined, meet, tail
from harness.judge.look import Held, Look, held, named_by, same, whole
from harness.judge.scale import SLICES_MAX, Scale
from harness.judge.stakes import WRITING, Known, Weighed
from harness.scenario import Finding, Harm, Kind

HITS_MAX = 5
"""Up to so many hits are tried in every combination."""
TOGETHER = range(2, HITS_MAX + 1)
PARTS_MAX = 4
"""Of a batch with more partitions, only the whole is tried."""
PARTS = range(1, PARTS_MAX + 1)


@dataclass(frozen=True)
class Told:
    """An explanation: the hits, the harm that they did, and of totals what each of them did twice."""

    hits: tuple[Known, ...]
    harm: Harm
    again: tuple[Spans, ...] = ()


def caused(scale: Scale, findings: Sequence[Finding], weighed: Sequence[Weighed]) -> list[Finding]:
    """The findings of one sink with the hits that explain them, and those that fit."""
    known = [each for each in weighed if isinstance(each, Known)]
    if not findings or not known:
        return [replace(finding, fits=_labels(weighed), staked=_no_more(scale, weighed)) for finding in findings]
    unseen = _labels([each for each in weighed if not (isinstance(each, Known) or each.idle)])
    told = _Causes(scale, known, findings).told()
    told = [each if each.faults else replace(each, fits=(*each.fits, *unseen)) for each in told]
    return [each if each.staked else replace(each, staked=_no_more(scale, weighed)) for each in told]


def _no_more(scale: Scale, weighed: Sequence[Weighed]) -> bool | None:
    """Nothing else was at stake; nobody knows, if a snapshot does not say what was, a fault lasted, an attempt came to
    an end without one, or the sources of a query stood apart."""
    open_ = (
        not (isinstance(each, Known) or each.idle) or each.strike.lasts or (each.reach and each.reach.apart)
        for each in weighed
    )
    return None if scale.alone or any(open_) else False


def _doubled(spans: Spans) -> Cut:
    return Cut(again=(spans,))


def _left_out(spans: Spans) -> Cut:
    return Cut(without=spans)


def _labels(weighed: Sequence[Weighed]) -> tuple[str, ...]:
    return tuple(each.strike.label for each in weighed)


class _Causes:
    """The hits of one run, as one sink saw them."""

    def __init__(self, scale: Scale, hits: Sequence[Known], findings: Sequence[Finding]) -> None:
        self.scale, self.hits, self.findings = scale, hits, findings
        self._tables: dict[Cut, Held] = {}
        self._exact: dict[Cut, Held] = {}
        self._whole_again: dict[int, bool] = {}
        self._twos: dict[Spans, bool] = {}
        # What sources that stood apart had in hand, each for itself: a row of it that was there and came again did so
        # after the fault.
        self.apart = [self._keys(hit.reach.apart) for hit in hits]
        self.again = [self._keys(hit.again) | (self.apart[n] if hit.again else set()) for n, hit in enumerate(hits)]
        self.missing = [self._keys(hit.missing) for hit in hits]
        self.late = [self._keys(hit.late) for hit in hits]
        self.end = Look(scale.case, held(scale.case, scale.case.found))
        self.right = held(scale.case, scale.case.expected)
        self.all = whole(scale.case, scale.case.found)
        keys = {*self.right, *self.end.rows}
        self.wrong = {key for key in keys if not self._fits(Cut(), key)}
        self.open = joined(*(hit.open for hit in hits))
        self.ranges = dict(scale.effects.ranges())
        self.units = [list(self._units(hit)) for hit in hits]

    def _keys(self, spans: Spans) -> set[Key]:
        return set(self._table(Cut(only=spans))) if spans else set()

    def _table(self, cut: Cut) -> Held:
        if cut not in self._tables:
            self._tables[cut] = held(self.scale.case, self.scale.rows(cut))
        return self._tables[cut]

    def told(self) -> list[Finding]:
        """Each finding with its cause."""
        return [self._told(finding) for finding in self.findings]

    def _told(self, finding: Finding) -> Finding:
        key = tuple(finding.key.values()) if named_by(self.scale.case) else ()
        told = list(self._explained(finding, key))
        near = [hit for place, hit in enumerate(self.hits) if self._near(place, key, finding)]
        lost = any(Harm.LOSS is each.harm for each in told)
        staked = finding.kind is Kind.LOST and (self._staked(key) or (lost and not self._gone(key)))
        vague = self.scale.allows is Harm.LOSS and finding.kind is Kind.CORRUPTED and self._unchanged(key, finding)
        fits = _labels(near or self._any(finding))
        finding = replace(finding, staked=staked, vague=vague, fits=fits, near=_labels(near))
        if not told:
            return finding
        hits = {hit.strike.number: hit for each in told for hit in each.hits}
        batches = tuple(sorted({hit.reach.batch for hit in hits.values() if hit.reach.batch is not None}))
        weak = lost or finding.kind is Kind.CORRUPTED or not self._again_whole(finding, told)
        out = replace(finding, faults=_labels(list(hits.values())), fits=(), near=(), to_confirm=weak)
        if finding.kind is not Kind.WRONG_AGGREGATE:
            return out
        if not batches:
            return out
        (name, *others) = {hit.reach.checkpoint for hit in hits.values() if hit.reach.batch is not None}
        # Of several, the names of the faults say which batch is whose.
        named = "" if others or not all(hit.strike.beside for hit in hits.values()) else name
        return replace(out, batches=batches, note=_note(told[0], batches), checkpoint=named)

    def _again_whole(self, finding: Finding, told: Sequence[Told]) -> bool:
        """Did all that the struck batch had in the sink come again? Some of it, or a single record, may for any
        reason."""
        if finding.kind is Kind.WRONG_AGGREGATE:
            return all(self._two(part) for each in told for part in each.again)
        if finding.kind is not Kind.DUPLICATED:
            return True
        hits = [hit for each in told for hit in each.hits]
        return not self.scale.case.aggregate and all(self._more_of_all(hit) for hit in hits)

    def _more_of_all(self, hit: Known) -> bool:
        if hit.strike.number not in self._whole_again:
            self._whole_again[hit.strike.number] = self._all_more(hit)
        return self._whole_again[hit.strike.number]

    def _all_more(self, hit: Known) -> bool:
        again = self._table(Cut(only=hit.again))
        there = {(key, row): self._saw(hit, key, row) for key, rows in again.items() for row in rows}
        seen = {place: count for place, count in there.items() if count}
        more = (_count(self.end, key, row) - self.right[key][row] >= count for (key, row), count in seen.items())
        return sum(seen.values()) > 1 and all(more)

    def _saw(self, hit: Known, key: Key, row: Row) -> int:
        """How many copies of a row were there before the next attempt worked."""
        return max(_count(hit.last, key, row), _count(hit.at, key, row))

    def _near(self, place: int, key: Key, finding: Finding) -> bool:
        """May the hit have done it: were the finding's records at stake, and does no snapshot refute it?"""
        hit = self.hits[place]
        if finding.kind is Kind.WRONG_AGGREGATE and self._mended(place, key):
            return False
        if finding.kind is Kind.WRONG_AGGREGATE and finding.batches:
            stakes = joined(hit.again, hit.missing)
            return any(meet(stakes, self.ranges[batch]) for batch in finding.batches)
        if (
            finding.kind is Kind.DUPLICATED
            and not hit.strike.moving
            and self._before(hit, key) >= self._after(place).rows[key].total()
        ):
            return False
        if finding.kind is Kind.CORRUPTED and self._wrong_then(hit, key, finding):
            return False
        if self._right_later(place, key, finding.kind):
            return False
        late = finding.kind is Kind.LOST and key in self.late[place]
        # A window that a watermark closes is written by a later batch than its records came with.
        closed = self.scale.case.aggregate and finding.kind is Kind.DUPLICATED and self._before(hit, key) > 0
        staked = self.again[place] | self.missing[place] | self.apart[place]
        return late or (closed and bool(hit.again)) or key in staked

    def _right_later(self, place: int, key: Key, kind: Kind) -> bool:
        """Was what is missing or changed now still there, and right, when a later fault struck?"""
        gone = self.right[key] - self.end.rows[key]
        looks = [hit.at for hit in self.hits[place + 1 :] if hit.at.places is None]
        return kind in (Kind.LOST, Kind.CORRUPTED) and any(gone and gone <= look.rows[key] for look in looks)

    def _wrong_then(self, hit: Known, key: Key, finding: Finding) -> bool:
        """Was the wrong row there before the next attempt worked?"""
        wrong = hit.last.of(tuple(row.values()) for row in finding.found)[key]
        return hit.last.places is None and wrong <= hit.last.rows[key]

    def _unchanged(self, key: Key, finding: Finding) -> bool:
        """Is the wrong row the one that was there before what was in hand would have changed it? Nobody can tell a
        change that was lost from one that was wrong."""
        hits = (hit for place, hit in enumerate(self.hits) if key in self.missing[place])
        return any(self._wrong_then(hit, key, finding) for hit in hits)

    def _staked(self, key: Key) -> bool:
        """Is nothing missing of the key but what was at stake in a hit, and was not in the sink when one struck?"""
        return bool(self.open) and not self._gone(key) and self._as(Cut(without=self.open), key) <= self.end.rows[key]

    def _gone(self, key: Key) -> bool:
        """Was a row of the key there when a fault struck that is not there now?"""
        end = self.end.rows[key]
        looks = (look for hit in self.hits for look in (hit.at, hit.last))
        return any(not look.rows[key] <= look.of(end.elements())[key] for look in looks)

    def _any(self, finding: Finding) -> Sequence[Known]:
        """Rows that nobody expected, and rows out of order, belong to no batch: any hit may have made them."""
        return self.hits if finding.kind in (Kind.UNEXPECTED, Kind.MISORDERED) else ()

    def _explained(self, finding: Finding, key: Key) -> Iterator[Told]:
        if finding.kind is Kind.WRONG_AGGREGATE:
            yield from self._total(key)
            return
        if finding.kind is Kind.LOST:
            # What is still planned when a later fault strikes was not lost by an earlier one.
            hits = [hit for place, hit in enumerate(self.hits) if self._lost(place, key)]
            yield from (Told((hit,), Harm.LOSS) for hit in hits[-1:])
        looks = {Kind.DUPLICATED: self._twice, Kind.CORRUPTED: self._changed}
        look = looks.get(finding.kind)
        for place, hit in enumerate(self.hits):
            if look is not None and key in self.again[place] and look(place, hit, key):
                yield Told((hit,), Harm.REPETITION)

    def _before(self, hit: Known, key: Key) -> int:
        """How many rows of the key were there before the next attempt worked."""
        return max(hit.last.rows[key].total(), hit.at.rows[key].total())

    def _after(self, place: int) -> Look:
        """The sink when the next fault struck, or in the end."""
        return next((hit.at for hit in self._later(place)), self.end)

    def _later(self, place: int) -> list[Known]:
        """The hits after one, but for those of attempts that had not done anything: the sink was as it had been."""
        then = self.hits[place].last.rows
        return [hit for hit in self.hits[place + 1 :] if hit.strike.worked or hit.at.rows != then]

    def _twice(self, place: int, hit: Known, key: Key) -> bool:
        right = self.right[key]
        if right.total() == 1:
            return self._after(place).rows[key].total() > self._before(hit, key) > 0
        # Other batches have rows of this key too: only more copies of a row than they brought are a repetition.
        surplus = self.end.rows[key] - right
        again = self._as(Cut(only=hit.again), key)
        return any(self._grew(place, hit, key, row) for row in surplus if row in again)

    def _grew(self, place: int, hit: Known, key: Key, row: Row) -> bool:
        """Was a row there that no other slice gives, and is there more of it afterwards than there should be?"""
        before, after = self._saw(hit, key, row), _count(self._after(place), key, row)
        return after > max(before, self.right[key][row]) and before > 0 and not self._elsewhere(hit.again, key, row)

    def _elsewhere(self, spans: Spans, key: Key, row: Row) -> bool:
        """May another slice have given the row?"""
        others = [other for _, other in self.scale.slices if not meet(spans, other)]
        if not self.scale.slices or len(others) > SLICES_MAX:
            return True
        return any(self._as(Cut(only=other), key)[row] for other in others)

    def _lost(self, place: int, key: Key) -> bool:
        return any(key in unit and self._absent(self.hits[place:], unit) for unit in self.units[place])

    def _absent(self, hits: Sequence[Known], unit: set[Key]) -> bool:
        """Nothing of it was there, and nothing came, as far as any later hit shows. One row alone may be missing for
        any reason."""
        seen = any(key in self.end.rows or any(self._before(hit, key) for hit in hits) for key in unit)
        return len(unit) > 1 and not seen

    def _units(self, hit: Known) -> Iterator[set[Key]]:
        """Stretches that are lost as one: what was skipped, the batch, each of its partitions, what was left to write.

        Where Spark had heard that the sink was committed, what is missing was missing before the fault."""
        if hit.reach.skipped:
            yield self._keys(hit.reach.skipped)
        if hit.reach.after:
            return
        if hit.missing:
            yield self._keys(hit.missing)
            yield from (self._keys((span,)) for span in hit.missing)
        left = {key for key in self._keys(hit.missing) if not self._before(hit, key)}
        if hit.point == WRITING and left == set().union(*(self._tail(span, left) for span in hit.missing)):
            yield left

    def _tail(self, span: Span, left: set[Key]) -> set[Key]:
        """The last records of a stretch, as many as have nothing in the sink: a writer that died goes no further."""
        return self._keys((tail(span, lambda part: self._keys((part,)) <= left),))

    def _changed(self, place: int, hit: Known, key: Key) -> bool:
        right = self.right[key] - self.end.rows[key]
        then = self._after(place).rows[key]
        return hit.at.places is None and bool(right) and right <= hit.at.rows[key] and not right <= then

    def _total(self, key: Key) -> Iterator[Told]:
        """The hits whose harm comes to just this total."""
        for place, hit in enumerate(self.hits):
            found = (more for inside, more in self._repeats(hit) if self._repeated(place, key, inside, more))
            if (more := next(found, None)) is not None:
                yield Told((hit,), Harm.REPETITION, (more,))
                return
        # What is still planned when a later fault strikes was not lost by an earlier one.
        for place, hit in reversed(list(enumerate(self.hits))):
            if any(self._missed(place, key, part) for part in self._parts(hit.missing)):
                yield Told((hit,), Harm.LOSS)
                return
        yield from self._several(key)

    def _repeated(self, place: int, key: Key, inside: Spans, more: Spans) -> bool:
        """Was the total right with `inside` in it, and has it `more` once more than it should?"""
        hit, cut = self.hits[place], _doubled(more)
        if not self._wrote(hit, key, inside) or not self._comes_to(place, key, cut):
            return False
        written = (other for other in self._keys(more) if self._wrote(hit, other, inside))
        return self._shown(cut, key) and self._throughout(cut, written) and not self._tied(more, _doubled)

    def _missed(self, place: int, key: Key, part: Spans) -> bool:
        """Was the total right but for `part`, and is that all that it lacks?"""
        hit, cut = self.hits[place], _left_out(part)
        # One record alone may be missing for any reason.
        if not self._lacked(hit, key, part) or not self._two(part) or not self._comes_to(place, key, cut):
            return False
        return self._shown(cut, key) and self._throughout(cut, self._keys(part)) and not self._tied(part, _left_out)

    def _two(self, spans: Spans) -> bool:
        """Do two or more of its records show in the effect?"""
        if spans not in self._twos:
            self._twos[spans] = self._showing(spans)
        return self._twos[spans]

    def _showing(self, spans: Spans) -> bool:
        nothing = self._table(Cut(only=()))

        def bare(part: Span) -> bool:
            return self._table(Cut(only=(part,))) == nothing

        shown = [span for span in spans if not bare(span)]
        if len(shown) != 1:
            return len(shown) > 1
        (span,) = shown
        last = tail(span, bare).start - 1
        return not bare(span._replace(end=last))

    def _shown(self, cut: Cut, key: Key) -> bool:
        """Would a look at the sink show it? Floating point numbers are left out of looks."""
        return self._as(cut, key) != self.right[key]

    def _comes_to(self, place: int, key: Key, cut: Cut) -> bool:
        """Is the total wrong by just that in the end, and was it when each later fault struck?"""
        return self._fits(cut, key) and all(self._shows(hit, key, cut) for hit in self._later(place))

    def _shows(self, hit: Known, key: Key, cut: Cut) -> bool:
        there = hit.last.rows[key]
        low = between({}, hit.reach.low)
        taken = hit.reach.taken
        parts = [taken] if hit.reach.after else [(), *self._parts(taken)]
        return any(there == self._at(hit.last, replace(cut, only=joined(low, part)), key) for part in parts)

    def _mended(self, place: int, key: Key) -> bool:
        """Was the total right when a later fault struck, and not what this one's harm makes of it? Then it was none of
        its doing."""
        hit = self.hits[place]
        harms = (*(_doubled(more) for _, more in self._repeats(hit)), *map(_left_out, self._parts(hit.missing)))
        known = [cut for cut in harms if self._shown(cut, key) and self._fits(cut, key)]
        right = (each for each in self._later(place) if self._right(each, key))
        return any(not any(self._shows(each, key, cut) for cut in known) for each in right)

    def _right(self, hit: Known, key: Key) -> bool:
        """Was a total, when the fault struck, what the committed batches come to, or that with the batch in hand?"""
        cuts = [Cut(only=between({}, end)) for end in (hit.reach.low, hit.reach.high)]
        return hit.last.rows[key] in [self._at(hit.last, cut, key) for cut in cuts]

    def _throughout(self, cut: Cut, keys: Iterable[Key]) -> bool:
        """Are all totals wrong that the cut changes? What harms a batch harms all that the batch has written."""
        exact = self._whole(Cut())
        return all(key in self.wrong for key in keys if not self._same(key, self._whole(cut)[key], exact[key]))

    def _tied(self, spans: Spans, harmed: Callable[[Spans], Cut]) -> bool:
        """Does the same harm to another slice come to the same, in all totals of either?"""
        if len(self.scale.slices) > SLICES_MAX:
            return True
        mine = harmed(spans)
        rivals = (part for _, other in self.scale.slices if not meet(spans, other) for part in self._parts(other))
        return any(not self._apart(mine, harmed(rival), (spans, rival)) for rival in rivals)

    def _apart(self, mine: Cut, rival: Cut, touched: Iterable[Spans]) -> bool:
        """Does a total of the touched stretches speak for the one cut and against the other?"""
        theirs = whole(self.scale.case, self.scale.rows(rival))
        keys = (key for spans in touched for key in self._keys(spans) if self._fits(mine, key))
        return any(not self._same(key, theirs[key], self.all[key]) for key in keys)

    def _fits(self, cut: Cut, key: Key) -> bool:
        return self._same(key, self._whole(cut)[key], self.all[key])

    def _whole(self, cut: Cut) -> Held:
        """The rows with all of their cells."""
        if cut not in self._exact:
            self._exact[cut] = whole(self.scale.case, self.scale.rows(cut))
        return self._exact[cut]

    def _same(self, key: Key, one: Counter[Any], other: Counter[Any]) -> bool:
        return same(self.scale.case, key, one, other)

    def _several(self, key: Key) -> Iterator[Told]:
        """Hits that repeated something each."""
        hits = [hit for place, hit in enumerate(self.hits) if key in self.again[place]][:HITS_MAX]
        for size in TOGETHER:
            for some in combinations(hits, size):
                steps = [(hit, tuple(h.again for h in some[:place])) for place, hit in enumerate(some)]
                right = all(self._wrote(hit, key, hit.reach.taken, more) for hit, more in steps)
                cut = Cut(again=tuple(h.again for h in some))
                shown = right and self._shown(cut, key) and self._comes_to(self.hits.index(some[-1]), key, cut)
                if shown and not any(self._replaced(some, hit) for hit in some):
                    yield Told(some, Harm.REPETITION, tuple(each.again for each in some))
                    return

    def _replaced(self, some: Sequence[Known], hit: Known) -> bool:
        """Does another slice in the place of what one of them repeated come to the same?"""
        rest = tuple(other.again for other in some if other is not hit)
        return self._tied(hit.again, lambda spans: Cut(again=(*rest, spans)))

    def _repeats(self, hit: Known) -> Iterator[tuple[Spans, Spans]]:
        """(what of the batch was in the sink, what was processed once more)."""
        taken, back = hit.reach.taken, hit.reach.again
        if back:
            yield (), back
        for part in self._parts(taken) if hit.again else ():
            yield part, joined(part, back)

    def _parts(self, spans: Spans) -> Iterator[Spans]:
        """The whole, and every set of its partitions: each may be a transaction of its own."""
        for size in PARTS if len(spans) <= PARTS_MAX else (len(spans),):
            yield from combinations(spans, size)

    def _wrote(self, hit: Known, key: Key, inside: Spans, more: tuple[Spans, ...] = ()) -> bool:
        """Was the total right when the fault struck, with `inside` of the batch in it?"""
        cut = Cut(only=joined(between({}, hit.reach.low), inside), again=more)
        return hit.last.rows[key] == self._at(hit.last, cut, key)

    def _lacked(self, hit: Known, key: Key, part: Spans) -> bool:
        """Was the total right when the fault struck, but for `part`?"""
        cut = Cut(only=between({}, hit.reach.high), without=part)
        return hit.last.rows[key] == self._at(hit.last, cut, key)

    def _as(self, cut: Cut, key: Key) -> Counter[Any]:
        return self._table(cut)[key]

    def _at(self, look: Look, cut: Cut, key: Key) -> Counter[Any]:
        return look.of(self._as(cut, key).elements())[key]


def _note(told: Told, batches: Sequence[int]) -> str:
    words = TOO_HIGH if told.harm is Harm.REPETITION else TOO_LOW
    return f"{words} {'batch' if len(batches) == 1 else 'batches'} {' and '.join(map(str, batches))}"


def _count(look: Look, key: Key, row: Row) -> int:
    marks = look.of([row])
    return sum(look.rows[key][mark] for mark in marks[key])
