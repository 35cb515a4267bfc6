"""Items 3 and 9: what a row hides under a weaker guarantee, where it hangs on other records or stands for several."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.faults import fault
from harness.scenario import Evidence, Guarantee, Kind, Sink, Step
from tests.corpus.case import adversary, held, inconclusive, untested, violated
from tests.corpus.run_builder import CHECKPOINT, RunBuilder, blame, query
from tests.folders import PER_RECORD, STEP, TOTALS

LOST, DUPLICATED, CORRUPTED, WRONG = Kind.LOST, Kind.DUPLICATED, Kind.CORRUPTED, Kind.WRONG_AGGREGATE
LATE = blame(1, point="batch-planned", attempt=2)
COUNTED = [("account", "text", "text"), ("n", "bigint", "number")]


def counts(having: str) -> Sink:
    expected = f"select account, count(*) as n from ledger group by account {having}"
    return replace(TOTALS, expected=expected, target="alerts")


def sole(run: RunBuilder) -> None:
    """Each record has an account of its own; under at-most-once, batch 1 is struck before it wrote."""
    run.records = [{**each, "account": f"k{each['id']}"} for each in run.records]
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    run.batch_sizes(6, 14, 12, 8)
    run.injection(0)
    run.injection(1, point="batch-planned", holds=6)
    run.calm()


@adversary(
    9,
    inconclusive(
        "14 findings may hide what the guarantee forbids, or be what it",
        kinds={Kind.LOST: 14},
        faults=(blame(point="batch-planned", attempt=2),),
        fits=None,
    ),
    twin=held("1 repetition", "2 loss", kinds={LOST: 14}, faults=(LATE,)),
)
def a_repetition_takes_rows_away(run: RunBuilder) -> Iterator[str]:
    """Accounts that were seen once. The struck batch was counted twice, so its accounts are gone: a repetition that
    looks like the loss which at-most-once allows."""
    run.sink(counts("having count(*) = 1"), types=[COUNTED])
    sole(run)
    run.tables = [run.rows((0, 40), again=[(6, 20)])]
    yield "no account leaves the table again, and the batch is lost"
    run.sink(counts(""), types=[COUNTED])
    run.tables = [run.rows((0, 6), (20, 40))]


LOG = replace(PER_RECORD, expected="select account, 'ok' as status from ledger", key=(), target="log")
TOLD = replace(LOG, expected="select id, account, 'ok' as status from ledger", key=("id",))
LOGGED = [("account", "text", "text"), ("status", "text", "text")]


def logged(run: RunBuilder) -> None:
    """Under at-least-once, batch 1 is struck before it wrote, batches 2 and 3 when they had."""
    run.claim(guarantee=Guarantee.AT_LEAST_ONCE)
    run.records = [{**each, "account": f"a{each['id'] % 2}"} for each in run.records]
    run.batch_sizes(6, 14, 12, 8)
    run.injection(1, point="batch-planned", holds=6)
    run.injection(2)
    run.injection(3)
    run.calm()


@adversary(
    3,
    inconclusive(
        "2 findings may hide what the guarantee forbids, or be what it",
        kinds={Kind.DUPLICATED: 2},
        faults=(blame(3, attempt=3),),
        fits=None,
    ),
    twin=violated(LOST, 14, kinds={LOST: 14, DUPLICATED: 20}, faults=None, fits=None),
)
def rows_without_identity(run: RunBuilder) -> Iterator[str]:
    """Batch 1 is lost, two larger ones came twice: of each row there are more than there should be."""
    run.sink(LOG, types=[LOGGED])
    logged(run)
    run.tables = [run.rows((0, 6), (20, 40), again=[(20, 32), (32, 40)])]
    yield "the rows have an id"
    run.sink(TOLD, types=[[("id", "bigint", "number"), *LOGGED]])
    run.tables = [run.rows((0, 6), (20, 40), again=[(20, 32), (32, 40)])]


JOINED = replace(
    PER_RECORD,
    expected="select o.id, o.account, p.amount from ledger o left join ledger p on p.id = o.id + 20 where o.id < 20",
)


@adversary(
    9,
    inconclusive(
        "10 findings may hide what the guarantee forbids, or be what it", kinds={Kind.CORRUPTED: 10}, fits=None
    ),
    twin=violated(CORRUPTED, 10, faults=None, fits=None),
)
def an_order_without_its_payment(run: RunBuilder) -> Iterator[str]:
    """Orders joined with payments, which came later. At-most-once allows the loss of the struck batch of payments;
    the orders stay, with NULL in their place."""
    run.sink(JOINED)
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    run.injection(1)
    run.injection(2, point="batch-planned", holds=20)
    run.tables = [run.rows((0, 20), (30, 40))]
    run.calm()
    yield "each row comes from one record"
    run.sink(PER_RECORD)
    run.tables = [[(i, a, None if 20 <= int(i or 0) < 30 else m) for i, a, m in run.rows((0, 40))]]


GAPS = replace(
    TOTALS,
    expected="""select account, count(*) as n,
    (max(id // 4) - min(id // 4) + 1 - count(distinct id // 4))::bigint as gaps
from ledger group by account""",
)
COUNT = replace(
    GAPS, expected="select account, count(*) as n, count(*) filter (where id >= 20) as gaps from ledger group by 1"
)
GAPPED = [*COUNTED, ("gaps", "bigint", "number")]


@adversary(
    9,
    held(
        "1 repetition",
        "2 loss",
        kinds={Kind.WRONG_AGGREGATE: 4},
        faults=(blame(point="batch-planned", attempt=2),),
        fits=None,
    ),
    twin=violated(WRONG, 4, faults=None, fits=None),
    guard=True,
)
def a_column_that_grows_by_a_loss(run: RunBuilder) -> Iterator[str]:
    """The number of missing sequence numbers: zero of any single record, zero in all, and more once a batch is lost."""
    run.sink(GAPS, types=[GAPPED])
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    run.batch_sizes(6, 14, 12, 8)
    run.injection(0)
    run.injection(1, point="batch-planned", holds=6)
    run.tables = [run.rows((0, 6), (20, 40))]
    run.calm()
    yield "it is a count, and other records went into it twice"
    run.sink(COUNT, types=[GAPPED])
    run.tables = [run.rows((0, 6), (20, 40), again=[(20, 32)])]


EXECUTOR = replace(STEP, do=fault("kill executor"))
CUT = replace(STEP, do=fault("disconnect driver"))


def lived(run: RunBuilder, step: Step) -> None:
    """At-most-once; the driver lives through a fault in the middle of batch 1, of which five rows never come."""
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    run.steps, run.moments = [], []
    run.injection(0)
    run.injection(1, point="after 15 rows", holds=15, again=None)
    run.claim(schedule=(run.scenario.schedule[0], step))
    touched = {"5000": "SIGKILL"} if step is EXECUTOR else {}
    run.steps[1] = replace(run.steps[1], name=step.name, evidence=Evidence(signalled=touched, note="cut off"))
    run.edits = {"2-injection": {"alive": ["driver 2"]}}
    run.tables = [run.rows((0, 15), (20, 40))]
    run.calm()


@adversary(
    9,
    held(
        "1 repetition",
        "2 loss",
        kinds={Kind.LOST: 15},
        faults=("disconnect driver at after 15 rows of batch 1, attempt 2",),
        fits=None,
        batches=(1, 2),
    ),
    twin=held(
        "1 repetition",
        "2 loss",
        "2 repetition",
        kinds={Kind.LOST: 15},
        faults=("kill executor at after 15 rows of batch 1, attempt 2",),
        fits=None,
        batches=(1, 2),
    ),
)
def a_cut_that_lasts(run: RunBuilder) -> Iterator[str]:
    """The driver was cut off for longer than a batch takes, and the next one is lost as well: the snapshot is of the
    first moment."""
    lived(run, CUT)
    run.tables = [run.rows((0, 15), (30, 40))]
    yield "an executor was killed, and no fault lasted"
    lived(run, EXECUTOR)
    run.tables = [run.rows((0, 15), (30, 40))]


@adversary(
    9,
    held(
        "1 repetition",
        kinds={Kind.LOST: 5},
        faults=(blame(0),),
        fits=None,
        batches=(2,),
    ),
)
def an_attempt_that_died_by_itself(run: RunBuilder) -> None:
    """Killed in batch 0. The second attempt died by itself in the middle of batch 2, and the third one does not repeat
    what was begun."""
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    run.injection(0)
    run.queries = [query(CHECKPOINT, *run.ends, first={1: 0, 2: 0, 3: 2})]
    run.tables = [run.rows((0, 25), (30, 40))]
    run.calm()


@adversary(9, untested("at-most-once allows it", shown=("1 loss",), kinds={WRONG: 4}, faults=None, fits=None))
def totals_of_a_batch_that_was_committed_by_then(run: RunBuilder) -> None:
    """An executor was killed in the middle of batch 1; the program swallows it, and the driver had committed the batch
    when the snapshot read its log. The totals lack what was left of it."""
    run.sink(counts(""), types=[COUNTED])
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    run.batch_sizes(6, 14, 4, 16)
    run.injection(2, point="after 10 rows", tables=[run.rows((0, 10))], again=None)
    killed = run.steps[0]
    run.claim(schedule=(EXECUTOR,))
    run.steps[0] = replace(killed, name="kill executor", evidence=Evidence(signalled={"5000": "SIGKILL"}))
    run.edits = {"1-injection": {"alive": ["driver 1"]}}
    run.tables = [run.rows((0, 10), (20, 40))]
    run.calm()


@adversary(
    9,
    violated(Kind.DUPLICATED, 3, blame(2, point="after 25 rows", attempt=2), fits=None, batches=(2,)),
    twin=held("1 loss", "2 loss", "2 repetition", kinds={DUPLICATED: 3}, batches=(2,), faults=None, fits=None),
    guard=True,
)
def a_few_rows_come_again(run: RunBuilder) -> Iterator[str]:
    """Three rows of the struck batch, and it is claimed that none does."""
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    run.injection(1, point="batch-planned", holds=10)
    run.injection(2, point="after 25 rows", holds=25)
    run.tables = [run.rows((0, 40), again=[(21, 24)])]
    yield "they may: nothing has to be shown of what is allowed"
    run.claim(guarantee=Guarantee.AT_LEAST_ONCE)


@adversary(
    9,
    inconclusive("not deterministic without faults", kinds={LOST: 1}, batches=(3,), fits=None),
    twin=violated(Kind.LOST, 1, blame(point="batch-planned"), fits=None, batches=(3,)),
)
def a_baseline_run_that_lost_another_row(run: RunBuilder) -> Iterator[str]:
    """A row is lost, and none in two of three baseline runs. The other one lost a row too, not this one."""
    run.claim(guarantee=Guarantee.AT_LEAST_ONCE)
    run.injection(1, point="batch-planned", holds=10)
    run.tables = [run.rows((0, 36), (37, 40))]
    whole = (0, 40)
    run.calm([run.rows(whole)], [run.rows((0, 3), (4, 40))], [run.rows(whole)])
    yield "none lost any; that two have a row twice is another matter"
    run.calm([run.rows(whole)], [run.rows(whole, again=[(3, 4)])], [run.rows(whole, again=[(5, 6)])])


@adversary(3, violated(Kind.WRONG_AGGREGATE, 1, blame(point="batch-planned")), twin=held("1 loss"))
def a_record_that_came_again_has_another_amount(run: RunBuilder) -> Iterator[str]:
    """Each record once, by DISTINCT, under at-least-once. No record gives the row that is there, however often each of
    them came: it was taken for a total, of which nobody can tell."""
    run.claim(guarantee=Guarantee.AT_LEAST_ONCE)
    run.sink(replace(PER_RECORD, expected="select distinct id, account, amount from ledger"))
    run.injection(1, point="batch-planned", holds=10)
    run.tables = [[(*row[:-1], "7777") if row[0] == "5" else row for row in run.rows((0, 40))]]
    run.calm()
    yield "it has the amount of its record"
    run.tables = [run.rows((0, 40))]
