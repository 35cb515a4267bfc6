"""Items 3, 4, 9: a pipeline that manages its own offsets. They say what it saved, and not what it had in flight."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.scenario import Guarantee, Kind
from harness.snapshot import RESTART, Position
from tests.corpus.case import adversary, held, untested, violated
from tests.corpus.counters import counting
from tests.corpus.run_builder import RunBuilder, blame
from tests.folders import TOTALS

ROWS = "after 15 rows"
HALF = blame(None, point=ROWS)


def by_hand(run: RunBuilder, position: int, *moves: int, point: str = ROWS, holds: int) -> None:
    """Killed while `position` was saved. The next attempt saved `moves` one after the other."""
    run.claim(pipeline=replace(run.scenario.pipeline, progress="group"))
    run.injection(None, point=point, checkpoint="", position={0: position}, holds=holds, again=None)
    run.batches = []
    before = [offset for offset in (0, 10, 20, 30) if offset <= position]
    run.positions = [
        *(Position(attempt=1, at_s=0.1 * place, next={0: at}) for place, at in enumerate(before, 1)),
        *(Position(attempt=2, at_s=4.0 + place, next={0: at}) for place, at in enumerate((position, *moves))),
    ]


@adversary(4, held("1 repetition"))
def a_range_doubled_and_its_like_lost(run: RunBuilder) -> None:
    """All offset ranges come to the same. One of them doubled and another one lost gives the totals of an honest
    run."""
    counting(run, 5, 5, 5, 5)
    by_hand(run, 10, 20, 30, 40, holds=20)


@adversary(9, untested("at-least-once allows it", shown=("1 repetition",)), twin=held("1 loss", "1 repetition"))
def the_next_range_is_longer(run: RunBuilder) -> Iterator[str]:
    """All of the offset range in flight was in the sink. The next attempt took it together with what was sent
    meanwhile, and only that was not there."""
    run.claim(guarantee=Guarantee.AT_LEAST_ONCE)
    by_hand(run, 10, 40, holds=20)
    yield "somebody was still writing"
    run.found(writing={"0": ("insert into payments",)})


@adversary(
    9,
    untested(
        "step 1 (`kill driver`) does not count for postgres payments:",
        shown=("1 loss",),
        kinds={Kind.LOST: 1},
        faults=(blame(None, point="after 15 rows"),),
        fits=None,
    ),
)
def offsets_saved_before_rows_that_are_written_one_by_one(run: RunBuilder) -> None:
    """No transaction is open between two rows. One row that is missing may be all that was left, or be missing for any
    reason: nothing was tested, and without faults it arrives."""
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    by_hand(run, 20, 30, 40, holds=19)
    run.tables = [run.rows((0, 19), (20, 40))]
    run.calm()


@adversary(
    9,
    violated(Kind.LOST, 5, batches=None, fits=None, without_faults=True),
    twin=untested(
        "step 1 (`kill driver`) does not count for postgres payments:",
        shown=("1 loss",),
        kinds={Kind.LOST: 5},
        faults=(blame(None, point="after 15 rows"),),
        fits=None,
    ),
)
def offsets_saved_before_rows_in_another_order(run: RunBuilder) -> Iterator[str]:
    """The program sorts an offset range by account before it writes it row by row, and some of them are missing: those
    that it loses without faults too."""
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    by_hand(run, 20, 30, 40, holds=10)
    there = [row for row in run.rows((0, 20)) if row[0] not in {"10", "13", "14", "17", "18"}]
    run.found(tables=[there])
    run.tables = [there + run.rows((20, 40))]
    run.calm(*[run.tables] * 3)
    yield "without faults they arrive"
    run.calm()


DOUBLES = replace(TOTALS, expected="select account, sum(cast(amount as double)) as total from ledger group by account")


@adversary(
    2, untested("step 1 (`kill driver`) does not count for postgres totals:"), twin=held("1 loss", "1 repetition")
)
def doubles_between_two_ranges(run: RunBuilder) -> Iterator[str]:
    """The pipeline manages its own offsets, and was killed between two offset ranges. No reading tells one sum of
    doubles from another, and nobody was writing."""
    run.sink(DOUBLES, types=[[("account", "text", "text"), ("total", "double precision", "float")]])
    run.batch_sizes(6, 14, 12, 8)
    by_hand(run, 6, 20, 32, 40, holds=6)
    yield "somebody was"
    run.found(writing={"0": ("insert into totals",)})


@adversary(2, untested("step 1 (`kill driver`) does not count for postgres payments:"), twin=held("1 loss"))
def a_heartbeat_beside_the_sink(run: RunBuilder) -> Iterator[str]:
    """Killed between two offset ranges. A connection that has written its heartbeat is idle in transaction: that says
    nothing of an offset range."""
    by_hand(run, 10, 20, 30, 40, point="failpoint idle", holds=10)
    beside = {"": ("update heartbeat set at = now()",)}
    run.found(writing=beside, left=beside)
    yield "it had written into the table of offsets"
    run.found(writing={"offsets": ("update progress",)}, left={})


@adversary(2, untested("step 1 (`kill driver`) does not count for postgres payments:"), twin=held("1 repetition"))
def the_next_attempt_before_it_saves(run: RunBuilder) -> Iterator[str]:
    """Killed between two offset ranges, and nobody of the dead attempt was left. Before the next one had saved any
    offsets, half of its first offset range was in the sink: it writes from a process that shows nowhere else."""
    by_hand(run, 10, 20, 30, 40, point="failpoint idle", holds=10)
    run.moments.append(replace(run.moments[0], moment=RESTART, holds=15, at_s=3.5))
    run.edits = {"1-injection": {"alive": []}}
    yield "an executor of the dead attempt was"
    run.edits = {"1-injection": {"alive": ["4712"]}}


@adversary(2, untested("step 1 (`kill driver`) does not count for postgres payments:"), twin=held("1 repetition"))
def offsets_that_arrive_after_the_injection(run: RunBuilder) -> Iterator[str]:
    """The rows were in the sink, and the commit of their offsets was on its way: the next attempt began beyond them."""
    by_hand(run, 10, 20, 30, 40, holds=20)
    run.positions = [
        Position(attempt=attempt, at_s=at_s, next={0: at})
        for attempt, at_s, at in ((1, 0.1, 0), (1, 0.2, 10), (2, 4.0, 20), (2, 5.0, 30), (2, 6.0, 40))
    ]
    yield "it did not arrive: they were taken again"
    run.positions[2] = replace(run.positions[2], next={0: 10})
    run.positions.insert(3, Position(attempt=2, at_s=4.5, next={0: 20}))


SAVED = blame(None, point="failpoint saved")
LATER = blame(None, point="after 9.0 s", attempt=2)


@adversary(5, violated(Kind.LOST, 10, SAVED, batches=()), twin=violated(Kind.LOST, 10, LATER, batches=()))
def an_attempt_that_saved_nothing(run: RunBuilder) -> Iterator[str]:
    """Offsets are saved before the sink has the offset range, and the first fault lost one. The second one struck an
    attempt that had not moved them: what they call done had long been lost."""
    run.claim(pipeline=replace(run.scenario.pipeline, progress="group"))
    run.injection(None, point="failpoint saved", checkpoint="", position={0: 20}, holds=10, again=None)
    run.injection(None, point="after 9.0 s", checkpoint="", position={0: 20}, tables=[run.rows((0, 10))], again=None)
    run.batches = []
    saved = ((1, 0.1, 0), (1, 0.2, 10), (1, 0.3, 20), (2, 4.0, 20), (3, 7.0, 20), (3, 8.0, 30), (3, 9.0, 40))
    run.positions = [Position(attempt=each, at_s=at_s, next={0: at}) for each, at_s, at in saved]
    run.tables = [run.rows((0, 10), (20, 40))]
    run.calm()
    yield "it had moved them once more, and the first fault lost nothing"
    run.found(2, position={0: 30}, tables=[run.rows((0, 20))])
    run.positions = [*run.positions[:4], Position(attempt=2, at_s=5.0, next={0: 30}), *run.positions[5:]]
    run.found(1, holds=20)
    run.tables = [run.rows((0, 20), (30, 40))]
