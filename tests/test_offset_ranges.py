"""Stretches of the source."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.checkers.offset_ranges import OffsetRange, OffsetRanges, between, covers, highest, joined, lowest


@pytest.mark.parametrize(
    ("low", "high", "ranges"),
    [
        ({}, {}, ()),
        ({}, {0: 5}, (OffsetRange(0, 0, 5),)),
        ({0: 2}, {0: 5, 1: 3}, (OffsetRange(0, 2, 5), OffsetRange(1, 0, 3))),
        ({0: 5}, {0: 5}, ()),
        ({0: 6}, {0: 5}, ()),
        ({0: 4, 2: 1}, {0: 5}, (OffsetRange(0, 4, 5),)),
        ({}, {2: 1, 0: 1}, (OffsetRange(0, 0, 1), OffsetRange(2, 0, 1))),
    ],
)
def test_what_lies_between_two_positions(low: dict[int, int], high: dict[int, int], ranges: OffsetRanges) -> None:
    assert between(low, high) == ranges


@pytest.mark.parametrize(
    ("many", "one"),
    [
        ([], ()),
        ([(), (OffsetRange(0, 1, 2),)], (OffsetRange(0, 1, 2),)),
        ([(OffsetRange(0, 5, 9),), (OffsetRange(0, 1, 5),)], (OffsetRange(0, 1, 9),)),
        ([(OffsetRange(0, 1, 5),), (OffsetRange(0, 6, 9),)], (OffsetRange(0, 1, 5), OffsetRange(0, 6, 9))),
        ([(OffsetRange(0, 1, 9),), (OffsetRange(0, 2, 3),), (OffsetRange(0, 8, 10),)], (OffsetRange(0, 1, 10),)),
        ([(OffsetRange(0, 1, 5),), (OffsetRange(1, 1, 5),)], (OffsetRange(0, 1, 5), OffsetRange(1, 1, 5))),
        ([(OffsetRange(1, 0, 1), OffsetRange(0, 0, 1))], (OffsetRange(0, 0, 1), OffsetRange(1, 0, 1))),
    ],
)
def test_stretches_that_overlap_or_touch_are_one(many: list[OffsetRanges], one: OffsetRanges) -> None:
    assert joined(*many) == one


SPANS = st.lists(
    st.builds(
        lambda p, start, size: OffsetRange(p, start, start + size),
        st.integers(0, 2),
        st.integers(0, 9),
        st.integers(1, 9),
    )
).map(tuple)


@given(SPANS, SPANS)
def test_joined_stretches_have_the_same_records_each_once(one: OffsetRanges, other: OffsetRanges) -> None:
    out = joined(one, other)
    flat = [
        (offset_range.partition, offset)
        for offset_range in out
        for offset in range(offset_range.start, offset_range.end)
    ]
    assert set(flat) == {(s.partition, offset) for s in (*one, *other) for offset in range(s.start, s.end)}
    assert len(flat) == len(set(flat))
    assert list(out) == sorted(out) == list(joined(out))


def test_the_lowest_and_the_highest_partition_by_partition() -> None:
    many = [{0: 3, 1: 7}, {0: 5}, {1: 2, 0: 4}]
    assert lowest(many) == {0: 3, 1: 0}
    assert highest(many) == {0: 5, 1: 7}
    assert lowest([]) == highest([]) == {}
    assert list(highest([{2: 1}, {0: 1}])) == [0, 2]


def offsets(ranges: OffsetRanges) -> set[tuple[int, int]]:
    return {
        (offset_range.partition, offset)
        for offset_range in ranges
        for offset in range(offset_range.start, offset_range.end)
    }


@given(SPANS, SPANS)
def test_stretches_cover_others_if_they_hold_all_their_records(one: OffsetRanges, other: OffsetRanges) -> None:
    assert covers(joined(one), other) == (bool(other) and offsets(other) <= offsets(one))


def test_the_same_stretch_is_covered_and_a_longer_one_is_not() -> None:
    (offset_range,) = outer = (OffsetRange(0, 2, 5),)
    assert covers(outer, outer)
    assert not covers(outer, (offset_range._replace(start=1),))
    assert not covers(outer, (offset_range._replace(end=6),))
    assert not covers(outer, (offset_range._replace(partition=1),))
    assert not covers(outer, ())
