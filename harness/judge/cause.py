"""Which hit caused a finding, as far as the snapshots show it, and which may have.

A finding is *explained* by a hit if the sink shows both sides of it:

    duplicated       its row was there before the next attempt worked, and there are more of it afterwards
    lost             a whole stretch of what was planned was not there, and never came; or the next attempt skipped it
    corrupted        the right row was there, and another one is there now
    wrong aggregate  the total was right as far as the batch had written, and is now what the effect makes of the ledger
                     with those records once more, or without them

and if its records were at stake in that hit. Every other hit at whose stake they were *fits*, and nothing is claimed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from harness.checkers.compare import Key
from harness.checkers.explain import TOO_HIGH, TOO_LOW
from harness.checkers.spans import Cut, Spans, between, joined
from harness.judge.look import Held, Look, held, named_by
from harness.judge.stakes import WRITING, Scale, Weighed
from harness.scenario import Finding, Harm, Kind

HITS_MAX = 5
"""Up to so many hits are tried in every combination."""
PARTS_MAX = 4
"""Of a batch with more partitions, only the whole is tried."""
NONE: Counter[object] = Counter()


@dataclass(frozen=True)
class Told:
    """An explanation: the hits, the harm that they did, the batches that were struck."""

    hits: tuple[Weighed, ...]
    harm: Harm


def caused(scale: Scale, findings: Sequence[Finding], weighed: Sequence[Weighed]) -> list[Finding]:
    """The findings of one sink with the hits that explain them, and those that fit."""
    known = [each for each in weighed if each.reach is not None and each.last is not None]
    if not findings or not known:
        return [replace(finding, fits=_labels(weighed)) for finding in findings]
    return _Causes(scale, known, findings).told()


def _labels(weighed: Sequence[Weighed]) -> tuple[str, ...]:
    return tuple(each.strike.label for each in weighed)


class _Causes:
    """The hits of one run, as one sink saw them."""

    def __init__(self, scale: Scale, hits: Sequence[Weighed], findings: Sequence[Finding]) -> None:
        self.scale, self.hits, self.findings = scale, hits, findings
        self.again = [self._keys(hit.again) for hit in hits]
        self.missing = [self._keys(hit.missing) for hit in hits]
        self.end = Look(scale.case, held(scale.case, scale.case.found))
        self.units = [list(self._units(hit)) for hit in hits]
        self._tables: dict[Cut, Held] = {}

    def _keys(self, spans: Spans) -> set[Key]:
        return set(held(self.scale.case, self.scale.rows(Cut(only=spans)))) if spans else set()

    def told(self) -> list[Finding]:
        """Each finding with its cause."""
        return [self._told(finding) for finding in self.findings]

    def _told(self, finding: Finding) -> Finding:
        key = tuple(finding.key.values()) if named_by(self.scale.case) else ()
        told = list(self._explained(finding, key))
        near = [hit for place, hit in enumerate(self.hits) if key in self.again[place] or key in self.missing[place]]
        staked = [hit for place, hit in enumerate(self.hits) if key in self.missing[place]]
        finding = replace(finding, staked=bool(staked), fits=_labels(near or self._any(finding)))
        if finding.kind is Kind.LOST and staked:
            finding = replace(finding, harms=(Harm.LOSS,))
        if not told:
            return finding
        hits = {hit.strike.number: hit for each in told for hit in each.hits}
        harms = tuple(sorted({each.harm for each in told}))
        batches = tuple(sorted({hit.reach.batch for hit in hits.values() if hit.reach and hit.reach.batch is not None}))
        out = replace(finding, faults=_labels(list(hits.values())), fits=(), harms=harms)
        if finding.kind is not Kind.WRONG_AGGREGATE:
            return out
        return replace(out, batches=batches or finding.batches, note=_note(told[0], batches) or finding.note)

    def _any(self, finding: Finding) -> Sequence[Weighed]:
        """Rows that nobody expected, and rows out of order, belong to no batch: any hit may have made them."""
        return self.hits if finding.kind in (Kind.UNEXPECTED, Kind.MISORDERED) else ()

    def _explained(self, finding: Finding, key: Key) -> Iterator[Told]:
        if finding.kind is Kind.WRONG_AGGREGATE:
            yield from self._total(finding, key)
            return
        looks = {Kind.DUPLICATED: self._twice, Kind.LOST: self._lost, Kind.CORRUPTED: self._changed}
        look = looks.get(finding.kind)
        for place, hit in enumerate(self.hits):
            harm = look(place, hit, key, finding) if look else None
            if harm is not None:
                yield Told((hit,), harm)

    def _before(self, hit: Weighed, key: Key) -> int:
        """How many rows of the key were there before the next attempt worked."""
        assert hit.last is not None and hit.at is not None
        return max(hit.last.rows.get(key, NONE).total(), hit.at.rows.get(key, NONE).total())

    def _after(self, place: int, key: Key) -> int:
        """How many there were when the next fault struck, or in the end."""
        later = self.hits[place + 1].at if place + 1 < len(self.hits) else self.end
        return later.rows.get(key, NONE).total() if later is not None else 0

    def _twice(self, place: int, hit: Weighed, key: Key, finding: Finding) -> Harm | None:
        before = self._before(hit, key)
        return Harm.REPETITION if key in self.again[place] and self._after(place, key) > before > 0 else None

    def _lost(self, place: int, hit: Weighed, key: Key, finding: Finding) -> Harm | None:
        return Harm.LOSS if any(key in unit and self._absent(hit, unit) for unit in self.units[place]) else None

    def _absent(self, hit: Weighed, unit: set[Key]) -> bool:
        """Nothing of it was there, and nothing came."""
        rows = self.end.rows
        return all(not self._before(hit, key) and key not in rows for key in unit)

    def _units(self, hit: Weighed) -> Iterator[set[Key]]:
        """Stretches that are lost as one: what was skipped, the batch, each of its partitions, what was left to write.

        Where Spark had heard that the sink was committed, what is missing was missing before the fault."""
        assert hit.reach is not None
        if hit.reach.skipped:
            yield self._keys(hit.reach.skipped)
        if hit.reach.after:
            return
        if hit.missing:
            yield self._keys(hit.missing)
            yield from (self._keys((span,)) for span in hit.missing)
        left = {key for key in self._keys(hit.missing) if not self._before(hit, key)}
        if hit.point == WRITING and len(left) > 1:
            yield left

    def _changed(self, place: int, hit: Weighed, key: Key, finding: Finding) -> Harm | None:
        right = Counter(tuple(row.values()) for row in finding.expected)
        if key not in self.again[place] or hit.at is None or hit.at.places is not None:
            return None
        return Harm.REPETITION if right and right <= hit.at.rows.get(key, NONE) else None

    def _total(self, finding: Finding, key: Key) -> Iterator[Told]:
        """The combinations of hits whose harm comes to just this total."""
        now = self.end.rows.get(key, NONE)
        for hit in self.hits:
            for inside, more in self._repeats(hit):
                if self._wrote(hit, key, inside) and self._as(Cut(again=(more,)), key) == now:
                    yield Told((hit,), Harm.REPETITION)
                    return
            for part in self._parts(hit.missing):
                if self._lacked(hit, key, part) and self._as(Cut(without=part), key) == now:
                    yield Told((hit,), Harm.LOSS)
                    return
        yield from self._several(key, now)

    def _several(self, key: Key, now: Counter[object]) -> Iterator[Told]:
        """Hits that repeated something each."""
        hits = [hit for hit in self.hits if hit.again][:HITS_MAX]
        for size in range(2, len(hits) + 1):
            for some in combinations(hits, size):
                steps = [(hit, tuple(h.again for h in some[:place])) for place, hit in enumerate(some)]
                right = all(self._wrote(hit, key, hit.reach.taken if hit.reach else (), more) for hit, more in steps)
                if right and self._as(Cut(again=tuple(h.again for h in some)), key) == now:
                    yield Told(some, Harm.REPETITION)
                    return

    def _repeats(self, hit: Weighed) -> Iterator[tuple[Spans, Spans]]:
        """(what of the batch was in the sink, what was processed once more)."""
        assert hit.reach is not None
        taken, back = hit.reach.taken, hit.reach.again
        if back:
            yield (), back
        for part in self._parts(taken) if hit.again else ():
            yield part, joined(part, back)

    def _parts(self, spans: Spans) -> Iterator[Spans]:
        """The whole, then every set of its partitions: each may be a transaction of its own."""
        if spans:
            yield spans
        if 1 < len(spans) <= PARTS_MAX:
            for size in range(1, len(spans)):
                yield from combinations(spans, size)

    def _wrote(self, hit: Weighed, key: Key, inside: Spans, more: tuple[Spans, ...] = ()) -> bool:
        """Was the total right when the fault struck, with `inside` of the batch in it?"""
        assert hit.last is not None and hit.reach is not None
        cut = Cut(only=joined(between({}, hit.reach.low), inside), again=more)
        return hit.last.rows.get(key, NONE) == self._at(hit.last, cut, key)

    def _lacked(self, hit: Weighed, key: Key, part: Spans) -> bool:
        """Was the total right when the fault struck, but for `part`?"""
        assert hit.last is not None and hit.reach is not None
        cut = Cut(only=between({}, hit.reach.high), without=part)
        return hit.last.rows.get(key, NONE) == self._at(hit.last, cut, key)

    def _as(self, cut: Cut, key: Key) -> Counter[object]:
        return self._at(self.end, cut, key)

    def _at(self, look: Look, cut: Cut, key: Key) -> Counter[object]:
        if cut not in self._tables:
            self._tables[cut] = held(self.scale.case, self.scale.rows(cut))
        rows = self._tables[cut].get(key, NONE)
        return rows if look.places is None else look.of(list(rows.elements())).get(key, NONE)  # type: ignore[arg-type]


def _note(told: Told, batches: Sequence[int]) -> str:
    if not batches:
        return ""
    words = TOO_HIGH if told.harm is Harm.REPETITION else TOO_LOW
    return f"{words} {'batch' if len(batches) == 1 else 'batches'} {' and '.join(map(str, batches))}"


def mismatched(scale: Scale, hit: Weighed) -> int:
    """How many totals were, when the fault struck, neither what the committed batches come to nor that with the batch
    in hand. A key that is not there yet is late, and is not counted."""
    if hit.reach is None or hit.at is None or not scale.case.aggregate:
        return 0
    base = hit.at.of(scale.rows(Cut(only=between({}, hit.reach.low))))
    full = hit.at.of(scale.rows(Cut(only=between({}, hit.reach.high))))
    own = hit.at.of(scale.rows(Cut(only=hit.reach.taken))) if hit.reach.taken else {}
    partly = {} if hit.reach.after else own
    wrong = 0
    for key, rows in hit.at.rows.items():
        allowed = [full.get(key, NONE)] if hit.reach.after else [base.get(key, NONE), full.get(key, NONE)]
        wrong += rows not in allowed and key not in partly
    return wrong
