"""Items 1, 2, 5, 6, 8: what is no trace of the struck batch. Rows that were made in advance, totals of another hop,
a snapshot of a program whose habit another snapshot shows, other events of the same keys, a pace that was declared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.scenario import Guarantee, Kind
from harness.snapshot import Position
from tests.corpus.case import adversary, held, inconclusive, untested, violated
from tests.corpus.own_offsets import by_hand
from tests.corpus.run_builder import RunBuilder, blame
from tests.corpus.stalled import STALLED, stall
from tests.folders import PER_RECORD, TOTALS

LOST, DUPLICATED, CORRUPTED = Kind.LOST, Kind.DUPLICATED, Kind.CORRUPTED
MADE = ("b", "0", "0")
"""A counter that was made before the first record of its account came."""
TIMED = "after 5.0 s"


def accounts(run: RunBuilder) -> None:
    """The first ten records are all of account a; b occurs from then on."""
    run.sink(TOTALS)
    for record in run.records:
        record["account"] = "b" if record["id"] >= 10 and record["id"] % 3 else "a"


@adversary(
    2, untested("step 1 (`kill driver`) does not count for postgres totals:"), twin=held("1 loss", "1 repetition")
)
def a_counter_made_in_advance(run: RunBuilder) -> Iterator[str]:
    """Killed between two offset ranges. The program makes a counter at zero for each account before it is needed."""
    accounts(run)
    by_hand(run, 10, 20, 30, 40, point=TIMED, holds=10)
    run.found(tables=[[*run.rows((0, 10)), MADE]])
    yield "two payments had gone into it"
    run.found(tables=[run.rows((0, 12))])


@adversary(2, untested("step 1 (`kill driver`) does not count for postgres payments:"), twin=held("1 repetition"))
def rows_made_in_advance(run: RunBuilder) -> Iterator[str]:
    """The table has a row for each payment that is due, and the program fills in the amounts. It was killed between two
    offset ranges."""
    by_hand(run, 10, 20, 30, 40, point=TIMED, holds=10)
    due = [(id_, account, "0.00") for id_, account, _ in run.rows((10, 40))]
    run.found(tables=[[*run.rows((0, 10)), *due]])
    yield "three had got theirs"
    run.found(tables=[[*run.rows((0, 13)), *due[3:]]])


@adversary(9, untested("at-most-once allows it", shown=("1 loss",)), twin=held("1 repetition"))
def a_counter_made_in_advance_at_a_kill_before_the_sink(run: RunBuilder) -> Iterator[str]:
    """Under at-most-once the driver was killed before the batch had written anything. The counter of an account that
    occurs in it first was made in advance."""
    accounts(run)
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    run.injection(1, point="batch-planned")
    run.found(tables=[[*run.rows((0, 10)), MADE]])
    yield "the batch was in the sink"
    run.found(tables=[run.rows((0, 20))])


@adversary(
    9,
    untested(
        "step 1 (`kill driver`) does not count for postgres payments:",
        shown=("1 loss",),
        kinds={Kind.CORRUPTED: 10},
        faults=(blame(point="batch-planned"),),
    ),
    twin=violated(Kind.CORRUPTED, 10, blame(point="batch-planned")),
)
def an_update_that_never_came(run: RunBuilder) -> Iterator[str]:
    """Under at-most-once the struck batch was to fill in ten amounts, and they stay as they were made."""
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    due = [(id_, account, "0.00") for id_, account, _ in run.rows((10, 40))]
    run.injection(1, point="batch-planned", tables=[[*run.rows((0, 10)), *due]])
    run.tables = [[*run.rows((0, 10)), *due[:10], *run.rows((20, 40))]]
    run.calm()
    yield "they were not there when the fault was injected"
    run.found(tables=[[*run.rows((0, 10)), *due[10:]]])


@adversary(
    2, untested("step 1 (`kill driver`) does not count for postgres totals:"), twin=held("1 loss", "1 repetition")
)
def totals_of_a_hop_with_ranges_of_its_own(run: RunBuilder) -> Iterator[str]:
    """A second program writes the totals in portions of its own, and has come to thirteen records of twenty. The first
    one was killed between two offset ranges."""
    run.sink(TOTALS)
    by_hand(run, 20, 32, 40, point=TIMED, holds=13)
    run.claim(quiet_period_s=5.0)
    yield "it has come to twenty-five, beyond what is saved"
    run.found(holds=25)


def struck_twice(run: RunBuilder) -> None:
    """The offset range from 10 to 20 is lost before any fault. Killed between two offset ranges, and again in the next
    one, of which some is in the sink."""
    run.claim(pipeline=replace(run.scenario.pipeline, progress="group"))
    run.batches = []
    run.injection(None, point=TIMED, checkpoint="", position={0: 20}, again=None, tables=[run.rows((0, 10))])
    there = run.rows((0, 10), (20, 25))
    run.injection(None, point="after 15 rows", checkpoint="", position={0: 20}, again=None, tables=[there])
    saved = [(1, 0.1, 0), (1, 0.2, 10), (1, 0.3, 20), (2, 4.0, 20), (3, 7.0, 20), (3, 8.0, 30), (3, 9.0, 40)]
    run.positions = [Position(attempt=attempt, at_s=at_s, next={0: next_}) for attempt, at_s, next_ in saved]
    run.tables = [run.rows((0, 10), (20, 40))]
    run.calm()


def struck_again(run: RunBuilder) -> None:
    """The same, and no row beyond what was saved."""
    run.found(2, tables=[run.rows((0, 10))])


@adversary(5, violated(Kind.LOST, 10, blame(None, point="after 5.0 s")))
def a_habit_that_another_snapshot_shows(run: RunBuilder) -> None:
    """Seen alone, the first snapshot is that of a program which saves its offsets before it writes. The second one has
    rows beyond the saved offsets: it writes first, and had lost the offset range before any fault was injected."""
    struck_twice(run)


@adversary(
    9,
    held("2 repetition", kinds={Kind.LOST: 10}, faults=(blame(None, point="after 5.0 s"),)),
    twin=untested("at-most-once allows it", shown=("1 loss",), kinds={LOST: 10}, faults=None, fits=None),
)
def a_loss_that_is_acquitted_by_a_habit(run: RunBuilder) -> Iterator[str]:
    """The same under at-most-once: the lost offset range was not in flight."""
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    struck_twice(run)
    yield "the second snapshot has no row beyond the saved offsets"
    struck_again(run)


@adversary(6, violated(Kind.DUPLICATED, 10, blame()))
def other_events_of_the_same_keys(run: RunBuilder) -> None:
    """`expected` counts insertions only. The payments of the struck batch are changed later, and the pipeline
    appends each change as a row. Without a baseline run nobody knows whose doing that is."""
    run.records = [{**record, "op": "insert"} for record in run.records[:30]]
    run.records += [{**record, "amount": "5.55", "op": "update"} for record in run.records[10:20]]
    run.columns = [*(run.columns or ()), {"name": "op", "type": "VARCHAR", "expression": "value ->> '$.op'"}]
    run.sink(replace(PER_RECORD, expected="select id, account, amount from ledger where op = 'insert'"))
    run.injection(1)
    inserted = run.rows((0, 30))
    run.tables = [[*inserted, *((id_, account, "5.55") for id_, account, _ in inserted[10:20])]]


@adversary(8, inconclusive("without faults it went 60 s without a commit"), twin=STALLED)
def a_pace_that_it_does_not_keep_without_faults(run: RunBuilder) -> Iterator[str]:
    """The program declares an interval of twenty seconds, and goes a minute without a commit without faults."""
    stall(run)
    run.claim(pipeline=replace(run.scenario.pipeline, interval_s=20.0))
    run.calm_gap_s = 60.0
    run.calm()
    yield "it keeps to what it declares"
    run.calm_gap_s = 5.0
