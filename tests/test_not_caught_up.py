"""What is said of a run that is unknown because it did not catch up: what was left, what was slow, what helps."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.checkpoint import shuffle_partitions
from harness.history import (
    AttemptDiagnosed,
    AttemptEnded,
    AttemptStarted,
    BatchCommitted,
    BatchPlanned,
    Event,
    Line,
    OfBatch,
    Phase,
    ProgressRead,
    RestartsEnded,
    Sent,
)
from harness.report import claims, render
from harness.report.causes.not_caught_up import NotCaughtUp, not_caught_up, ran
from harness.report.causes.sentences import MOST_WORDS, words
from harness.report.ci import run_text
from harness.report.timeline.counts import Counts
from harness.scenario import Input, Pipeline, Scenario, Verdict, Word
from harness.snapshot import Batch, Position, Progressed, Query
from tests import histories
from tests import sample_runs as sample


def batch(at_s: float, kind: type[OfBatch], number: int, attempt: int) -> tuple[float, Event]:
    return at_s, kind(query="checkpoint", batch=number, attempt=attempt)


HISTORY = histories.lines(
    (1.0, Phase(name="warm-up")),
    (1.1, AttemptStarted(attempt=1)),
    batch(2.0, BatchPlanned, 0, 1),
    (2.5, Sent(records=60, total=600)),
    batch(9.0, BatchCommitted, 0, 1),
    (10.0, Phase(name="feeding")),
    (20.0, AttemptEnded(attempt=1, status=-9, scheduled=True)),
    (21.0, AttemptStarted(attempt=2)),
    (40.0, Sent(records=400, total=600)),
    batch(101.0, BatchCommitted, 1, 2),
    batch(102.0, BatchPlanned, 2, 2),
    (130.0, Phase(name="catching up")),
    (130.5, Phase(name="reading")),
    (131.0, Phase(name="judging")),
)
PROGRESSED = Progressed(committed={0: 200, 1: 40}, end={0: 240, 1: 160}, caught_up=False)
COUNTS = Counts({0: array("q", range(240)), 1: array("q", range(160))})
UNKNOWN = sample.verdict(word=Word.INCONCLUSIVE, findings=(), steps=(), reasons=("not caught up: 160 of 400",))
RUN = {
    "spark": {"spark.cores.max": "2"},
    "outcome": {"stateful": [{"checkpoint": "checkpoint", "shuffle_partitions": 200}]},
}
PLAN = Scenario(name="a", pipeline=Pipeline(entry="a.py"), input=Input(records=600), timeout_s=120.0)


def said(verdict: Verdict = UNKNOWN, history: Sequence[Line] | None = None, **changes: Any) -> NotCaughtUp | None:
    parts = {"run": RUN, "plan": PLAN, "progressed": PROGRESSED, "counts": COUNTS, **changes}
    return not_caught_up(ran(verdict, HISTORY if history is None else history, **parts))


def with_ends(*ends: tuple[float, Event]) -> list[Line]:
    """The history with these events before its last phases."""
    return [*HISTORY[:-3], *histories.lines(*ends), *HISTORY[-3:]]


def of_attempt(line: Line, attempt: int) -> bool:
    """Return whether it is of a batch that the attempt worked on."""
    return isinstance(line.event, OfBatch) and line.event.attempt == attempt


def test_it_says_what_was_left_what_took_the_time_and_what_to_change() -> None:
    assert said() == NotCaughtUp(
        summary=[
            "160 of 400 records in the source were not committed when the sinks were last read.",
            "Rows are expected of the 240 committed records alone; the others are not judged.",
            "Of the committed records no row was found missing, doubled or wrong.",
            "The time was up: `timeout` gave 120 s after the warm-up.",
            "The harness had not yet sent 200 of 600 records: it sends more as the pipeline plans more.",
            "Attempt 2 of the driver took 80 of these 120 s from its launch to its first commit.",
            "A batch took 7.0 s from its plan to its commit (median of 1; the longest 7.0 s).",
            "Batch 2 was not committed when the sinks were read, 28.5 s after its plan.",
            "The query checkpoint keeps state in 200 shuffle partitions: each batch runs 200 tasks or more on 2 cores.",
        ],
        facts=[("Records not committed", "partition 0, offsets 200 to 239; partition 1, offsets 40 to 159")],
        cures=[
            "Lower `spark.sql.shuffle.partitions` (here 200) to the number of cores (2), under `pipeline.conf`.",
            "Raise `timeout` (here 120 s).",
            "Or feed less: lower `input.records` (here 600) to 190: four fifths of what was committed in 120 s.",
        ],
    )


def test_the_time_that_all_records_would_take_is_said_by_the_pace_of_the_newest_attempt() -> None:
    steady = [batch(101.0 + 5 * n, kind, n, 2) for n in range(1, 5) for kind in (BatchPlanned, BatchCommitted)]
    took = [Batch(batch=n, ranges={0: (40 * n, 40 * n + 40)}, committed=True, attempts=(2,)) for n in range(5)]
    query = Query(checkpoint="checkpoint", ours=True, batches=tuple(took), first={1: 0, 2: 1})
    told = said(
        history=[line for line in HISTORY if not of_attempt(line, 2)] + histories.lines(*steady),
        progressed=replace(PROGRESSED, committed={0: 200}, queries=(query,)),
        run={"path": "slow.yaml", "seed": 7},
    )
    assert told is not None
    # 80 records were committed 106 s after the start, 96 s after the warm-up, and 8 a second from then on.
    assert told.cures == [
        "Raise `timeout` (here 120 s) to 170 s or more.",
        "So long do 600 records take, the start of attempt 2 included, which committed 8 a second.",
        "Or feed less: lower `input.records` (here 600) to 160: four fifths of what was committed in 120 s.",
        "Then run the changed scenario: `onceproof run slow.yaml --seed 7`. `replay` keeps the stored settings.",
    ]


def test_of_a_run_whose_checker_did_not_run_nothing_is_called_right() -> None:
    told = said(replace(UNKNOWN, self_tests={}))
    assert told is not None
    assert not any("no row was found" in text for text in told.summary)


def test_every_sentence_is_short() -> None:
    told = said()
    assert told is not None
    assert all(words(text) <= MOST_WORDS for text in [*told.summary, *told.cures])


@pytest.mark.parametrize(
    "changes",
    [
        {"progressed": Progressed()},
        {"progressed": replace(PROGRESSED, caught_up=True)},
        {"verdict": sample.verdict()},
        {"verdict": replace(UNKNOWN, word=Word.UNTESTED)},
    ],
)
def test_of_any_other_run_nothing_is_said(changes: dict[str, Any]) -> None:
    assert said(**changes) is None


def test_a_pipeline_s_own_offsets_tell_when_an_attempt_first_committed() -> None:
    moves = [(1, 1.1, {}), (1, 9.0, {0: 60}), (2, 21.0, {0: 60}), (2, 121.0, {0: 200, 1: 40})]
    own = replace(PROGRESSED, positions=tuple(Position(attempt=a, at_s=s, next=n) for a, s, n in moves))
    history = [line for line in HISTORY if not isinstance(line.event, OfBatch)]
    told = said(history=history, progressed=own, run={})
    assert told is not None
    assert "Attempt 2 of the driver took 100 of these 120 s from its launch to its first commit." in told.summary


def test_an_attempt_that_never_committed_is_told() -> None:
    told = said(history=[line for line in HISTORY if not of_attempt(line, 2)])
    assert told is not None
    assert "Attempt 2 of the driver committed nothing in the 110 s after its launch." in told.summary


def test_a_restart_that_had_no_executor_says_so_and_gets_more_time_instead_of_fewer_records() -> None:
    told = said(starved={1: 2, 2: 3}, run={})
    assert told is not None
    slow = told.summary.index("Attempt 2 of the driver took 80 of these 120 s from its launch to its first commit.")
    why = "It had no executor yet: logs/driver-2.log says 3 times that no resources were accepted."
    assert told.summary[slow + 1] == why and "driver-1" not in " ".join(told.summary)
    assert told.cures == ["Raise `timeout` (here 120 s) by 80 s or more, as long as the restart took."]
    assert all(words(text) <= MOST_WORDS for text in [*told.summary, *told.cures])
    other = said(starved={1: 3, 2: 0}, run={})
    assert other is not None
    assert "executor" not in " ".join([*other.summary, *other.cures])


def test_a_run_that_ended_before_its_time_does_not_blame_it() -> None:
    told = said(plan=replace(PLAN, timeout_s=600.0), run={})
    assert told is not None
    assert not any("time was up" in text for text in told.summary)
    assert told.cures == []


def test_a_driver_that_was_given_up_is_not_given_more_time() -> None:
    told = said(history=with_ends((130.0, RestartsEnded(why="5 restarts"))), run={})
    assert told is not None
    assert "The driver died again and again by itself, and the harness no longer restarted it." in told.summary
    assert told.cures == ["Mend what ends the driver: the last lines of its log say what it was."]


def test_what_a_cluster_manager_says_of_an_end_that_no_fault_caused_is_told_with_it() -> None:
    history = with_ends(
        (125.0, AttemptDiagnosed(attempt=1, words="exitCode: 137", scheduled=True)),
        (126.0, AttemptEnded(attempt=2, status=1)),
        (127.0, AttemptDiagnosed(attempt=2, words="no such file")),
        (130.0, RestartsEnded(why="5 restarts")),
    )
    told = said(history=history, run={})
    assert told is not None
    assert [text for text in told.summary if "Diagnostics" in text] == ["Diagnostics of attempt 2: no such file"]


def test_a_program_that_ended_well_has_not_died_again_and_again() -> None:
    told = said(history=with_ends((130.0, RestartsEnded(why="it is FINISHED", well=True))), run={})
    assert told is not None
    assert "The program ended well, and there a program that did is not started again." in told.summary
    assert not any("again and again" in text for text in told.summary)
    (cure,) = told.cures
    assert cure.startswith("Take a stack that starts the program again")


def test_where_all_was_committed_the_reasons_are_pointed_to() -> None:
    done = replace(PROGRESSED, committed=dict(PROGRESSED.end))
    told = said(progressed=done)
    assert told is not None
    assert told.summary[0] == "All 400 records read back from the source were committed; the reasons say what was open."
    assert told.facts == []


def test_as_many_partitions_as_cores_are_nothing_to_change() -> None:
    few = RUN | {"outcome": {"stateful": [{"checkpoint": "checkpoint", "shuffle_partitions": 2}]}}
    told = said(run=few)
    assert told is not None
    assert not any("shuffle" in text for text in [*told.summary, *told.cures])


@pytest.mark.parametrize("run", [{}, {"outcome": []}, {"outcome": {"stateful": 7}}, {"spark": 3, "outcome": RUN}])
def test_what_the_folder_does_not_hold_is_not_told(run: dict[str, Any]) -> None:
    told = said(run=run, plan=claims.UNPLANNED, counts=None, history=[])
    assert told == NotCaughtUp(summary=[], facts=[], cures=[])


OFFSETS = 'v1\n{{"batchWatermarkMs":0,"conf":{}}}\n{{"orders":{{"0":1}}}}\n'


@pytest.mark.parametrize(
    ("conf", "state", "count"),
    [
        ('{"spark.sql.shuffle.partitions":"200"}', True, 200),
        ('{"spark.sql.shuffle.partitions":"200"}', False, None),
        ("{}", True, None),
        ("7", True, None),
        ('{"spark.sql.shuffle.partitions":"many"}', True, None),
    ],
)
def test_the_offset_log_tells_over_how_many_partitions_state_is_kept(
    tmp_path: Path, conf: str, state: bool, count: int | None
) -> None:
    assert shuffle_partitions(tmp_path) is None
    if state:
        (tmp_path / "state").mkdir()
    assert shuffle_partitions(tmp_path) is None
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text(OFFSETS.format("{}"))
    (tmp_path / "offsets" / "10").write_text(OFFSETS.format(conf))
    assert shuffle_partitions(tmp_path) == count


STARVED = (
    "26/11/26 11:34:32 WARN TaskSchedulerImpl: Initial job has not accepted any resources; check your cluster UI to "
    "ensure that workers are registered and have sufficient resources\n"
)


def test_page_and_terminal_say_it_of_a_stored_run(tmp_path: Path) -> None:
    folder = sample.stored(tmp_path, UNKNOWN, asked=replace(sample.scenario(), timeout_s=120.0))
    read = histories.lines((200.0, ProgressRead(progressed=PROGRESSED)))
    folder.history.write_text(sample.written([*HISTORY, *read]), encoding="utf-8")
    places = [(partition, offset) for partition, end in PROGRESSED.end.items() for offset in range(end)]
    folder.source.parent.mkdir(exist_ok=True)
    columns = {"partition": [p for p, _ in places], "offset": [o for _, o in places]}
    pq.write_table(pa.table(columns), folder.source)
    folder.save(1, run=RUN)
    (folder.logs / "driver-2.log").write_text(STARVED * 2)
    (folder.logs / "driver-3.log").symlink_to(folder.logs / "driver-2.log")
    left = "160 of 400 records in the source were not committed when the sinks were last read."
    page = render.write(folder.path).read_text()
    assert "logs/driver-2.log says 2 times that no resources were accepted" in page
    assert render.write(folder.path).read_text() == page
    assert left in page and "What to change" in page and "rows expected, of the committed records alone" in page
    assert run_text.left(UNKNOWN, folder.path)[0] == left
    assert (
        run_text.left(sample.verdict(), folder.path)
        == run_text.left(UNKNOWN, tmp_path)
        == run_text.left(UNKNOWN, None)
        == []
    )
