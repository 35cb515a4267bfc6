"""Which batch wrote a window, by the records that the batches took and the watermark between them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.checkers.closed_windows import NEVER, WRITTEN, Timed, closed
from harness.scenario.watermark import OutputMode
from tests.windows import played, updated

S = 1_000_000
WINDOW = 10 * S


def timed(offset: int, batch: int | None, second: float) -> Timed:
    at = round(second * S)
    return Timed(0, offset, batch, at, at // WINDOW * WINDOW + WINDOW)


def test_a_window_is_written_by_the_first_batch_under_whose_watermark_it_is_closed() -> None:
    records = [timed(0, 0, 3), timed(1, 1, 12), timed(2, 1, 4), timed(3, 2, 35), timed(4, 3, 36)]
    found = closed(range(5), records, 2_000)
    assert found.watermarks == {0: 0, 1: 1_000, 2: 10_000, 3: 33_000, 4: 34_000}
    assert found.ends == {0: 0, 1: 0, 2: 2, 3: 3, 4: 3}
    assert [(p.offset, p.at_partition, p.at, p.batch, p.late) for p in found.places] == [
        (0, WRITTEN, 0, 2, False),
        (2, WRITTEN, 1, 2, False),
        (1, WRITTEN, 2, 3, False),
        (3, NEVER, 0, None, False),
        (4, NEVER, 1, None, False),
    ]


def test_a_record_is_late_by_the_watermark_of_the_batch_before() -> None:
    records = [timed(0, 0, 30), timed(1, 1, 3), timed(2, 2, 3), timed(3, 3, 29.9)]
    found = {p.offset: (p.batch, p.late) for p in closed(range(4), records, 0).places}
    assert found == {
        1: (1, False),  # batch 1 runs under 30 s, and drops by the watermark of batch 0
        2: (None, True),
        3: (None, True),
        0: (None, False),
    }


def test_a_window_that_no_batch_closed_is_open_but_not_what_no_batch_took_or_the_next_one_closes() -> None:
    records = [
        Timed(0, 0, None, 0, WINDOW),
        Timed(0, 1, 0, None, None),
        timed(2, 0, 99),
        timed(3, 1, 104),
        timed(4, 1, 109),
    ]
    found = closed(range(2), records, 0)
    assert {p.offset: (p.batch, p.late, p.open) for p in found.places} == {
        0: (None, False, False),  # nobody took it: it is lost, unless it is still to come
        1: (None, False, True),  # it has no window
        2: (None, False, False),  # batch 2 writes it, and was not seen
        3: (None, False, True),
        4: (None, False, True),
    }
    assert (found.due, found.nowhere) == (1, 1)


RECORDS = st.lists(st.tuples(st.integers(0, 5), st.floats(0, 90)), max_size=40)


@given(RECORDS, st.integers(0, 20_000))
def test_every_record_has_one_place_and_a_window_one_writer(drawn: list[tuple[int, float]], delay_ms: int) -> None:
    records = [timed(offset, batch, second) for offset, (batch, second) in enumerate(sorted(drawn, key=lambda d: d[0]))]
    found = closed(range(6), records, delay_ms)
    assert sorted(p.offset for p in found.places) == list(range(len(records)))
    assert len({(p.at_partition, p.at) for p in found.places}) == len(records)
    writers: dict[int | None, set[int | None]] = {}
    for place in found.places:
        if not place.late:
            writers.setdefault(records[place.offset].closes_us, set()).add(place.batch)
            assert place.batch is None or place.batch >= (records[place.offset].batch or 0)
    assert all(len(each) == 1 for each in writers.values())
    begin = 0
    for batch in range(6):
        mine = [p.at for p in found.places if p.batch == batch]
        assert sorted(mine) == list(range(begin, found.ends[batch]))
        begin = found.ends[batch]


@given(RECORDS, st.integers(0, 20_000))
def test_it_is_what_a_state_store_does_batch_by_batch(drawn: list[tuple[int, float]], delay_ms: int) -> None:
    records = [timed(offset, batch, second) for offset, (batch, second) in enumerate(sorted(drawn, key=lambda d: d[0]))]
    found = closed(range(6), records, delay_ms)
    taken = [[r for r in records if r.batch == batch] for batch in range(6)]
    story = played([[(r.offset, (r.time_us or 0) // 1000) for r in each] for each in taken], delay_ms)
    assert found.watermarks == dict(enumerate(story.watermarks))
    assert {p.offset for p in found.places if p.late} == set(story.dropped)
    wrote = [sorted(p.offset for p in found.places if p.batch == batch) for batch in range(6)]
    assert wrote == [sorted(offset for window in each.values() for offset in window) for each in story.written]
    assert {p.offset for p in found.places if p.open} <= {number for each in story.open.values() for number in each}


def test_in_update_mode_a_record_is_written_by_its_own_batch_unless_it_is_late() -> None:
    records = [timed(0, 0, 30), timed(1, 1, 3), timed(2, 2, 3), timed(3, 3, 29.9), Timed(0, 4, 3, None, None)]
    found = closed(range(4), records, 0, OutputMode.UPDATE)
    assert {p.offset: (p.batch, p.late, p.open) for p in found.places} == {
        0: (0, False, False),
        1: (1, False, False),  # batch 1 runs under 30 s, and drops by the watermark of batch 0
        2: (None, True, False),
        3: (None, True, False),
        4: (None, False, True),  # it has no window
    }
    assert (found.ends, found.due, found.nowhere) == ({0: 1, 1: 2, 2: 2, 3: 2}, 0, 1)


@given(RECORDS, st.integers(0, 20_000))
def test_in_update_mode_it_is_what_a_state_store_does_batch_by_batch(
    drawn: list[tuple[int, float]], delay_ms: int
) -> None:
    records = [timed(offset, batch, second) for offset, (batch, second) in enumerate(sorted(drawn, key=lambda d: d[0]))]
    found = closed(range(6), records, delay_ms, OutputMode.UPDATE)
    taken = [[r for r in records if r.batch == batch] for batch in range(6)]
    story = updated([[(r.offset, (r.time_us or 0) // 1000) for r in each] for each in taken], delay_ms)
    assert found.watermarks == dict(enumerate(story.watermarks))
    assert {p.offset for p in found.places if p.late} == set(story.dropped)
    there: dict[int, set[int]] = {}
    for batch, written in enumerate(story.written):
        mine = {p.offset for p in found.places if p.batch == batch}
        for window, numbers in written.items():
            there[window] = there.get(window, set()) | {
                n for n in mine if (records[n].closes_us or 0) == closes(window)
            }
            assert there[window] == set(numbers)
        assert mine <= {n for numbers in written.values() for n in numbers}
    assert not any(p.open for p in found.places)


def closes(window: int) -> int:
    return (window + 1) * WINDOW
