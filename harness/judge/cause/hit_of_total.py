"""Which hits a wrong total comes to: the one that was right when the fault hit, and has its records once more, or
has never got them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from harness.checkers.compare import Key
from harness.checkers.offset_ranges import Cut, Span, Spans, between, joined, meet, tail
from harness.judge.cause.shown import Shown
from harness.judge.stakes.scale import SLICES_MAX
from harness.judge.stakes.sink_state import whole
from harness.judge.stakes.weighed import Known
from harness.scenario import Harm

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


def _doubled(spans: Spans) -> Cut:
    return Cut(again=(spans,))


def _left_out(spans: Spans) -> Cut:
    return Cut(without=spans)


class Totals(Shown):
    """The totals of one sink."""

    def _total(self, key: Key) -> Iterator[Told]:
        """The hits whose harm comes to just this total."""
        for place, hit in enumerate(self.hits):
            found = (more for inside, more in self._repeats(hit) if self._repeated(place, key, inside, more))
            if (more := next(found, None)) is not None:
                yield Told((hit,), Harm.REPETITION, (more,))
                return
        # What is still planned when a later fault hits was not lost by an earlier one.
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
        """Is the total wrong by just that in the end, and was it when each later fault hit?"""
        return self._fits(cut, key) and all(self._shows(hit, key, cut) for hit in self._later(place))

    def _shows(self, hit: Known, key: Key, cut: Cut) -> bool:
        there = hit.last.rows[key]
        low = between({}, hit.reach.low)
        taken = hit.reach.taken
        parts = [taken] if hit.reach.after else [(), *self._parts(taken)]
        return any(there == self._at(hit.last, replace(cut, only=joined(low, part)), key) for part in parts)

    def _mended(self, place: int, key: Key) -> bool:
        """Was the total right when a later fault hit, and not what this one's harm makes of it? Then it was none of
        its doing."""
        hit = self.hits[place]
        harms = (*(_doubled(more) for _, more in self._repeats(hit)), *map(_left_out, self._parts(hit.missing)))
        known = [cut for cut in harms if self._shown(cut, key) and self._fits(cut, key)]
        right = (each for each in self._later(place) if self._right(each, key))
        return any(not any(self._shows(each, key, cut) for cut in known) for each in right)

    def _right(self, hit: Known, key: Key) -> bool:
        """Was a total, when the fault hit, what the committed batches come to, or that with the batch in flight?"""
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
        return any(not self._tells(mine, harmed(rival), (spans, rival)) for rival in rivals)

    def _tells(self, mine: Cut, rival: Cut, touched: Iterable[Spans]) -> bool:
        """Does a total of the touched stretches agree with the one cut and differ from the other?"""
        theirs = whole(self.scale.case, self.scale.rows(rival))
        keys = (key for spans in touched for key in self._keys(spans) if self._fits(mine, key))
        return any(not self._same(key, theirs[key], self.all[key]) for key in keys)

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
        # Of DStreams what is done comes again without what has not begun.
        taken, back = hit.again if hit.reach.by_time else hit.reach.taken, hit.reach.again
        if back:
            yield (), back
        for part in self._parts(taken) if hit.again else ():
            yield part, joined(part, back)

    def _parts(self, spans: Spans) -> Iterator[Spans]:
        """The whole, and every set of its partitions: each may be a transaction of its own."""
        for size in PARTS if len(spans) <= PARTS_MAX else (len(spans),):
            yield from combinations(spans, size)

    def _wrote(self, hit: Known, key: Key, inside: Spans, more: tuple[Spans, ...] = ()) -> bool:
        """Was the total right when the fault hit, with `inside` of the batch in it?"""
        cut = Cut(only=joined(between({}, hit.reach.low), inside), again=more)
        return hit.last.rows[key] == self._at(hit.last, cut, key)

    def _lacked(self, hit: Known, key: Key, part: Spans) -> bool:
        """Was the total right when the fault hit, but for `part`?"""
        cut = Cut(only=between({}, hit.reach.high), without=part)
        return hit.last.rows[key] == self._at(hit.last, cut, key)
