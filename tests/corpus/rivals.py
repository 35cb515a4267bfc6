"""Items 3 and 4: what comes to the same, where no number of a batch says which slice it was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.scenario import Guarantee, Kind
from harness.snapshot import Batch, Position, Query
from tests.corpus.case import adversary, held, unknown, violated, void
from tests.corpus.counters import COUNTED, COUNTS, OPEN, counting
from tests.corpus.run_builder import RunBuilder, blame, query, state
from tests.folders import PER_RECORD, TOTALS, TYPES

DUPLICATED, WRONG = Kind.DUPLICATED, Kind.WRONG_AGGREGATE
SAVED = blame(None, point="failpoint saved", attempt=2)


def by_saved_offsets(run: RunBuilder, *sizes: int) -> None:
    """The pipeline keeps its offsets itself, and was killed in the first slice and in the second."""
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


@adversary(3, violated(WRONG, 2, fits=None), twin=unknown(OPEN, kinds={WRONG: 2}, faults=(SAVED,), fits=()))
def slices_of_saved_offsets(run: RunBuilder) -> Iterator[str]:
    """The hit slice came once, and a later one was lost."""
    by_saved_offsets(run, 2, 5, 3, 8)
    run.tables = [run.rows((0, 14), (20, 36))]
    run.calm()
    yield "the last one was doubled: the totals are higher by just the hit slice"
    run.tables = [run.rows((0, 14), (20, 36), again=[(20, 36)])]


AVERAGE = replace(
    TOTALS,
    effect="select account, count(*) as n, sum(amount) as total, avg(amount) as mean from ledger group by account",
)


def averaged(run: RunBuilder, *sizes: int) -> None:
    """Killed before batch 0 wrote, and when batch 1 had. All records of a slice have the same amount."""
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
    unknown(OPEN, kinds={WRONG: 2}, faults=(blame(1, attempt=2),), fits=(), batches=(1,)),
    twin=violated(WRONG, 2, fits=None),
)
def an_average_beside_the_totals(run: RunBuilder) -> Iterator[str]:
    """An average is no sum of what the batches gave, so no batch explains it: that says nothing of the totals."""
    averaged(run, 2, 5, 3, 8)
    run.tables = [run.rows((0, 14), (20, 36), again=[(20, 36)])]
    run.calm()
    yield "none was doubled"
    run.tables = [run.rows((0, 14), (20, 36))]


def in_two_checkpoints(run: RunBuilder, *sizes: int) -> None:
    """The second attempt has a checkpoint of its own, and goes on with the hit batch."""
    counting(run, *sizes)
    ends = run.ends
    first = (
        Batch(batch=0, ranges={0: (0, ends[0])}, committed=True),
        Batch(batch=1, ranges={0: (ends[0], ends[1])}, committed=False),
    )
    one = Query(checkpoint="checkpoints/1", batches=first, first={1: 0})
    run.queries = [one, query("checkpoints/2", *ends[1:], start=ends[0], first={2: 0})]
    run.batches = list(first)
    there = (state("checkpoints/1", planned=(2, ends[1]), committed=(1, ends[0])),)
    run.injection(1, point="after row 2", checkpoint="checkpoints/1", again=None, holds=ends[1], states=there)


@adversary(4, void("gives the same totals"), twin=held("1 repetition"))
def a_slice_of_another_checkpoint(run: RunBuilder) -> Iterator[str]:
    """The hit slice is counted twice, and one of the same size, which the second checkpoint read, is lost."""
    in_two_checkpoints(run, 2, 3, 3, 10)
    run.tables = [run.rows((0, 10), (16, 36), again=[(4, 10)])]
    yield "the slices are of unequal sizes, and nothing is wrong"
    run.steps, run.moments = [], []
    in_two_checkpoints(run, 2, 3, 4, 9)
    run.tables = []


MOVES = replace(PER_RECORD, target="moves", effect="select account, amount from ledger", key=())


@adversary(4, void("gives the same totals"), twin=held("1 repetition"))
def rows_without_an_identity(run: RunBuilder) -> Iterator[str]:
    """The sink has account and amount and no number of the payment. The hit batch is there twice, and one that looks
    the same is lost."""
    run.records = [{"id": i, "account": f"a{i % 2}", "amount": "1.00"} for i in range(40)]
    run.sink(MOVES, types=[[("account", "text", "text"), ("amount", "numeric", "number")]])
    run.batch_sizes(6, 10, 10, 14)
    run.injection(1)
    run.tables = [run.rows((0, 16), (26, 40), again=[(6, 16)])]
    yield "the batches are of unequal sizes, and nothing is wrong"
    run.batch_sizes(6, 10, 12, 12)
    run.tables = []


@adversary(3, void("gives the same totals"), twin=held("1 repetition"))
def totals_by_a_query_of_its_own(run: RunBuilder) -> Iterator[str]:
    """Two queries side by side number their batches each for itself: the totals' slices are those of their own."""
    counting(run, 2, 3, 3, 10)
    run.sink(replace(COUNTS, query="totals"), types=[COUNTED])
    run.queries = [query(f"checkpoints/{name}", *run.ends, first={1: 0, 2: 1}) for name in ("totals", "audit")]
    run.batches = []
    there = tuple(state(each.checkpoint, planned=(2, 10), committed=(1, 4)) for each in run.queries)
    run.injection(1, checkpoint="checkpoints/totals", states=there)
    yield "the batches are of unequal sizes"
    counting(run, 2, 3, 4, 9)
    run.sink(replace(COUNTS, query="totals"), types=[COUNTED])
    run.queries = [query(f"checkpoints/{name}", *run.ends, first={1: 0, 2: 1}) for name in ("totals", "audit")]


@adversary(5, violated(WRONG, 2, batches=(0, 1, 2, 3, 4), fits=(blame(1), blame(2, attempt=2))), twin=violated(
    WRONG, 2, blame(1), blame(2, attempt=2), batches=(1, 2)
))  # fmt: skip
def a_batch_that_nobody_hit_was_doubled_beside_one(run: RunBuilder) -> Iterator[str]:
    """The first fault doubled its batch. The second one did nothing; later a batch came twice that nobody hit, as
    large as the second one."""
    counting(run, 2, 3, 4, 5, 4)
    ends = [0, *run.ends]
    run.injection(1)
    run.injection(2)
    doubled = (ends[1], ends[2])
    run.found(2, tables=[run.rows((0, ends[3]), again=[doubled])])
    run.tables = [run.rows((0, ends[5]), again=[doubled, (ends[4], ends[5])])]
    run.calm()
    yield "it is of another size, and the second one was doubled"
    run.batch_sizes(4, 6, 8, 10, 2)
    run.found(2, tables=[run.rows((0, 18), again=[(4, 10)])])
    run.tables = [run.rows((0, 30), again=[(4, 10), (10, 18)])]


SALES = replace(PER_RECORD, effect="select account, amount from ledger", key=("account",))


@adversary(5, violated(DUPLICATED, 1, batches=(0, 1, 2, 3), fits=(blame(1),)), twin=violated(
    DUPLICATED, 1, blame(1), batches=(0, 1, 2, 3)
))  # fmt: skip
def sales_without_an_id(run: RunBuilder) -> Iterator[str]:
    """Two prices, three accounts: each batch gives each row. The hit batch came once, and one record of another one
    twice."""
    run.sink(SALES, types=[TYPES["payments"][1:]])
    for each in run.records:
        each |= {"account": f"a{each['id'] % 3}", "amount": "4.99" if each["id"] % 2 else "9.99"}
    run.batch_sizes(6, 9, 7, 14)
    run.injection(1)
    run.tables = [run.rows((0, 36), again=[(30, 31)])]
    run.calm()
    yield "it was a record of the hit batch, of a price that no other has"
    run.records[10]["amount"] = "1.99"
    run.found(tables=[run.rows((0, 15))])
    run.tables = [run.rows((0, 36), again=[(10, 11)])]
