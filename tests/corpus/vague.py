"""Items 3 and 9: what a row hides under a weaker guarantee, where it hangs on other records or stands for several."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.scenario import Do, Evidence, Fault, Guarantee, Kind, Sink
from tests.corpus.case import adversary, held, unknown, violated
from tests.corpus.scene import Scene, blame, query, state
from tests.folders import PER_RECORD, STEP, TOTALS

LOST, DUPLICATED, CORRUPTED, WRONG = Kind.LOST, Kind.DUPLICATED, Kind.CORRUPTED, Kind.WRONG_AGGREGATE
OPEN = "nothing shows which explanation is the right one"
LATE = blame(1, window="offsets-written", attempt=2)
COUNTED = [("account", "text", "text"), ("n", "bigint", "number")]


def counts(having: str) -> Sink:
    effect = f"select account, count(*) as n from ledger group by account {having}"
    return replace(TOTALS, effect=effect, target="alerts")


def sole(run: Scene) -> None:
    """Each record has an account of its own; under at-most-once, batch 1 is struck before it wrote."""
    run.records = [{**each, "account": f"k{each['id']}"} for each in run.records]
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    run.batch_sizes(6, 14, 12, 8)
    run.strike(0)
    run.strike(1, window="offsets-written", holds=6)
    run.calm()


@adversary(9, unknown(OPEN, kinds={LOST: 14}, faults=None, fits=None), twin=held(
    "1 repetition", "2 loss", kinds={LOST: 14}, faults=(LATE,)
))  # fmt: skip
def a_repetition_takes_rows_away(run: Scene) -> Iterator[str]:
    """Accounts that were seen once. The struck batch was counted twice, so its accounts are gone: a repetition that
    looks like the loss which at-most-once allows."""
    run.sink(counts("having count(*) = 1"), types=[COUNTED])
    sole(run)
    run.tables = [run.rows((0, 40), again=[(6, 20)])]
    yield "no account leaves the table again, and the batch is lost"
    run.sink(counts(""), types=[COUNTED])
    run.tables = [run.rows((0, 6), (20, 40))]


LOG = replace(PER_RECORD, effect="select account, 'ok' as status from ledger", key=(), target="log")
TOLD = replace(LOG, effect="select id, account, 'ok' as status from ledger", key=("id",))
LOGGED = [("account", "text", "text"), ("status", "text", "text")]


def logged(run: Scene) -> None:
    """Under at-least-once, batch 1 is struck before it wrote, batches 2 and 3 when they had."""
    run.claim(guarantee=Guarantee.AT_LEAST_ONCE)
    run.records = [{**each, "account": f"a{each['id'] % 2}"} for each in run.records]
    run.batch_sizes(6, 14, 12, 8)
    run.strike(1, window="offsets-written", holds=6)
    run.strike(2)
    run.strike(3)
    run.calm()


@adversary(3, unknown(OPEN, kinds={DUPLICATED: 2}, faults=None, fits=None), twin=violated(
    LOST, 14, kinds={LOST: 14, DUPLICATED: 20}, faults=None, fits=None
))  # fmt: skip
def rows_without_identity(run: Scene) -> Iterator[str]:
    """Batch 1 is lost, two larger ones came twice: of each row there are more than there should be."""
    run.sink(LOG, types=[LOGGED])
    logged(run)
    run.tables = [run.rows((0, 6), (20, 40), again=[(20, 32), (32, 40)])]
    yield "the rows have an id"
    run.sink(TOLD, types=[[("id", "bigint", "number"), *LOGGED]])
    run.tables = [run.rows((0, 6), (20, 40), again=[(20, 32), (32, 40)])]


JOINED = replace(
    PER_RECORD,
    effect="select o.id, o.account, p.amount from ledger o left join ledger p on p.id = o.id + 20 where o.id < 20",
)


@adversary(9, unknown(OPEN, kinds={CORRUPTED: 10}, faults=None, fits=None), twin=violated(
    CORRUPTED, 10, faults=None, fits=None
))  # fmt: skip
def an_order_without_its_payment(run: Scene) -> Iterator[str]:
    """Orders joined with payments, which came later. At-most-once allows the loss of the struck batch of payments; the
    orders stay, with NULL in their place."""
    run.sink(JOINED)
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    run.strike(1)
    run.strike(2, window="offsets-written", holds=20)
    run.tables = [run.rows((0, 20), (30, 40))]
    run.calm()
    yield "each row comes from one record"
    run.sink(PER_RECORD)
    run.tables = [[(i, a, None if 20 <= int(i or 0) < 30 else m) for i, a, m in run.rows((0, 40))]]


GAPS = replace(
    TOTALS,
    effect="""select account, count(*) as n, (max(id // 4) - min(id // 4) + 1 - count(distinct id // 4))::bigint as gaps
from ledger group by account""",
)
COUNT = replace(
    GAPS, effect="select account, count(*) as n, count(*) filter (where id >= 20) as gaps from ledger group by 1"
)
GAPPED = [*COUNTED, ("gaps", "bigint", "number")]


@adversary(9, unknown(OPEN, kinds={WRONG: 4}, faults=None, fits=None), twin=violated(WRONG, 4, faults=None, fits=None))
def a_column_that_grows_by_a_loss(run: Scene) -> Iterator[str]:
    """The number of missing sequence numbers: zero of any single record, zero in all, and more once a batch is lost."""
    run.sink(GAPS, types=[GAPPED])
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    run.batch_sizes(6, 14, 12, 8)
    run.strike(0)
    run.strike(1, window="offsets-written", holds=6)
    run.tables = [run.rows((0, 6), (20, 40))]
    run.calm()
    yield "it is a count, and other records went into it twice"
    run.sink(COUNT, types=[GAPPED])
    run.tables = [run.rows((0, 6), (20, 40), again=[(20, 32)])]


DISCONNECT = replace(STEP, name="disconnect driver", do=Fault(kind=Do.DISCONNECT_DRIVER))


@adversary(9, unknown(OPEN, kinds={LOST: 15}, batches=(1, 2), faults=None, fits=None), twin=violated(
    LOST, 15, batches=(1, 2), faults=None, fits=None
))  # fmt: skip
def a_driver_that_lived_through_a_cut_and_died_later(run: Scene) -> Iterator[str]:
    """At-most-once, without a checkpoint that lasts: the program died of the cut, after the snapshot, and the next
    attempt began at the end of the topic. How much lay in between, nobody saw."""
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    one = state("checkpoints/1", planned=(2, 20), committed=(1, 10))
    run.strike(1, window="after 15 rows", checkpoint="checkpoints/1", again=None, holds=15, states=(one,))
    run.claim(schedule=(DISCONNECT,))
    run.steps[0] = replace(run.steps[0], name="disconnect driver", evidence=Evidence(note="cut off"))
    run.queries = [query("checkpoints/1", 10, 20, first={1: 0}), query("checkpoints/2", 40, start=30, first={2: 0})]
    run.tables = [run.rows((0, 15), (30, 40))]
    run.calm()
    yield "the attempt that was hurt went on to the end"
    run.queries = [query("checkpoints/1", 10, 20, 40, first={1: 0})]
