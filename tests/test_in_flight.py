"""What a pipeline that manages its own offsets had in flight: its saved offsets and its sink say it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.checkers.offset_ranges import OffsetRange
from harness.judge.exposure import EARLY, PLANNED, WRITING, WRITTEN, exposed
from harness.scenario import Harm
from harness.scenario.impact import Impact
from tests.folders import TOTALS
from tests.scales import Make, batch, benches, injected, injection, progress, upto

OPEN: dict[str, Any] = {"writing": {"0": ("insert into t",)}}
SAVED = progress(2, 2, own=True, batch=None, checkpoint="")
"""Two offset ranges saved, and nothing more taken. An offset range has five records of each of two partitions."""
TAKEN = progress(3, 1, own=True, batch=None, checkpoint="")
"""One offset range saved, and two taken next at once."""


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    yield from benches(tmp_path)


@pytest.mark.parametrize(
    "part",
    [
        (),
        (OffsetRange(0, 5, 10), OffsetRange(1, 5, 8)),
        (OffsetRange(0, 5, 8), OffsetRange(1, 5, 10)),
        (OffsetRange(0, 5, 7), OffsetRange(0, 9, 10), OffsetRange(1, 5, 10)),
    ],
)
def test_what_saved_offsets_call_done_and_the_sink_lacks_was_in_flight(
    make: Make, part: tuple[OffsetRange, ...]
) -> None:
    bench = make()
    out = injected(bench, bench.rows(*batch(0), *part), SAVED, scale=bench.scale(bench.rows(without=batch(1))))
    assert out.point == EARLY
    assert bench.scale().keys(out.incomplete) >= bench.scale().keys(batch(1)) - bench.scale().keys(part)


def test_what_comes_later_though_no_attempt_reads_it_again_was_late(make: Make) -> None:
    bench = make()
    out = injected(bench, bench.first(1), SAVED)
    assert (out.incomplete, out.exposures) == ((), ())


@pytest.mark.parametrize(
    ("part", "high"),
    [
        ((*batch(1), OffsetRange(0, 10, 12)), {0: 12, 1: 10}),
        ((OffsetRange(0, 5, 7), OffsetRange(1, 5, 14)), {0: 7, 1: 14}),
        ((OffsetRange(0, 6, 7),), {0: 7, 1: 5}),
        ((*batch(1), *batch(2)), upto(3)),
        ((), upto(3)),
    ],
)
def test_what_it_took_next_is_bounded_by_the_last_record_in_the_sink(
    make: Make, part: tuple[OffsetRange, ...], high: dict[int, int]
) -> None:
    bench = make()
    rows = bench.rows(*batch(0), *part)
    out, writes = injected(bench, rows, TAKEN), injected(bench, rows, TAKEN, **OPEN)
    assert out.progress is not None and out.progress.high == high
    assert writes.progress == TAKEN, "an open transaction may hold more than can be seen"


def test_a_total_does_not_bound_it(make: Make) -> None:
    bench = make(TOTALS)
    assert injected(bench, bench.first(2), TAKEN).progress == TAKEN


def test_a_batch_that_is_whole_is_exposed_to_reprocessing_alone(make: Make) -> None:
    bench = make()
    out = injected(bench, bench.first(2), TAKEN)
    assert (out.point, [exposure.harm for exposure in out.exposures]) == (WRITTEN, [Harm.REPETITION])
    part = injected(bench, bench.rows(*batch(0), batch(1)[0]), progress())
    assert (part.point, [exposure.harm for exposure in part.exposures]) == (WRITING, [Harm.REPETITION, Harm.LOSS])


@pytest.mark.parametrize(
    ("snapshot", "harms"),
    [
        ({}, [Harm.LOSS]),
        ({**OPEN, "left": {"0": ("insert into t",)}}, [Harm.REPETITION, Harm.LOSS]),
        ({**OPEN, "left": {}}, [Harm.LOSS]),
    ],
    ids=["nothing written", "a transaction is open", "it was rolled back"],
)
def test_a_task_that_is_tried_again_may_have_had_the_open_transaction(
    make: Make, snapshot: dict[str, Any], harms: list[Harm]
) -> None:
    bench = make()
    outcome = injection(None).outcome
    lived = replace(outcome, evidence=replace(outcome.evidence, driver_status=None))
    struck = injection(bench.held(bench.first(1)), outcome=lived, **snapshot)
    struck = replace(struck, impact=Impact.EXECUTORS_KILLED, swept=True)
    out = exposed(bench.scale(), struck, [progress(next=None)], many=1, until=None, executions=())
    assert [exposure.harm for exposure in out.exposures] == harms


@pytest.mark.parametrize(
    ("left", "there", "harms"),
    [(OPEN["writing"], (), []), ({}, (), [Harm.LOSS]), ({}, (batch(1)[0],), [])],
    ids=["it is open still", "its server ended it", "an executor committed it"],
)
def test_a_pause_that_outlasts_its_transaction_interrupts_the_batch(
    make: Make, left: Mapping[str, tuple[str, ...]], there: tuple[OffsetRange, ...], harms: list[Harm]
) -> None:
    """Its driver may write it again, as a program that gets the server's error should: nothing shows that in Spark."""
    bench = make()
    outcome = injection(None).outcome
    lived = replace(outcome, evidence=replace(outcome.evidence, driver_status=None))
    resuming = bench.held(bench.rows(*batch(0), *there))
    paused = injection(bench.held(bench.first(1)), resuming, outcome=lived, **OPEN)
    assert paused.restart is not None
    late = replace(paused.restart, snapshot=replace(paused.restart.snapshot, writing=left))
    paused = replace(paused, restart=late, impact=Impact.DRIVER_PAUSED)
    out = exposed(bench.scale(), paused, [progress(next=None)], many=1, until=None, executions=())
    assert [exposure.harm for exposure in out.exposures] == harms


def test_a_driver_that_was_paused_exposes_nothing(make: Make) -> None:
    bench = make()
    outcome = injection(None).outcome
    lived = replace(outcome, evidence=replace(outcome.evidence, driver_status=None))
    still = replace(injection(bench.held(bench.first(1)), outcome=lived), impact=Impact.DRIVER_PAUSED)
    for far in (progress(), TAKEN):
        out = exposed(bench.scale(), still, [far], many=1, until=None, executions=())
        assert (out.point, out.exposures, out.incomplete) == (PLANNED, (), ())
        assert out.why == "the driver lived, and nothing shows that it ran what was in flight again"
    done = exposed(bench.scale(), still, [progress(2, 2)], many=1, until=None, executions=())
    assert done.why == "every planned batch was committed: nothing was in flight"
