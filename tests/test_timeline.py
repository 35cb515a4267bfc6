"""The timeline draws what the history holds, where it holds it, and the same twice."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.history import (
    POINTS,
    AttemptDiagnosed,
    AttemptEnded,
    AttemptStarted,
    BaselineRun,
    BatchCommitted,
    BatchPlanned,
    Event,
    FaultInjected,
    Line,
    OfBatch,
    Phase,
    ProgressRead,
    Sent,
    SinkCommitted,
    SinkRead,
    SourceBegun,
    read,
)
from harness.report import claims, render
from harness.report.budget import MOST_BYTES
from harness.report.page import Parts
from harness.report.timeline import saved_ranges, shapes
from harness.report.timeline.attempt_rows import attempt_rows
from harness.report.timeline.counts import Counts, read_counts
from harness.report.timeline.curves import MOST_POINTS, curves, thinned, value
from harness.report.timeline.from_history import Happened, happened
from harness.report.timeline.picture import LEVELS, levels, picture
from harness.report.timeline.tracks import Setting
from harness.scenario import Evidence, Impact, StepOutcome
from harness.snapshot import Batch, Position, Progressed, Query
from tests import histories
from tests import sample_runs as sample

EMPTY = Counts({})


def batch(
    at_s: float, kind: type[OfBatch], number: int, attempt: int = 1, query: str = "checkpoint"
) -> tuple[float, Event]:
    return at_s, kind(query=query, batch=number, attempt=attempt)


STEP = replace(sample.STEP, at_s=3.3, batch=1)
HISTORY = histories.lines(
    (0.1, Phase(name="set up")),
    (0.2, AttemptStarted(attempt=1)),
    (1.0, Sent(records=60, total=100)),
    batch(1.0, BatchPlanned, 0),
    batch(2.0, SinkCommitted, 0),
    batch(2.1, BatchCommitted, 0),
    batch(2.2, BatchPlanned, 1),
    (2.5, Sent(records=100, total=100)),
    batch(3.0, SinkCommitted, 1),
    (3.05, AttemptEnded(attempt=1, status=-9, scheduled=True)),
    (3.2, SinkRead(step=1, moment="injection", seconds=0.1, rows=100)),
    (3.3, FaultInjected(outcome=STEP)),
    (3.4, AttemptStarted(attempt=2, after_s=0.35, zombies=("executor 17",))),
    batch(5.0, SinkCommitted, 1, 2),
    batch(5.1, BatchCommitted, 1, 2),
    (6.0, Phase(name="judging")),
    (9.0, BaselineRun(number=1, state="begins")),
)
PROGRESSED = Progressed(
    queries=(
        Query(
            checkpoint="checkpoint",
            batches=(
                Batch(batch=0, ranges={0: (0, 40)}, committed=True, attempts=(1,)),
                Batch(batch=1, ranges={0: (40, 100)}, committed=True, attempts=(1, 2)),
            ),
            first={1: 0, 2: 1},
        ),
    )
)
COUNTS = Counts({0: array("q", range(100))})


def run(history: Sequence[Line] | None = None, *steps: StepOutcome) -> Happened:
    return happened(history or HISTORY, steps or (STEP,))


def test_the_history_tells_attempts_batches_and_faults() -> None:
    told = run()
    first, second = told.attempts
    assert (first.begin, first.end, first.status, first.scheduled) == (0.2, 3.05, -9, True)
    assert (second.end, second.after_s, second.zombies) == (None, 0.35, 1)
    assert [
        (work.batch, work.attempt, work.planned, work.in_sink, work.committed, work.ended) for work in told.works
    ] == [
        (0, 1, 1.0, 2.0, 2.1, None),
        (1, 1, 2.2, 3.0, None, 3.05),
        (1, 2, None, 5.0, 5.1, None),
    ]
    (fault,) = told.faults
    # From the death that it was seen to cause until the harness was done with it.
    assert (fault.number, fault.begin, fault.end) == (1, 3.05, 3.3)
    # What comes after the sinks were read is not drawn.
    assert told.end == 6.0


def test_an_outage_lasts_from_the_look_until_the_server_is_back() -> None:
    history = histories.lines(
        (4.0, SinkRead(step=1, moment="injection", seconds=0.5, rows=1)),
        (7.0, Phase(name="judging")),
    )
    (fault,) = run(history, replace(STEP, at_s=6.0)).faults
    assert (fault.begin, fault.end) == (3.5, 6.0)


def test_a_step_that_never_came_is_no_band() -> None:
    assert run(None, replace(STEP, injected=False, at_s=None)).faults == ()


@pytest.mark.parametrize(
    "told",
    [
        [],
        [{}],
        [{"n": 0, "what": "sent", "records": 3, "total": 3}],
        [{"n": 0, "at_s": "soon", "what": "phase", "name": "feeding"}],
        [{"n": 0, "at_s": 1.0, "what": "attempt-diagnosed", "attempt": 1, "words": ["no text"]}],
    ],
)
def test_a_history_without_a_line_of_ours_is_no_picture(tmp_path: Path, told: list[dict[str, Any]]) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in told), encoding="utf-8")
    assert list(read(path)) == [] and happened([], ()) == Happened()


BATCHES: tuple[type[OfBatch], ...] = (SourceBegun, *POINTS.values())
NUMBERS, WORDS = st.integers(-5, 5), st.text(max_size=3)
EVENTS = st.one_of(
    st.builds(Phase, name=WORDS | st.just("judging")),
    st.builds(Sent, records=NUMBERS, total=NUMBERS),
    st.builds(AttemptStarted, attempt=NUMBERS, after_s=st.none() | st.floats(), zombies=st.just(()) | st.tuples(WORDS)),
    st.builds(AttemptEnded, attempt=NUMBERS, status=NUMBERS, scheduled=st.booleans()),
    st.builds(AttemptDiagnosed, attempt=NUMBERS, words=WORDS),
    st.builds(SinkRead, step=NUMBERS, moment=WORDS | st.just("injection"), seconds=st.floats(), rows=NUMBERS),
    *(st.builds(kind, query=WORDS, batch=NUMBERS, attempt=NUMBERS) for kind in BATCHES),
)


@given(st.lists(st.tuples(st.floats(0, 1e9, exclude_max=True), EVENTS), max_size=12))
def test_any_history_is_drawn(told: list[tuple[float, Event]]) -> None:
    found = happened(histories.lines(*told), (STEP,))
    over_time = curves(found, PROGRESSED, COUNTS, sink_rows=3)
    drawn = picture(found, Setting(servers=[("kafka", "source")]), over_time)
    for shape in drawn.shapes:
        for name in ("x", "x2"):
            assert 0 <= float(getattr(shape, name, "0%").rstrip("%")) <= 100
    attempt_rows(found, PROGRESSED, COUNTS)


def test_committed_counts_the_records_of_the_batches_in_spark_s_log() -> None:
    told = curves(run(), PROGRESSED, COUNTS, sink_rows=160)
    assert list(told.sent) == [(1.0, 60), (2.5, 100)]
    assert list(told.committed) == [(2.1, 40), (5.1, 100)]
    assert list(told.lag) == [(1.0, 60), (2.1, 20), (2.5, 60), (5.1, 0)]
    assert list(told.rows) == [(3.2, 100), (6.0, 160)]


def test_a_log_with_holes_is_counted_by_its_records() -> None:
    counts = Counts({0: array("q", [0, 1, 50, 99])})
    assert list(curves(run(), PROGRESSED, counts, sink_rows=None).committed) == [(2.1, 2), (5.1, 4)]


def test_a_pipeline_s_own_offsets_are_its_commits() -> None:
    positions = tuple(
        Position(attempt=1, at_s=at, next={0: end}) for at, end in ((0.0, 0), (2.0, 30), (2.5, 30), (4.0, 100))
    )
    told = curves(run(), Progressed(positions=positions), COUNTS, sink_rows=None)
    assert list(told.committed) == [(0.0, 0), (2.0, 30), (4.0, 100)]
    assert "own offsets" in told.by


def test_of_several_queries_the_slowest_has_committed() -> None:
    other = replace(PROGRESSED.queries[0], checkpoint="other", batches=PROGRESSED.queries[0].batches[:1])
    more = histories.lines(batch(4.0, BatchCommitted, 0, 2, "other"))
    history = sorted([*HISTORY, *more], key=lambda line: line.at_s)
    two = Progressed(queries=(PROGRESSED.queries[0], other))
    assert value(curves(run(history), two, COUNTS, sink_rows=None).committed, 6.0) == 40


def test_without_a_source_nothing_is_said_of_commits() -> None:
    told = curves(run(), PROGRESSED, None, sink_rows=None)
    assert not told.committed and not told.lag and told.sent


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 10**6)), max_size=2000).map(sorted))
def test_a_thinned_curve_keeps_its_peak_and_its_end(curve: list[tuple[float, int]]) -> None:
    kept = thinned(curve)
    assert len(kept) <= MOST_POINTS
    if curve:
        assert kept[-1] == curve[-1]
        assert max(count for _, count in kept) == max(count for _, count in curve)


@given(st.lists(st.floats(0, 100), max_size=LEVELS))
def test_no_number_covers_another(places: list[float]) -> None:
    lines = levels(places)
    for one in range(len(places)):
        for other in range(one):
            assert lines[one] != lines[other] or abs(places[one] - places[other]) >= 2.6


@pytest.mark.parametrize("end", [0.01, 0.7, 5.0, 26.3, 119.0, 3600.0, 1e6])
def test_the_axis_has_round_seconds_and_not_too_many(end: float) -> None:
    ticks = shapes.ticks(end)
    assert 1 <= len(ticks) <= shapes.TICKS + 1 and ticks[0] == 0 and ticks[-1] <= end


def test_lanes_are_those_of_the_run() -> None:
    away = replace(STEP, evidence=Evidence(signalled={"postgres": "gone after SIGKILL, back after 2 s"}))
    setting = Setting(impacts={1: Impact.NONE}, executors=2, servers=[("kafka", "source"), ("postgres", "sink")])
    drawn = picture(run(None, away), setting, curves(run(), PROGRESSED, COUNTS, sink_rows=None))
    texts = {shape.text for shape in drawn.shapes if isinstance(shape, shapes.Label)}
    assert {"Producer", "Driver", "Executors", "Micro-batches", "kafka", "postgres"} <= texts
    assert {
        "source; no fault struck it",
        "sink; struck by fault 1",
        "2 executors asked for; dotted: not recorded",
    } <= texts
    assert "1 again" in texts


def test_each_attempt_has_its_batches_and_commits() -> None:
    first, second = attempt_rows(run(), PROGRESSED, COUNTS)
    assert (first.ended, first.worked, first.committed, first.records, first.next) == (
        "3.05 s, status -9, by a fault",
        "0 1",
        "0",
        "40",
        "0/40",
    )
    assert (second.attempt.number, second.committed, second.records) == (2, "1", "60")
    assert (first.how, second.how) == ("-", "0.35 s after the death, 1 process of a dead attempt still alive")


def test_the_page_says_once_what_is_known_of_the_end_of_an_attempt_with_two_queries() -> None:
    diagnosed = (9.1, AttemptDiagnosed(attempt=1, words="a" * 2000))
    ended = (9.1, AttemptEnded(attempt=2, status=1, error="KeyError: x"))
    history = [*HISTORY, *histories.lines(batch(2.5, BatchPlanned, 7, query="other"), diagnosed, ended)]
    verdict = sample.verdict(steps=(STEP,))
    parts = Parts(folder="a", run={}, verdict=verdict, plan=claims.UNPLANNED, scenario_file="", history=history)
    assert [each.attempt.number for each in attempt_rows(parts.past, PROGRESSED, COUNTS)] == [1, 1, 2]
    page = render.run_page(parts)
    words = '<span class="data">'
    assert page.count(f"Diagnostics of attempt 1, as the cluster manager has them: {words}{'a' * 1000}… (1,000") == 1
    assert page.count(f"Attempt 2, ended by no fault: {words}KeyError: x</span>") == 1


def test_a_pipeline_s_own_offsets_stand_in_the_table_of_attempts() -> None:
    moves = [(1, {}), (1, {0: 20}), (1, {0: 40}), (2, {0: 40}), (2, {0: 100})]
    own = Progressed(positions=tuple(Position(attempt=attempt, at_s=1.0, next=ends) for attempt, ends in moves))
    history = [line for line in HISTORY if not isinstance(line.event, OfBatch)]
    first, second = attempt_rows(happened(history, [STEP]), own, COUNTS)
    assert (first.query, first.committed, first.records, first.next) == (
        "the pipeline's own offsets",
        "offset ranges 0 1",
        "40",
        "0/40",
    )
    assert (second.worked, second.committed, second.records) == ("-", "offset range 2", "60")


def test_offset_ranges_have_one_numbering_and_the_program_s_batch_stands_beside_it(tmp_path: Path) -> None:
    moves = [(1, {}), (1, {0: 20}), (1, {0: 20, 1: 5}), (2, {0: 40, 1: 5}), (2, {0: 100, 1: 9}), (2, {0: 90, 1: 9})]
    positions = tuple(Position(attempt=attempt, at_s=1.0, next=ends) for attempt, ends in moves)
    # What the second attempt found, the first one had saved; nothing is saved by going back.
    assert saved_ranges.saved_ranges(positions) == {1: [0, 1, 2], 2: [3]}
    assert saved_ranges.saved_at(positions, 1) == "offset ranges 0-2 had been saved"
    assert saved_ranges.saved_at(positions, 2) == saved_ranges.saved_at(positions, 0) == ""
    assert (
        saved_ranges.saved_at([positions[0], replace(positions[0], attempt=2)], 1) == "no offset range had been saved"
    )
    folder = sample.stored(tmp_path, sample.verdict())
    progress = (3.0, ProgressRead(progressed=Progressed(positions=positions)))
    with folder.history.open("a", encoding="utf-8") as out:
        out.write(
            sample.written(
                histories.lines((1.1, AttemptStarted(attempt=1)), (2.2, AttemptStarted(attempt=2)), progress)
            )
        )
    one, other = drawn_twice(folder.path)
    page = one.decode()
    assert one == other
    assert page.count("3 by the program's own count; offset ranges 0-2 had been saved".replace("'", "&#39;")) == 2
    assert "4 offset ranges saved; 1 fault" in page and "0 batches" not in page
    assert "<td>offset ranges 0-2</td>" in page and "<td>offset range 3</td>" in page


def drawn_twice(folder: Path) -> tuple[bytes, bytes]:
    return render.write(folder).read_bytes(), render.write(folder).read_bytes()


def test_the_picture_is_the_same_twice_and_is_xml(tmp_path: Path) -> None:
    folder = sample.stored(tmp_path, sample.verdict())
    one, other = drawn_twice(folder.path)
    assert one == other
    svg = re.search(r'<svg class="timeline".*?\n</svg>', one.decode(), re.DOTALL)
    assert svg is not None
    ElementTree.fromstring(svg[0])


def test_a_source_that_cannot_be_read_is_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "source.parquet"
    assert read_counts(path) is None
    path.write_bytes(b"PAR1 and nothing more")
    assert read_counts(path) is None


def test_a_page_of_everything_stays_small() -> None:
    """Long texts everywhere, thousands of findings, batches and events."""
    history = [batch(float(n), kind, n) for n in range(3000) for kind in (BatchPlanned, BatchCommitted)]
    row: dict[str, str | None] = {f"column {n} {'<' * 50}": "<'&" * 500 for n in range(60)}
    finding = replace(sample.duplicated(), expected=(row,), found=(row,), note="<" * 5000)
    findings = tuple(replace(finding, faults=(f"fault {n % 40}",)) for n in range(2000))
    parts = Parts(
        folder="a",
        run={"stack": {f"setting {n}": "<" * 3000 for n in range(300)}},
        verdict=sample.verdict(findings=findings, reasons=("<" * 5000,) * 50, notes=("<" * 5000,) * 50),
        plan=claims.UNPLANNED,
        scenario_file="<" * 500_000,
        history=histories.lines(*history),
    )
    assert len(render.run_page(parts).encode()) <= MOST_BYTES
