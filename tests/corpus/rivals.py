"""Items 3 and 4: what comes to the same, where no number of a batch says which offset range it was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.scenario import Guarantee, Kind
from harness.snapshot import Position
from tests.corpus.case import adversary, held, violated
from tests.corpus.counters import counting
from tests.corpus.run_builder import RunBuilder, blame
from tests.folders import PER_RECORD, TOTALS, TYPES

DUPLICATED, WRONG = Kind.DUPLICATED, Kind.WRONG_AGGREGATE


def by_saved_offsets(run: RunBuilder, *sizes: int) -> None:
    """The pipeline manages its own offsets, and was killed in the first offset range and in the second."""
    counting(run, *sizes)
    one, two, three, four = run.ends
    run.claim(guarantee=Guarantee.AT_LEAST_ONCE, pipeline=replace(run.scenario.pipeline, progress="group"))
    run.steps, run.moments, run.batches = [], [], []
    for holds, writing in ((one, {"0": ("insert into totals",)}), (two, {})):
        run.injection(
            None, point="failpoint saved", checkpoint="", position={0: one}, holds=holds, again=None, writing=writing
        )
    seen = [(1, 0.1, 0), (1, 0.2, one), (2, 4.0, one), (3, 7.0, one), (3, 8.0, two), (3, 8.5, three), (3, 9.0, four)]
    run.positions = [Position(attempt=attempt, at_s=at_s, next={0: place}) for attempt, at_s, place in seen]


@adversary(
    3,
    violated(WRONG, 2, fits=None),
    twin=held(
        "1 loss",
        "2 repetition",
        kinds={Kind.WRONG_AGGREGATE: 2},
        faults=(blame(None, point="failpoint saved", attempt=2),),
    ),
)
def ranges_of_saved_offsets(run: RunBuilder) -> Iterator[str]:
    """The struck offset range came once, and a later one was lost."""
    by_saved_offsets(run, 2, 5, 3, 8)
    run.tables = [run.rows((0, 14), (20, 36))]
    run.calm()
    yield "the last one was doubled: the totals are higher by just the struck offset range"
    run.tables = [run.rows((0, 14), (20, 36), again=[(20, 36)])]


AVERAGE = replace(
    TOTALS,
    expected="select account, count(*) as n, sum(amount) as total, avg(amount) as mean from ledger group by account",
)


def averaged(run: RunBuilder, *sizes: int) -> None:
    """Killed before batch 0 wrote, and when batch 1 had. All records of an offset range have the same amount."""
    counting(run, *sizes)
    run.sink(AVERAGE, types=[[*TYPES["totals"], ("mean", "double precision", "float")]])
    amounts = [
        amount for amount, size in zip(("7", "2", "1", "2", "1"), (2, 5, 3, 5, 9), strict=True) for _ in range(size)
    ]
    run.records = [{"id": i, "account": f"a{i % 2}", "amount": amounts[i // 2]} for i in range(2 * sum(sizes))]
    run.claim(guarantee=Guarantee.AT_LEAST_ONCE)
    run.steps, run.moments = [], []
    run.injection(0, point="batch-planned", holds=0)
    run.injection(1)


@adversary(
    3,
    held(
        "1 loss",
        "2 repetition",
        kinds={Kind.WRONG_AGGREGATE: 2},
        faults=(blame(attempt=2),),
        batches=(0, 1, 2, 3),
    ),
    twin=violated(Kind.WRONG_AGGREGATE, 2, blame(attempt=2), fits=None),
)
def an_average_beside_the_totals(run: RunBuilder) -> Iterator[str]:
    """An average is no sum of what the batches gave, so no batch explains it: that says nothing of the totals."""
    averaged(run, 2, 5, 3, 8)
    run.tables = [run.rows((0, 14), (20, 36), again=[(20, 36)])]
    run.calm()
    yield "none was doubled"
    run.tables = [run.rows((0, 14), (20, 36))]


@adversary(
    5,
    violated(
        Kind.WRONG_AGGREGATE,
        2,
        blame(),
        blame(2, attempt=2),
        batches=(0, 1, 2, 3, 4),
    ),
)
def a_batch_that_no_fault_struck_was_doubled_beside_one(run: RunBuilder) -> None:
    """The first fault doubled its batch. The second one did nothing; later a batch came twice that no fault struck, as
    large as the second one."""
    counting(run, 2, 3, 4, 5, 4)
    ends = [0, *run.ends]
    run.injection(1)
    run.injection(2)
    doubled = (ends[1], ends[2])
    run.found(2, tables=[run.rows((0, ends[3]), again=[doubled])])
    run.tables = [run.rows((0, ends[5]), again=[doubled, (ends[4], ends[5])])]
    run.calm()


SALES = replace(PER_RECORD, expected="select account, amount from ledger", key=("account",))


@adversary(5, violated(Kind.DUPLICATED, 1, blame(), batches=(0, 1, 2, 3)))
def sales_without_an_id(run: RunBuilder) -> None:
    """Two prices, three accounts: each batch gives each row. The struck batch came once, and one record of another
    one twice."""
    run.sink(SALES, types=[TYPES["payments"][1:]])
    for each in run.records:
        each |= {"account": f"a{each['id'] % 3}", "amount": "4.99" if each["id"] % 2 else "9.99"}
    run.batch_sizes(6, 9, 7, 14)
    run.injection(1)
    run.tables = [run.rows((0, 36), again=[(30, 31)])]
    run.calm()
