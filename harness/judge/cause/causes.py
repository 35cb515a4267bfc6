"""Which hit caused a finding, as far as the snapshots show it, and which may have.

A finding is *explained* by a hit if the sink shows both sides of it:

    duplicated       its row was there before the next attempt worked, and there are more of it afterwards
    lost             a whole stretch of what was planned was not there, and never came; or the next attempt skipped it;
                     or the right row was there when the fault hit, and has gone since, and not it alone
    corrupted        the right row was there, and another one is there now
    wrong aggregate  the total was right as far as the batch had written, and is now what the effect makes of the ledger
                     with those records once more, or without them; so are all totals that they went into, and no
                     other batch comes to the same

and if its records were at stake in that hit; a row that was there and has gone need not have been in flight. Every
other hit at whose stake they were *fits*, and nothing is claimed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness.checkers.cells import Row
from harness.checkers.compare import Key
from harness.checkers.offset_ranges import Cut, Span, Spans, joined, meet, tail
from harness.checkers.wrong_total import TOO_HIGH, TOO_LOW
from harness.judge.cause.hit_of_total import Told, Totals
from harness.judge.cause.shown import copies
from harness.judge.stakes.scale import SLICES_MAX, Scale
from harness.judge.stakes.sink_state import named_by
from harness.judge.stakes.weighed import WRITING, Known, Weighed
from harness.scenario import Finding, Harm, Kind


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
        not (isinstance(each, Known) or each.idle) or each.injection.lasts or (each.reach and each.reach.partial)
        for each in weighed
    )
    return None if scale.alone or any(open_) else False


def _labels(weighed: Sequence[Weighed]) -> tuple[str, ...]:
    return tuple(each.injection.label for each in weighed)


class _Causes(Totals):
    """The findings of one sink."""

    def __init__(self, scale: Scale, hits: Sequence[Known], findings: Sequence[Finding]) -> None:
        super().__init__(scale, hits)
        self.findings = findings
        self._whole_again: dict[int, bool] = {}
        self.missing = [self._keys(hit.missing) for hit in hits]
        self.late = [self._keys(hit.late) for hit in hits]
        self.gone = [self._keys(hit.reach.gone) for hit in hits]
        self.open = joined(*(hit.open for hit in hits))
        self.ranges = dict(scale.effects.ranges())
        self.units = [list(self._units(hit)) for hit in hits]
        self.cleared = self._cleared()

    def told(self) -> list[Finding]:
        """Each finding with its cause."""
        return [self._told(finding) for finding in self.findings]

    def _key(self, finding: Finding) -> Key:
        return tuple(finding.key.values()) if named_by(self.scale.case) else ()

    def _told(self, finding: Finding) -> Finding:
        key = self._key(finding)
        told = list(self._explained(finding, key))
        near = [hit for place, hit in enumerate(self.hits) if self._near(place, key, finding)]
        lost = any(Harm.LOSS is each.harm for each in told)
        staked = finding.kind is Kind.LOST and (self._staked(key) or (lost and not self._gone(key)))
        vague = self.scale.allows is Harm.LOSS and finding.kind is Kind.CORRUPTED and self._unchanged(key, finding)
        fits = _labels(near or self._any(finding))
        finding = replace(finding, staked=staked, vague=vague, fits=fits, near=_labels(near))
        if not told:
            return finding
        hits = {hit.injection.number: hit for each in told for hit in each.hits}
        batches = tuple(sorted({hit.reach.batch for hit in hits.values() if hit.reach.batch is not None}))
        weak = lost or finding.kind is Kind.CORRUPTED or not self._again_whole(finding, told)
        out = replace(finding, faults=_labels(list(hits.values())), fits=(), near=(), to_confirm=weak)
        if finding.kind is not Kind.WRONG_AGGREGATE:
            return out
        if not batches:
            return out
        (name, *others) = {hit.reach.checkpoint for hit in hits.values() if hit.reach.batch is not None}
        # Of several, the names of the faults say which batch is whose.
        named = "" if others or not all(hit.injection.beside for hit in hits.values()) else name
        return replace(out, batches=batches, note=_note(told[0], batches), checkpoint=named)

    def _again_whole(self, finding: Finding, told: Sequence[Told]) -> bool:
        """Of what came again, did all that the hit batch had in the sink? Some of it, or a single record, may for
        any reason."""
        if finding.kind is Kind.WRONG_AGGREGATE:
            return all(self._two(part) for each in told for part in each.again)
        hits = [hit for each in told for hit in each.hits]
        return not self.scale.case.aggregate and all(self._more_of_all(hit) for hit in hits)

    def _more_of_all(self, hit: Known) -> bool:
        if hit.injection.number not in self._whole_again:
            self._whole_again[hit.injection.number] = self._all_more(hit)
        return self._whole_again[hit.injection.number]

    def _all_more(self, hit: Known) -> bool:
        again = self._table(Cut(only=hit.again))
        there = {(key, row): self._saw(hit, key, row) for key, rows in again.items() for row in rows}
        seen = {place: count for place, count in there.items() if count}
        more = (copies(self.end, key, row) - self.right[key][row] >= count for (key, row), count in seen.items())
        return sum(seen.values()) > 1 and all(more)

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
            and not hit.injection.moving
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
        staked = self.again[place] | self.missing[place] | self.partial[place]
        return late or (closed and bool(hit.again)) or key in staked

    def _right_later(self, place: int, key: Key, kind: Kind) -> bool:
        """Was what is missing or changed now still there, and right, when a later fault hit?"""
        gone = self.right[key] - self.end.rows[key]
        looks = [hit.at for hit in self.hits[place + 1 :] if hit.at.places is None]
        return kind in (Kind.LOST, Kind.CORRUPTED) and any(gone and gone <= look.rows[key] for look in looks)

    def _wrong_then(self, hit: Known, key: Key, finding: Finding) -> bool:
        """Was the wrong row there before the next attempt worked?"""
        wrong = hit.last.of(tuple(row.values()) for row in finding.found)[key]
        return hit.last.places is None and wrong <= hit.last.rows[key]

    def _unchanged(self, key: Key, finding: Finding) -> bool:
        """Is the wrong row the one that was there before what was in flight would have changed it? Nobody can tell a
        change that was lost from one that was wrong."""
        hits = (hit for place, hit in enumerate(self.hits) if key in self.missing[place])
        return any(self._wrong_then(hit, key, finding) for hit in hits)

    def _staked(self, key: Key) -> bool:
        """Is nothing missing of the key but what was at stake in a hit, and was not in the sink at that hit?"""
        return bool(self.open) and not self._gone(key) and self._as(Cut(without=self.open), key) <= self.end.rows[key]

    def _gone(self, key: Key) -> bool:
        """Was a row of the key there when a fault hit that is not there now?"""
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
            # What is still planned when a later fault hits was not lost by an earlier one.
            hits = [hit for place, hit in enumerate(self.hits) if self._lost(place, key)]
            # Where a receiver died twice, and nobody knows which time it had the record, neither is blamed.
            hits = hits if sum(key in keys for keys in self.gone) < 2 else []
            cleared = [self.cleared[key]] if key in self.cleared else []
            yield from (Told((hit,), Harm.LOSS) for hit in hits[-1:] or cleared)
        looks = {Kind.DUPLICATED: self._twice, Kind.CORRUPTED: self._changed}
        test = looks.get(finding.kind)
        for place, hit in enumerate(self.hits):
            if test is not None and key in self.again[place] and test(place, hit, key):
                yield Told((hit,), Harm.REPETITION)

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
        before, after = self._saw(hit, key, row), copies(self._after(place), key, row)
        return after > max(before, self.right[key][row]) and before > 0 and not self._elsewhere(hit.again, key, row)

    def _elsewhere(self, spans: Spans, key: Key, row: Row) -> bool:
        """May another slice have given the row?"""
        others = [other for _, other in self.scale.slices if not meet(spans, other)]
        if not self.scale.slices or len(others) > SLICES_MAX:
            return True
        return any(self._as(Cut(only=other), key)[row] for other in others)

    def _cleared(self) -> dict[Key, Known]:
        """Of what is lost, the last hit at which it was there. One row alone may go for any reason."""
        went: dict[Key, tuple[int, int]] = {}
        for key in (self._key(each) for each in self.findings if each.kind is Kind.LOST):
            for place, hit in enumerate(self.hits):
                if count := self._went(hit, key):
                    went[key] = place, count
        rows = Counter[int]()
        for place, count in went.values():
            rows[place] += count
        return {key: self.hits[place] for key, (place, _) in went.items() if rows[place] > 1}

    def _went(self, hit: Known, key: Key) -> int:
        """How many different rows of the key were there at a hit, and right, and are missing now."""
        end = self.end.rows[key]
        counts = []
        for look in (hit.at, hit.last):
            now = look.of(end.elements())[key]
            gone = look.of((self.right[key] - end).elements())[key]
            counts.append(sum(look.rows[key][mark] > now[mark] for mark in gone))
        return max(counts)

    def _lost(self, place: int, key: Key) -> bool:
        return any(key in unit and self._absent(self.hits[place:], unit) for unit in self.units[place])

    def _absent(self, hits: Sequence[Known], unit: set[Key]) -> bool:
        """Nothing of it was there, and nothing came, as far as any later hit shows. One row alone may be missing for
        any reason."""
        seen = any(key in self.end.rows or any(self._before(hit, key) for hit in hits) for key in unit)
        return len(unit) > 1 and not seen

    def _units(self, hit: Known) -> Iterator[set[Key]]:
        """Stretches that are lost as one: what was skipped, what of that was not even planned, what a receiver had not
        stored, the batch, each of its partitions, what was left to write.

        Where Spark had heard that the sink was committed, what is missing was missing before the fault."""
        if hit.reach.skipped:
            yield self._keys(hit.reach.skipped)
            yield self._keys(hit.reach.passed)
        if hit.reach.gone:
            yield self._keys(hit.reach.gone)
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


def _note(told: Told, batches: Sequence[int]) -> str:
    words = TOO_HIGH if told.harm is Harm.REPETITION else TOO_LOW
    return f"{words} {'batch' if len(batches) == 1 else 'batches'} {' and '.join(map(str, batches))}"
