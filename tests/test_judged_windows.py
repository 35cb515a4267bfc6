"""What the judge says of a sink of windows: planted losses and repetitions, late records, logs that say otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.scenario import Kind, Word
from harness.scenario.watermark import Watermark
from harness.snapshot import Query
from tests.corpus.case import error, held, inconclusive, judged_as, untested, violated
from tests.corpus.run_builder import CHECKPOINT, blame
from tests.folders import judge
from tests.limits import examples
from tests.windows import SINK, TOLD, WindowRun, marked, says, windowed

DONE, BEFORE = blame(3), blame(5, point="batch-planned")


def done(path: Path, **changes: Any) -> WindowRun:
    """Killed when the sink had what batch 3 writes, one window, and Spark's log had not."""
    run = windowed(path)
    run.injected(3, written=True, **changes)
    return run


def planned(path: Path) -> WindowRun:
    """Killed before the last batch wrote its two windows."""
    run = windowed(path)
    run.injected(5, written=False)
    return run


BLAMED = "kill driver at sink-committed of batch 3, attempt 1"


def test_each_window_once_is_held(tmp_path: Path) -> None:
    says(done(tmp_path / "run"), held("1 repetition"))
    says(planned(tmp_path / "other"), held("1 loss"))


def test_the_window_of_the_batch_that_came_again_is_there_twice(tmp_path: Path) -> None:
    run = done(tmp_path / "run")
    run.calm_rows = [list(run.rows_)]
    run.rows_ += run.wrote(3)
    says(run, violated(Kind.DUPLICATED, 1, DONE, shown=None))


def test_the_windows_of_the_batch_that_was_planned_are_missing(tmp_path: Path) -> None:
    run = planned(tmp_path / "run")
    run.rows_ = run.wrote(2, 3)
    run.calm_rows = [run.wrote(*range(6))]
    says(run, violated(Kind.LOST, 2, BEFORE, shown=None))


def test_a_window_that_no_fault_exposed_is_missing(tmp_path: Path) -> None:
    run = done(tmp_path / "run")
    run.rows_ = run.wrote(3, 5)
    run.calm_rows = [run.wrote(*range(6))] * 3
    says(run, violated(Kind.LOST, 1, BLAMED, shown=None))


def test_all_windows_of_the_last_batch_are_missing(tmp_path: Path) -> None:
    run = done(tmp_path / "run")
    run.rows_ = run.wrote(2, 3)
    run.calm_rows = [run.wrote(*range(6))] * 3
    says(run, violated(Kind.LOST, 2, BLAMED, shown=None))


Change = Callable[[WindowRun], None]


def short(run: WindowRun) -> None:
    """A record is missing in the count of its window."""
    run.rows_[0] = run.row(0, (0, 1, 2, 4))


def opened(run: WindowRun) -> None:
    """A window is there that no watermark has closed."""
    run.rows_.append(run.row(4, (9,)))


def doubled(run: WindowRun) -> None:
    """A window is there twice that no injection touched."""
    run.rows_.append(run.rows_[0])


@pytest.mark.parametrize(
    ("change", "kind"),
    [(short, Kind.WRONG_AGGREGATE), (opened, Kind.UNEXPECTED), (doubled, Kind.DUPLICATED)],
)
def test_planted_anomalies(change: Change, kind: Kind, tmp_path: Path) -> None:
    run = done(tmp_path / "run")
    run.calm_rows = [list(run.rows_)] * 3
    change(run)
    says(run, violated(kind, 1, faults=None, fits=None, shown=None))


LATE = (TOLD[0], TOLD[1], TOLD[2], (31_000, 9_000, 15_000), *TOLD[4:])
"""In batch 3, a record of window 0, which the watermark of batch 2 has closed, and one of window 1, which is open."""


def test_a_late_record_that_the_watermark_drops_is_missed_by_nobody(tmp_path: Path) -> None:
    run = windowed(tmp_path / "run", LATE)
    run.injected(3, written=True)
    assert run.story.dropped == [8]
    says(run, held("1 repetition", said="postgres windows: 1 records came when their window had ended"))


def test_a_late_record_that_counts_all_the_same(tmp_path: Path) -> None:
    run = windowed(tmp_path / "run", LATE)
    run.injected(3, written=True)
    run.calm_rows = [list(run.rows_)] * 3
    run.rows_[0] = run.row(0, (0, 1, 2, 4, 5, 8))
    says(run, violated(Kind.WRONG_AGGREGATE, 1, shown=None, faults=None, fits=None, batches=None))


def test_a_late_record_that_no_watermark_may_drop(tmp_path: Path) -> None:
    run = windowed(tmp_path / "run", LATE)
    run.injected(3, written=True)
    run.calm_rows = [list(run.rows_)] * 3
    run.rows_[1] = run.row(1, (3,))
    says(run, violated(Kind.WRONG_AGGREGATE, 1, shown=None, faults=None, fits=None, batches=None))


def test_a_batch_that_wrote_no_window_exposes_nothing(tmp_path: Path) -> None:
    run = windowed(tmp_path / "run")
    run.injected(1, written=True)
    says(run, untested("batch 1 wrote no window"))


def test_another_watermark_before_any_fault_is_a_scenario_that_does_not_fit(tmp_path: Path) -> None:
    run = done(tmp_path / "run")
    marked(run, 3)
    words = "the watermark of postgres windows and the pipeline do not fit: batch 3 ran under the watermark 1970-01-01"
    says(run, error(words, kinds={Kind.WRONG_AGGREGATE: 1}, shown=None, batches=None))


def test_windows_that_overlap_are_an_error(tmp_path: Path) -> None:
    each = "select unnest([ms // 10000, ms // 10000 + 1]) as w, amount from ledger where not (_late or _open)"
    expected = f"select w, count(*) as n, sum(amount) as total from ({each}) as each group by 1"
    run = windowed(tmp_path / "run", holds=replace(SINK, expected=expected))
    run.injected(3, written=True)
    words = "one record is in 2 rows of `expected` of postgres windows, and `closes` is the end of one window"
    says(run, error(words, kinds={Kind.WRONG_AGGREGATE: 3, Kind.LOST: 1}, fits=(DONE,)))


SLIDING = "select unnest([ms // 10000, ms // 10000 + 1]) as w, amount from ledger where not (_late or _open)"
TOTAL = "select w, count(*) as n, sum(amount) as total from ({}) as each group by 1"


@pytest.mark.parametrize(
    "expected",
    [
        # The first records, or nearly all, are in no window; none alone is.
        TOTAL.format(f"{SLIDING} and amount > 1.5"),
        TOTAL.format(f"{SLIDING} and amount = 4.03"),
        f"{TOTAL.format(SLIDING)} having count(*) > 1",
        # Windows that nothing lies in have rows too.
        "select g.w, count(l.w) as n, sum(l.amount) as total from range(9) g(w) "
        f"left join ({SLIDING}) l using (w) group by 1",
    ],
)
def test_windows_that_overlap_under_a_filter_are_an_error(tmp_path: Path, expected: str) -> None:
    assert "one record is in 2 rows" in overlaps(tmp_path, expected)


@pytest.mark.parametrize(
    "expected",
    [
        SINK.expected,
        f"{SINK.expected} having count(*) > 1",
        "select g.w, count(l.ms) as n, coalesce(sum(l.amount), 0)::decimal(12,2) as total from range(9) g(w) left join "
        "(select * from ledger where not (_late or _open)) l on l.ms // 10000 = g.w group by 1",
    ],
)
def test_windows_that_do_not_overlap_are_none(tmp_path: Path, expected: str) -> None:
    assert overlaps(tmp_path, expected) == ""


def overlaps(folder: Path, expected: str) -> str:
    """What is said of windows that overlap."""
    run = windowed(folder / "run", holds=replace(SINK, expected=expected))
    run.injected(3, written=True)
    return "; ".join(each for each in judge(run.written()).reasons if "is in" in each)


def test_another_watermark_after_a_fault_is_a_finding_that_baseline_runs_decide(tmp_path: Path) -> None:
    for number, (calm, right) in enumerate(
        (
            ([0, 0, 0], violated(Kind.WRONG_AGGREGATE, 1, shown=None)),
            ([1, 1, 1], error("expected rows and pipeline do not fit", kinds=None, without_faults=True, batches=None)),
            ([0, 1, 0], inconclusive("not deterministic without faults", kinds=None, batches=None)),
        )
    ):
        run = done(tmp_path / str(number))
        run.calm_rows = [list(run.rows_) for _ in calm]
        marked(run, 4)
        path = run.written()
        for each, other in enumerate(calm, 1):
            if other:
                run.edit(f"baseline/{each}/progress", lambda said: raised(said, 4))
        assert judged_as(run, path).misses(replace(right, shown=None)) == {}, calm


def raised(said: dict[str, Any], batch: int) -> None:
    """Another watermark from that batch on, in a file."""
    for query in said["queries"]:
        for each in query["batches"][batch:]:
            each["watermark_ms"] += 1
    said["batches"] = said["queries"][0]["batches"]


@pytest.mark.parametrize("ahead_ms", [-30_000, -1, 1, 30_000])
def test_a_watermark_of_which_the_rows_make_no_use_is_never_held(ahead_ms: int, tmp_path: Path) -> None:
    for batch in range(1, 6):
        run = done(tmp_path / str(batch))
        run.marks[batch] = (run.marks[batch] or 0) + ahead_ms
        run.calm_rows = [list(run.rows_)] * 3
        assert judge(run.written()).word in (Word.ERROR, Word.VIOLATED)


def test_without_the_log_nothing_is_compared(tmp_path: Path) -> None:
    run = done(tmp_path / "run")
    run.marks[4] = None
    says(run, untested("no reading of Spark's log showed the watermark of batch 4"))


def test_a_batch_that_was_not_seen(tmp_path: Path) -> None:
    run = done(tmp_path / "run")
    batches = run.taken(run.marks)
    run.queries = [Query(checkpoint=CHECKPOINT, batches=batches[:2] + batches[3:], first={1: 0, 2: 3})]
    says(run, untested("of the batches up to 5, only 5 were seen"))


def test_a_checkpoint_that_was_begun_anew(tmp_path: Path) -> None:
    run = done(tmp_path / "run")
    batches = run.taken(run.marks)
    run.queries = [Query(checkpoint=CHECKPOINT, batches=batches, first={n: 0}) for n in (1, 2)]
    run.rows_ += run.rows_
    says(run, untested("2 checkpoints feed it"))


def test_a_pipeline_that_keeps_its_offsets_itself(tmp_path: Path) -> None:
    run = done(tmp_path / "run")
    run.claim(pipeline=replace(run.scenario.pipeline, progress="group"))
    says(run, untested("the pipeline manages its own offsets"))


def test_a_record_that_no_batch_took_is_lost_and_its_window_not_open(tmp_path: Path) -> None:
    run = windowed(tmp_path / "run", ((1_000,), (4_000, 8_000), *TOLD[1:]))
    run.begins = 1
    run.times = ((), *run.times[1:])
    run.injected(4, written=True)
    lacking = [row for row in run.rows_ if row[0] != "0"]
    run.rows_ = [("0", "4", run.row(0, (1, 2, 4, 5))[2]), *lacking]
    run.calm_rows = []
    assert judged_as(run, run.written()).word is not Word.HELD


def unseen(path: Path) -> WindowRun:
    """The last batch, which takes no record and closes two windows, was not seen."""
    run = windowed(path, TOLD[:-1])
    run.injected(3, written=True)
    return run


def test_windows_that_a_batch_has_yet_to_write_are_unknown_there_or_not(tmp_path: Path) -> None:
    right = inconclusive("batch 5, which closes windows of 3 records of postgres windows, was not seen", shown=None)
    run = unseen(tmp_path / "run")
    says(run, right)
    there = unseen(tmp_path / "there")
    there.rows_ = windowed(tmp_path / "whole").rows_
    says(there, right)


def test_a_batch_that_writes_windows_and_is_not_committed_in_the_end(tmp_path: Path) -> None:
    run = done(tmp_path / "run")
    run.committed = 5
    says(run, inconclusive("batch 5, which writes windows of postgres windows, was never committed", shown=None))


def test_another_query_beside_it_numbers_its_batches_for_itself(tmp_path: Path) -> None:
    """The history then names no batch of a record."""
    run = windowed(tmp_path / "run")
    run.sink(replace(SINK, query=CHECKPOINT))
    run.types = [[("w", "bigint", "number"), ("n", "bigint", "number"), ("total", "numeric", "number")]]
    run.injected(3, written=True)
    first = {1: 0, 2: 3}
    other = Query(checkpoint="beside", batches=(replace(run.taken(run.marks)[0], ranges={0: (0, 10)}),), first={1: 0})
    run.queries, run.batches = [Query(checkpoint=CHECKPOINT, batches=run.taken(run.marks), first=first), other], []
    says(run, held("1 repetition"))


def test_a_record_without_a_window_is_noted(tmp_path: Path) -> None:
    run = done(tmp_path / "run")
    assert SINK.watermark is not None
    nothing = replace(SINK.watermark, closes=f"case when id <> 9 then {SINK.watermark.closes} end")
    run.claim(sinks=(replace(SINK, watermark=nothing),))
    says(run, held("1 repetition", said="postgres windows: 1 records have no window"))


DEEP = f"event_time{' + interval 1 second' * 900}"
TWO = "event_time) from ledger; select (1"


@pytest.mark.parametrize(
    "closes", ["id", "event_tim", "event_time) --", "max(event_time)", "event_time, id", DEEP, TWO]
)
def test_a_window_that_ends_at_no_time_is_told_in_one_line(closes: str, tmp_path: Path) -> None:
    run = done(tmp_path / "run")
    run.claim(sinks=(replace(SINK, watermark=Watermark(of="event_time", closes=closes)),))
    with pytest.raises(UsageError) as said:
        judge(run.written())
    assert str(said.value).startswith("`closes` in the watermark of scenario `by hand` is no ")
    assert "\n" not in str(said.value)


@pytest.mark.parametrize(
    ("closes", "said"),
    [
        ("unnest([event_time, event_time])", "asks unnest, which gives a record several rows. Say one time of each"),
        ("now()", "asks now, which answers otherwise each time. It may depend on the records alone"),
        ("event_time + to_minutes((60 * random())::bigint)", "asks random, which answers otherwise each time"),
    ],
)
def test_a_window_that_does_not_end_once_is_the_users_mistake(closes: str, said: str, tmp_path: Path) -> None:
    run = done(tmp_path / "run")
    run.claim(sinks=(replace(SINK, watermark=Watermark(of="event_time", closes=closes)),))
    with pytest.raises(UsageError) as refused:
        judge(run.written())
    assert str(refused.value).startswith(f"`closes` in the watermark of scenario `by hand` {said}")


HISTORIES = st.lists(st.lists(st.integers(0, 60_000), max_size=4), min_size=3, max_size=5)
DRAWN = settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@DRAWN
@given(HISTORIES, st.data())
def test_honest_histories_are_never_violated_and_changed_ones_never_held(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[list[int]], data: st.DataObject
) -> None:
    times = (*drawn, (90_000,), ())
    path = tmp_path_factory.mktemp("history")
    honest = windowed(path / "honest", times)
    assume(len({row[1:] for row in honest.rows_}) == len(honest.rows_) > 1)
    batch = data.draw(st.integers(0, len(times) - 1))
    written = data.draw(st.booleans())
    honest.injected(batch, written=written)
    assert judge(honest.written()).word in ((Word.HELD,) if honest.wrote(batch) else (Word.UNTESTED, Word.HELD))
    other = windowed(path / "other", times)
    other.injected(batch, written=written)
    other.calm_rows = [list(other.rows_)]
    place = data.draw(st.integers(0, len(other.rows_) - 1))
    row = other.rows_.pop(place)
    other.rows_ += data.draw(st.sampled_from(([], [row, row], [(row[0], str(int(row[1] or 0) + 1), row[2])])))
    assert judge(other.written()).word is not Word.HELD
