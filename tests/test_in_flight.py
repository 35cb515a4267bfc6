"""What a pipeline that keeps its offsets itself had in flight: what it saved says half of it, the sink the other
half."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from harness.judge.readings.weigh import weigh
from harness.judge.readings.weighed import PLANNED, WRITING, WRITTEN, Known

from harness.checkers.cells import Row
from harness.checkers.offset_ranges import Span
from harness.judge.progress_at_hit import Reach
from harness.judge.readings.in_flight import in_flight
from harness.judge.readings.sink_state import sink_state
from harness.scenario import Harm
from tests.folders import TOTALS
from tests.scales import Bench, Make, batch, benches, hit, injection, reach, upto

OPEN: dict[str, Any] = {"writing": {"0": ("insert into t",)}}
SAVED = reach(2, 2, own=True, batch=None, checkpoint="")
"""Two slices saved, and nothing more taken. A slice has five records of each of two partitions."""
TAKEN = reach(3, 1, own=True, batch=None, checkpoint="")
"""One slice saved, and two taken next at once."""


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    yield from benches(tmp_path)


def stood(bench: Bench, rows: Sequence[Row], far: Reach, **snapshot: Any) -> Reach:
    """Where the pipeline stood, if the sink held these rows."""
    scale = bench.scale()
    now = sink_state(scale.case, bench.held(rows), names=bench.columns)
    assert now is not None
    return in_flight(scale, injection(bench.held(rows), **snapshot), far, now)


def early(low: dict[int, int]) -> Reach:
    return replace(SAVED, low=low, high=upto(2), last=(), early=True)


def test_sparks_own_log_is_taken_at_its_word(make: Make) -> None:
    bench = make()
    for far in (reach(2, 2), reach(3, 1)):
        assert stood(bench, bench.first(1), far) == far
        assert stood(bench, bench.first(1), far, **OPEN) == far


@pytest.mark.parametrize(
    ("part", "low"),
    [
        ((), upto(1)),
        ((Span(0, 5, 10), Span(1, 5, 8)), {0: 10, 1: 8}),
        ((Span(0, 5, 8), Span(1, 5, 10)), {0: 8, 1: 10}),
        ((Span(0, 5, 9), Span(1, 5, 9)), {0: 9, 1: 9}),
        ((Span(0, 5, 10),), {0: 10, 1: 5}),
    ],
)
def test_what_is_missing_from_one_record_on_is_in_flight_though_nobody_writes(
    make: Make, part: tuple[Span, ...], low: dict[int, int]
) -> None:
    bench = make()
    assert stood(bench, bench.rows(*batch(0), *part), SAVED) == early(low)


@pytest.mark.parametrize(
    "part",
    [
        batch(1),
        (Span(0, 5, 10), Span(1, 5, 9)),
        (Span(0, 6, 10), Span(1, 6, 10)),
        (Span(0, 5, 7), Span(0, 9, 10), Span(1, 5, 10)),
        (Span(0, 5, 8), Span(1, 6, 10)),
    ],
)
def test_what_is_missing_here_and_there_is_in_nobodys_hand_unless_somebody_writes(
    make: Make, part: tuple[Span, ...]
) -> None:
    bench = make()
    rows = bench.rows(*batch(0), *part)
    assert stood(bench, rows, SAVED) == SAVED
    assert stood(bench, rows, SAVED, **OPEN) == (SAVED if part == batch(1) else early(upto(1)))


def test_a_total_does_not_say_from_which_record_on_it_is_missing(make: Make) -> None:
    bench = make(TOTALS)
    half = bench.rows(*batch(0), batch(1)[0])
    assert stood(bench, half, SAVED) == SAVED
    assert stood(bench, half, SAVED, **OPEN) == early(upto(1))
    assert stood(bench, bench.first(1), SAVED) == early(upto(1))


@pytest.mark.parametrize(
    ("part", "high"),
    [
        (batch(1), upto(2)),
        ((*batch(1), Span(0, 10, 12)), {0: 12, 1: 10}),
        ((Span(0, 5, 7), Span(1, 5, 14)), {0: 7, 1: 14}),
        ((Span(0, 6, 7),), {0: 7, 1: 5}),
        ((*batch(1), *batch(2)), upto(3)),
        ((), upto(3)),
    ],
)
def test_what_it_took_next_is_bounded_by_the_last_record_in_the_sink(
    make: Make, part: tuple[Span, ...], high: dict[int, int]
) -> None:
    bench = make()
    rows = bench.rows(*batch(0), *part)
    done = replace(TAKEN, last=() if part else TAKEN.last, first=bool(part))
    assert stood(bench, rows, TAKEN) == replace(done, high=high)
    assert stood(bench, rows, TAKEN, **OPEN) == done, "who writes may have more in flight than can be seen"


def test_a_total_does_not_bound_it(make: Make) -> None:
    bench = make(TOTALS)
    assert stood(bench, bench.first(2), TAKEN) == TAKEN
    assert stood(bench, bench.first(3), TAKEN) == replace(TAKEN, last=(), first=True), "it writes before it saves"
    assert stood(bench, bench.rows(*batch(0), Span(0, 5, 7)), TAKEN) == TAKEN
    assert stood(bench, bench.first(2), reach(2, 2, own=True, last=())) == reach(2, 2, own=True, last=())


def test_of_a_total_only_the_writer_says_that_some_of_it_was_in_flight(make: Make) -> None:
    bench = make(TOTALS)
    half = bench.rows(*batch(0), batch(1)[0])
    vague = hit(bench, half, TAKEN)
    assert (vague.point, vague.missing, [stake.harm for stake in vague.stakes]) == (WRITING, (), [Harm.REPETITION])
    assert hit(bench, half, TAKEN, **OPEN).missing == (Span(0, 5, 15), Span(1, 5, 15))
    known = hit(bench, half, reach(3, 1))
    assert known.missing == (Span(0, 5, 15), Span(1, 5, 15)), "Spark's log says what is planned"
    saved = hit(bench, half, replace(SAVED, next=None), **OPEN)
    assert (saved.point, saved.missing) == (WRITING, batch(1))


def test_a_slice_that_is_whole_puts_no_loss_at_stake(make: Make) -> None:
    bench = make()
    out = hit(bench, bench.first(2), TAKEN)
    assert (out.point, [stake.harm for stake in out.stakes]) == (WRITTEN, [Harm.REPETITION])


def test_a_driver_that_stood_still_puts_nothing_at_stake_and_says_so(make: Make) -> None:
    bench = make()
    still = replace(injection(bench.held(bench.first(1))), paused=True, spared=True)
    out = weigh(bench.scale(), still, [reach()])
    assert (out.point, out.stakes, out.missing) == (PLANNED, (), ())
    assert out.why == "the driver was paused, and went on with what it had in flight"
    own = weigh(bench.scale(), replace(still), [TAKEN])
    assert own.why == "the driver was paused, and went on with what it had in flight"
    assert weigh(bench.scale(), still, [reach(2, 2)]).why == "every planned batch was committed: nothing was in flight"


def test_late_is_the_last_batch_if_none_of_it_is_there(make: Make) -> None:
    bench = make()

    def late(rows: Sequence[Row], far: Reach) -> object:
        out = hit(bench, rows, far)
        assert isinstance(out, Known)
        return out.late

    assert late(bench.first(1), reach(2, 2)) == batch(1)
    assert late(bench.first(2), reach(2, 2)) == ()
    assert late(bench.rows(*batch(0), batch(1)[0]), reach(2, 2)) == ()
    assert late(bench.first(1), SAVED) == (), "what a pipeline saves itself is in flight, and not late"
    assert late([], reach(2, 2, last=())) == ()


def test_a_tie_is_looked_for_among_all_slices_if_there_are_not_too_many(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make(TOTALS, unique=True)
    scale = bench.scale()
    unread = hit(bench, bench.first(2), scale=replace(scale, queries=[()]))
    words = "nothing tells in which slices the source was read, and another one may give the same totals"
    assert [(stake.shown, stake.note.endswith(f"not shown, {words}")) for stake in unread.stakes] == [(False, True)]
    monkeypatch.setattr("harness.judge.readings.visible.SLICES_MAX", 3)
    assert hit(bench, bench.first(2), scale=scale).counting
    monkeypatch.setattr("harness.judge.readings.visible.SLICES_MAX", 2)
    words = "the source was read in more than 2 slices, and another one may give the same totals"
    assert [stake.note.endswith(f"not shown, {words}") for stake in hit(bench, bench.first(2), scale=scale).stakes] == [
        True
    ]


def test_a_slice_without_a_number_hides_as_well(make: Make) -> None:
    even = [{"id": i, "account": f"a{i % 4}", "amount": "1.00"} for i in range(40)]
    bench = make(replace(TOTALS, effect="select count(*) as n from ledger", key=()), records=even, unique=True)
    slices = [(None, spans) for _, spans in bench.effects.ranges()]
    (stake,) = hit(bench, bench.first(2), scale=replace(bench.scale(), queries=[slices])).stakes
    assert stake.note.endswith("not shown, another slice gives the same totals, and one lost would hide it")
