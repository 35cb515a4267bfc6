"""What the judge says of windows in update mode under a watermark: each is there as soon as a batch has a record of it,
and a late record is in none."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from harness.scenario import Kind, Word
from tests.corpus.case import error, held, untested, violated
from tests.corpus.run_builder import blame
from tests.folders import judge
from tests.limits import examples
from tests.windows import SINK, TOLD, UPDATED, WindowRun, marked, says, windowed

AT_3 = blame(3)
LATE = (TOLD[0], TOLD[1], (9_500, 33_500), (31_000, 9_000, 25_000), *TOLD[4:])
"""In batch 3, a record of window 0, which the watermark of batch 2 has closed, and the only one of window 2, which that
of batch 3 has closed: it is taken, since a batch drops by the watermark of the one before it."""


def injected(path: Path, *, written: bool = True) -> WindowRun:
    """Killed in batch 3, with its windows in the table or without."""
    run = windowed(path, LATE, UPDATED)
    run.injected(3, written=written)
    run.calm_rows = [list(run.rows_)] * 3
    return run


def test_windows_with_all_records_but_the_late_ones_are_held(tmp_path: Path) -> None:
    assert injected(tmp_path / "run").story.dropped == [8]
    late = "postgres windows: 1 records came when their window had ended, and the watermark drops them"
    says(injected(tmp_path / "done"), held("1 repetition", said=late))
    says(injected(tmp_path / "planned", written=False), held("1 loss", said=late))


def test_a_late_record_that_was_counted_all_the_same_is_wrong(tmp_path: Path) -> None:
    run = injected(tmp_path / "run")
    run.rows_[0] = run.row(0, (0, 1, 2, 4, 5, 8))
    says(run, violated(Kind.WRONG_AGGREGATE, 1, faults=None, fits=None, batches=None, shown=None))


def test_a_record_that_was_dropped_too_early_is_lost(tmp_path: Path) -> None:
    run = injected(tmp_path / "run")
    run.rows_ = [row for row in run.rows_ if row[0] != "2"]
    says(run, violated(Kind.LOST, 1, faults=None, fits=None, shown=None))


def test_one_that_was_dropped_too_early_of_a_window_with_others_is_missing_in_its_total(tmp_path: Path) -> None:
    run = injected(tmp_path / "run")
    place = next(place for place, row in enumerate(run.rows_) if row[0] == "3")
    run.rows_[place] = run.row(3, (6,))
    says(run, violated(Kind.WRONG_AGGREGATE, 1, faults=None, fits=None, batches=None, shown=None))


def test_the_records_of_the_batch_that_came_again_are_added_twice(tmp_path: Path) -> None:
    run = injected(tmp_path / "run")
    twice = {"2": run.row(2, (9, 9)), "3": run.row(3, (6, 7, 7))}
    run.rows_ = [twice.get(str(row[0]), row) for row in run.rows_]
    says(run, violated(Kind.WRONG_AGGREGATE, 2, AT_3, batches=None, shown=None))


def test_a_window_that_no_watermark_has_closed_is_expected(tmp_path: Path) -> None:
    """No record and no batch has to come after it."""
    run = windowed(tmp_path / "run", TOLD[:-1], UPDATED)
    run.injected(3, written=True)
    assert [row[0] for row in run.rows_] == ["0", "1", "2", "3", "4"]
    says(run, held("1 repetition"))
    lacking = windowed(tmp_path / "lacking", TOLD[:-1], UPDATED)
    lacking.injected(3, written=True)
    lacking.calm_rows = [list(lacking.rows_)] * 3
    del lacking.rows_[-1]
    says(lacking, violated(Kind.LOST, 1, faults=None, fits=None, shown=None))


def test_a_batch_of_late_records_alone_exposes_nothing(tmp_path: Path) -> None:
    run = windowed(tmp_path / "run", (*TOLD[:4], (9_000, 8_000), ()), UPDATED)
    run.injected(4, written=True)
    says(run, untested("batch 4 wrote no window"))


def test_another_watermark_in_the_log_is_never_held(tmp_path: Path) -> None:
    before = injected(tmp_path / "before")
    marked(before, 3)
    words = "the watermark of postgres windows and the pipeline do not fit: batch 3 ran under the watermark 1970-01-01"
    says(before, error(words, kinds={Kind.WRONG_AGGREGATE: 1}, shown=None, batches=None))
    after = injected(tmp_path / "after")
    marked(after, 4)
    says(after, violated(Kind.WRONG_AGGREGATE, 1, shown=None, faults=None, fits=None, batches=None))


def test_a_scenario_that_names_the_other_output_mode_is_never_held(tmp_path: Path) -> None:
    for place, (claimed, real) in enumerate(((SINK, UPDATED), (UPDATED, SINK))):
        run = windowed(tmp_path / str(place), LATE, real)
        run.injected(3, written=True)
        run.calm_rows = [list(run.rows_)] * 3
        run.claim(sinks=(claimed,))
        assert judge(run.written()).word in (Word.ERROR, Word.VIOLATED)


HISTORIES = st.lists(st.lists(st.integers(0, 60_000), max_size=4), min_size=3, max_size=5)
DRAWN = settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@DRAWN
@given(HISTORIES, st.data())
def test_honest_histories_are_never_violated_and_changed_ones_never_held(
    tmp_path_factory: pytest.TempPathFactory, times: list[list[int]], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("history")
    honest = windowed(path / "honest", times, UPDATED)
    assume(honest.rows_)
    batch = data.draw(st.integers(0, len(times) - 1))
    written = data.draw(st.booleans())
    honest.injected(batch, written=written)
    honest.calm_rows = [list(honest.rows_)]
    assert judge(honest.written()).word in (Word.HELD, Word.UNTESTED)
    other = windowed(path / "other", times, UPDATED)
    other.injected(batch, written=written)
    other.calm_rows = [list(other.rows_)]
    place = data.draw(st.integers(0, len(other.rows_) - 1))
    row = other.rows_.pop(place)
    other.rows_ += data.draw(st.sampled_from(([], [row, row], [(row[0], str(int(row[1] or 0) + 1), row[2])])))
    assert judge(other.written()).word is not Word.HELD
