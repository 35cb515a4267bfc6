"""Rule 4: the cause of a finding.

Let `rows(m)` be the expected rows if record r takes effect m(r) times. A step explains a finding at a key if some m
gives the rows that the sink has there. This m may differ from 1 only for records that the step interrupted.
Reprocessing is m = 2 for what is processed again, loss is m = 0 for what was not whole in the sink.

Rows that are each of one record need no `rows(m)`. A row that is there too often is of what is processed again, and
was there when the fault was injected. One that is missing is of what was not whole, and was not there. The same reading
shows how much of a total the interrupted batch had left.

The readings at later faults say when a finding came about: a step after which the key was still right, at the reading
of a later one, did not do it; nor did a step at whose reading it was wrong already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from itertools import combinations, product
from typing import Any

from harness.checkers.cells import Row
from harness.checkers.compare import Key
from harness.checkers.offset_ranges import Cut, OffsetRanges, between, joined
from harness.checkers.wrong_total import decimal
from harness.judge.exposure import WRITING, WRITTEN, Exposed
from harness.judge.mismatch import between_ends
from harness.judge.readings.scale import Scale
from harness.judge.readings.sink_state import RowsByKey, held, row_key_places, same, whole
from harness.scenario import Finding, Harm, Kind

PARTS_MAX = 4
"""Of an offset range with more partitions, the whole and each partition are tried, and no combinations."""
STEPS_MAX = 5
"""Up to so many steps are tried together."""


@dataclass(frozen=True)
class Explained:
    """The steps that explain a finding together, and the harms that they did."""

    steps: tuple[int, ...]
    harms: frozenset[Harm]


class Causes:
    """The findings of one sink, and the steps that explain them."""

    def __init__(self, scale: Scale, steps: Sequence[Exposed], findings: Sequence[Finding]) -> None:
        self.scale = scale
        self.steps = [step for step in steps if step.before_restart is not None and step.progress is not None]
        self.unknown = [step for step in steps if step.unknown]
        """Steps of which no reading shows what they exposed."""
        self._about = {self.key(finding) for finding in findings}
        self._rows: dict[Cut, RowsByKey] = {}
        self.end = whole(scale.case, scale.case.found)
        self.right = whole(scale.case, scale.case.expected)

    def key(self, finding: Finding) -> Key:
        """Return the key that identifies the sink's rows."""
        return tuple(finding.key.values()) if row_key_places(self.scale.case) else ()

    def explained(self, finding: Finding) -> list[Explained]:
        """Return each way in which steps explain a finding, of the fewest steps that do."""
        key = self.key(finding)
        steps = self.within(key)
        alone = [
            Explained((step.injection.number,), frozenset({harm})) for step in steps for harm in self._by(step, key)
        ]
        if alone or len(steps) > STEPS_MAX:
            return alone
        if not self.scale.case.aggregate:
            return list(self._added(steps, key))
        for count in range(1, len(steps) + 1):
            if found := [each for some in combinations(steps, count) for each in self._together(some, key)]:
                return found
        return []

    def before(self, reading: Exposed) -> list[Exposed]:
        """Return the steps before a reading."""
        return [step for step in self.steps if _at_s(step) < _at_s(reading)]

    def explaining(self, reading: Exposed, key: Key, harm: Harm) -> list[Explained]:
        """Return the steps before a reading whose reprocessing gives a key its rows again, or that interrupted it."""
        before = self.before(reading)
        ranges = [(each, each.reprocessed if harm is Harm.REPETITION else each.incomplete) for each in before]
        found = [each for each, mine in ranges if key in self.scale.keys(mine)]
        return [Explained((each.injection.number,), frozenset({harm})) for each in found]

    def may_come(self, reading: Exposed, ways: Sequence[Explained]) -> bool:
        """Return whether the sink may show a committed row later than at a reading: a transaction hides it, or the
        scenario declares a delay, which has not passed since the steps that explain its absence."""
        assert reading.injection.at is not None
        numbers = {number for way in ways for number in way.steps}
        began = [_at_s(each) for each in self.steps if each.injection.number in numbers]
        hidden = bool(reading.injection.at.snapshot.writing.get(str(self.scale.position)))
        late_s = self.scale.late_s
        return hidden or (late_s is not None and (not began or _at_s(reading) - max(began) <= late_s))

    def touching(self, finding: Finding) -> list[Exposed]:
        """Return the steps that interrupted records of a finding, or all that may have done it if none did; and those
        of which nothing is known."""
        key = self.key(finding)
        within = self.within(key)
        return [*([step for step in within if key in self.scale.keys(step.interrupted)] or within), *self.unknown]

    def within(self, key: Key) -> list[Exposed]:
        """Return the steps between the last reading that shows the key right and the first that shows it wrong. A row
        that is missing at a reading may be lost by that very step: the driver had it in memory."""
        lost = not self.scale.case.aggregate and not self.end[key] - self.right[key]
        states = [self._state(step, key) for step in self.steps]
        first = next((place for place, right in enumerate(states) if right is False), len(states))
        last = max((place for place, right in enumerate(states[:first]) if right), default=0)
        return self.steps[last : first + lost]

    def _state(self, step: Exposed, key: Key) -> bool | None:
        """Return whether the key was right when the fault was injected; None if the reading does not tell. An attempt
        that had not worked left the sink as it was."""
        assert step.at_fault is not None and step.progress is not None
        if not step.injection.worked or key in self.scale.keys(step.progress.partial) or self._masked(key):
            return None
        low, high = (step.at_fault.of(rows.elements())[key] for rows in self._ends(step, key))
        state = self._state_of_total if self.scale.case.aggregate else self._state_of_rows
        return state(step, key, low, high)

    def _masked(self, key: Key) -> bool:
        """Return whether a total is wrong in sums of floating point numbers alone, which readings leave out."""
        end, right = _one(self.end[key]), _one(self.right[key])
        if end is None or right is None:
            return False
        wrong = {place for place in self.scale.case.payload_places() if end[place] != right[place]}
        return bool(wrong) and all(self.scale.case.rounds[place] for place in wrong)

    def _state_of_total(self, step: Exposed, key: Key, low: Counter[Any], high: Counter[Any]) -> bool | None:
        assert step.at_fault is not None and step.progress is not None
        now = step.at_fault.rows[key]
        if now == low or (now == high and step.progress.after):
            # Before its first record nothing is known of a key.
            return True if now else None
        if now == high or between_ends(self.scale, step.at_fault, now, (low, high)):
            return None
        # What of the batch was written by then is not known.
        if step.point == WRITING and not step.progress.after:
            return None
        # Another error than in the end: a later step did the rest.
        then = high if step.progress.after or step.point == WRITTEN else low
        return False if self._as_in_the_end(key, now, then) else None

    def _as_in_the_end(self, key: Key, now: Counter[Any], then: Counter[Any]) -> bool:
        rows = [_one(each) for each in (self.end[key], self.right[key], now, then)]
        end, right, was, due = rows
        if end is None or right is None or was is None or due is None or isinstance(was, str):
            return True
        return all(
            _gap(end, right, place) == _gap(was, due, place) for place in self._sums if end[place] != right[place]
        )

    def _state_of_rows(self, step: Exposed, key: Key, low: Counter[Any], high: Counter[Any]) -> bool | None:
        assert step.at_fault is not None
        now, right, end = step.at_fault.rows[key], self.right[key], self.end[key]
        surplus, missing = (step.at_fault.of(rows.elements())[key] for rows in (end - right, right - end))
        wanted = step.at_fault.of(right.elements())[key]
        # What is still planned is not lost yet, and a row that it will change is not wrong yet.
        if missing and key in self.scale.keys(step.incomplete):
            return True
        if surplus:
            there = [(now[mark] - wanted[mark], count) for mark, count in surplus.items()]
            if not any(more > 0 for more, _ in there):
                return True
            return False if all(more >= count for more, count in there) else None
        if missing and all(now[mark] >= wanted[mark] for mark in missing):
            return True
        return False if missing and all(low[mark] > now[mark] for mark in missing) else None

    def rows(self, cut: Cut) -> RowsByKey:
        """Return the expected rows over a cut of the ledger, by key: those of findings."""
        if cut not in self._rows:
            found = whole(self.scale.case, self.scale.rows(cut))
            self._rows[cut] = RowsByKey({key: found[key] for key in found.keys() & self._about})
        return self._rows[cut]

    def _gives(self, cut: Cut, key: Key) -> bool:
        return same(self.scale.case, key, self.rows(cut)[key], self.end[key])

    def _by(self, step: Exposed, key: Key) -> Iterator[Harm]:
        if step.reprocessed and key in self.scale.keys(step.reprocessed) and self._repeated(step, key):
            yield Harm.REPETITION
        elif step.incomplete and key in self.scale.keys(step.incomplete) and self._lost(step, key):
            yield Harm.LOSS

    def _repeated(self, step: Exposed, key: Key) -> bool:
        assert step.before_restart is not None
        surplus, aggregate = self.end[key] - self.right[key], self.scale.case.aggregate
        part = self.rows(Cut(only=step.reprocessed))[key]
        if not aggregate and surplus and surplus <= part:
            return all(_copies(step, key, row) for row in surplus) or step.before_restart.places is not None
        if aggregate and surplus and surplus == part and not self.right[key] - self.end[key]:
            return True
        if any(self._gives(Cut(again=(ranges,)), key) for ranges in parts(step.reprocessed)):
            return True
        return aggregate and self._adds_up(key, self._then(step, key), _one(self._ends(step, key)[0]))

    def _added(self, steps: Sequence[Exposed], key: Key) -> Iterator[Explained]:
        """Yield rows that several steps gave again, each its own."""
        surplus = self.end[key] - self.right[key]
        again = [step for step in steps if step.reprocessed and self.rows(Cut(only=step.reprocessed))[key]]
        given = sum((self.rows(Cut(only=step.reprocessed))[key] for step in again), Counter[Row]())
        if surplus and surplus <= given:
            yield Explained(tuple(step.injection.number for step in again), frozenset({Harm.REPETITION}))

    def _lost(self, step: Exposed, key: Key) -> bool:
        missing = self.right[key] - self.end[key]
        if not self.scale.case.aggregate and missing and not self.end[key] - self.right[key]:
            part = self.rows(Cut(only=step.incomplete))[key]
            return set(missing) <= set(part) and not any(_copies(step, key, row) for row in missing)
        if any(self._gives(Cut(without=ranges), key) for ranges in parts(step.incomplete)):
            return True
        if not self.scale.case.aggregate:
            # The row is as the program had made it before: what was to change it never came.
            return bool(self.end[key]) and self._then_there(step, key) == self.end[key]
        return self._adds_up(key, self._then(step, key), _one(self._ends(step, key)[1]))

    def _then_there(self, step: Exposed, key: Key) -> Counter[Any]:
        assert step.before_restart is not None
        return step.before_restart.rows[key] if step.before_restart.places is None else Counter()

    def _adds_up(self, key: Key, then: Row | None, other: Row | None) -> bool:
        """Return whether the total is wrong by just what lay between these two rows: what the interrupted execution had
        left, or had not."""
        wanted, found = _one(self.right[key]), _one(self.end[key])
        if then is None or wanted is None or found is None or wanted == found:
            return False
        places = self.scale.case.payload_places()
        return all(
            place in self._sums and _gap(found, wanted, place) == _gap(then, other, place)
            for place in places
            if found[place] != wanted[place]
        )

    @cached_property
    def _sums(self) -> set[int]:
        return set(self.scale.growing)

    def _then(self, step: Exposed, key: Key) -> Row | None:
        """Return the total before the next attempt, if it was one of what was committed and a part of what was not."""
        assert step.before_restart is not None
        now, ends = step.before_restart.rows[key], self._ends(step, key)
        known = now in ends or between_ends(self.scale, step.before_restart, now, ends)
        return _one(now) if known and step.before_restart.places is None else None

    def _ends(self, step: Exposed, key: Key) -> tuple[Counter[Row], Counter[Row]]:
        """Return the rows of a key with what was committed, and with all that was planned."""
        assert step.progress is not None
        low, high = (self.rows(Cut(only=between({}, ends)))[key] for ends in (step.progress.low, step.progress.high))
        return low, high

    def _together(self, steps: Sequence[Exposed], key: Key) -> Iterator[Explained]:
        """Yield several steps that each did harm to one total, or one that did both."""
        for chosen in product(*(_harms(step) for step in steps)):
            did = [*zip(steps, chosen, strict=True)]
            again = tuple(step.reprocessed for step, harms in did if Harm.REPETITION in harms)
            without = joined(*(step.incomplete for step, harms in did if Harm.LOSS in harms))
            if self._gives(Cut(again=again, without=without), key):
                yield Explained(tuple(step.injection.number for step in steps), frozenset().union(*chosen))


def _harms(step: Exposed) -> Sequence[frozenset[Harm]]:
    """Return what a step may have done: either harm, or both."""
    known = [harm for harm, ranges in ((Harm.REPETITION, step.reprocessed), (Harm.LOSS, step.incomplete)) if ranges]
    return [frozenset(some) for count in range(1, len(known) + 1) for some in combinations(known, count)]


def _at_s(reading: Exposed) -> float:
    assert reading.injection.at is not None
    return reading.injection.at.snapshot.at_s


def parts(ranges: OffsetRanges) -> Iterator[OffsetRanges]:
    """Yield the offset ranges together, each alone, and their combinations where they are few."""
    if not ranges:
        return
    yield ranges
    for count in range(1, len(ranges)) if len(ranges) <= PARTS_MAX else (1,):
        yield from combinations(ranges, count)


def _copies(step: Exposed, key: Key, row: Row) -> int:
    """Return how many copies of a row were there when the fault was injected, or before the next attempt."""
    states = (state for state in (step.at_fault, step.before_restart) if state is not None)
    return max(sum(state.rows[key][mark] for mark in state.of([row])[key]) for state in states)


def _one(rows: Counter[Row]) -> Row | None:
    return next(iter(rows)) if rows.total() == 1 else None


def _gap(one: Row, other: Row | None, place: int) -> Decimal | None:
    left, right = decimal(one[place]), decimal(other[place] if other is not None else None)
    return left - right if left is not None and right is not None else None


@dataclass(frozen=True, kw_only=True)
class Repaired:
    """Rows of one key of committed batches that are right in the end. At a reading they were `copies` too many, or, as
    a loss, too few. `ways`: the earlier steps that explain it."""

    reading: Exposed
    key: Key
    copies: int
    harm: Harm
    ways: Sequence[Explained]

    @property
    def kind(self) -> Kind:
        return Kind.DUPLICATED if self.harm is Harm.REPETITION else Kind.LOST


def repaired(scale: Scale, causes: Causes, readings: Sequence[Exposed]) -> Iterator[Repaired]:
    """Yield what readings show to have been wrong though it is right in the end: a later attempt may repair it, and it
    was wrong all the same. `readings` are those of the steps after the first, and those after attempts that no step had
    ended: what the first step found was there before any fault. What is missing when an attempt has just ended may come
    late."""
    if scale.case.aggregate or not scale.ledger.plain(scale.sql):
        return
    right, end = (held(scale.case, rows) for rows in (scale.case.expected, scale.case.found))
    known = set[Key]()
    for reading in sorted(readings, key=_at_s):
        assert reading.at_fault is not None and reading.progress is not None
        committed, partial = scale.upto(reading.progress.low, reading.at_fault), scale.keys(reading.progress.partial)
        lost, unexplained = list[Repaired](), False
        for key in committed.keys() - known:
            wanted, now = reading.at_fault.of(right[key].elements())[key], reading.at_fault.rows[key]
            more = sum(max(0, now[mark] - count) for mark, count in wanted.items())
            less = (committed[key] - now).total() if key not in partial and reading.injection.outcome.injected else 0
            if not (more or less):
                continue
            harm = Harm.REPETITION if more else Harm.LOSS
            ways = causes.explaining(reading, key, harm)
            each = Repaired(reading=reading, key=key, copies=more or less, harm=harm, ways=ways)
            if more and not end[key] - right[key]:
                known.add(key)
                yield each
            elif not more and end[key] == right[key]:
                late = causes.may_come(reading, ways)
                lost += [each] if ways and not late else []
                unexplained |= not (ways or late)
        known |= {each.key for each in lost}
        # Rows that no step interrupted are missing too: a program that empties its sink and fills it again, say.
        yield from (replace(each, ways=()) if unexplained else each for each in lost)
