"""Item 2: the batch that was struck put nothing into the sink, or nothing that its loss or repetition would change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.faults import fault
from harness.scenario import Evidence, Kind
from harness.snapshot import Query
from tests.corpus.case import adversary, held, untested, violated
from tests.corpus.run_builder import RunBuilder, blame, query, state
from tests.folders import PER_RECORD, STEP, TOTALS

FILTERED = replace(PER_RECORD, expected="select id, account, amount from ledger where id < 10")
ACCOUNTS = replace(TOTALS, expected="select distinct account, account = 'a0' as first from ledger")
FLAGGED = [("account", "text", "text"), ("first", "boolean", "bool")]
LATEST = replace(
    PER_RECORD,
    expected="select id % 10 as id, account, amount from ledger l "
    "where not exists (from ledger later where later.id % 10 = l.id % 10 and later.id > l.id)",
)
PAYMENTS, AUDIT = "checkpoints/payments", "checkpoints/audit"


@adversary(2, untested("step 1 (`kill driver`) does not count for postgres payments:"), twin=held("1 repetition"))
def filtered_out(run: RunBuilder) -> Iterator[str]:
    """Killed at the crash point of a full batch, none of whose records pass the filter: also a program that appends
    holds."""
    run.sink(FILTERED)
    run.injection(1)
    yield "one record of the batch passes"
    run.sink(replace(FILTERED, expected=f"{FILTERED.expected}+1"))


@adversary(2, untested("every planned batch was committed"), twin=held("1 repetition"))
def other_query_feeds_the_sink(run: RunBuilder) -> Iterator[str]:
    """Two queries read the topic; the one that was struck in batch 1 writes to nothing that is judged."""
    run.sink(replace(PER_RECORD, query="payments"))
    run.queries = [query(PAYMENTS, *run.ends, first={1: 0, 2: 1}), query(AUDIT, *run.ends, first={1: 0, 2: 1})]
    idle, injected = {"planned": (1, 10), "committed": (1, 10)}, {"planned": (2, 20), "committed": (1, 10)}
    run.injection(1, checkpoint=AUDIT, holds=10, states=(state(PAYMENTS, **idle), state(AUDIT, **injected)))
    yield "the struck query was the one that feeds the sink"
    run.found(holds=20, states=(state(PAYMENTS, **injected), state(AUDIT, **idle)))


@adversary(2, untested("name it in the sink (`query`)"), twin=held("1 loss"))
def nobody_says_which_query(run: RunBuilder) -> Iterator[str]:
    """Two queries read the topic, one was struck, and the sink agrees with both of them."""
    run.queries = two_queries(run)
    idle, injected = {"planned": (1, 10), "committed": (1, 10)}, {"planned": (2, 20), "committed": (1, 10)}
    run.injection(1, checkpoint=AUDIT, point="batch-planned", holds=10)
    run.found(states=(state(PAYMENTS, **idle), state(AUDIT, **injected)))
    yield "the scenario names the query that feeds it"
    run.sink(replace(PER_RECORD, query="audit"))


def two_queries(run: RunBuilder) -> list[Query]:
    return [query(name, *run.ends, first={1: 0, 2: 1}) for name in (PAYMENTS, AUDIT)]


@adversary(2, untested("step 1 (`kill driver`) does not count for postgres totals:"), twin=held("1 loss"))
def nothing_new_in_the_batch(run: RunBuilder) -> Iterator[str]:
    """The sink has the accounts that were ever seen. A batch that brings none may be lost or repeated, and nothing
    changes."""
    run.sink(ACCOUNTS, types=[FLAGGED])
    run.injection(1, point="batch-planned", holds=10)
    yield "one record of the batch is of an account that no other has"
    run.records[15]["account"] = "a9"


@adversary(2, held("1 repetition"))
def overwritten_later(run: RunBuilder) -> None:
    """The sink has the latest row of each key, and later batches overwrite all that the struck one wrote: whether it
    was written twice cannot be seen."""
    run.sink(LATEST)
    run.injection(1)


@adversary(2, untested("name it in the sink (`query`)"), twin=held("1 repetition"))
def the_query_that_feeds_the_sink_had_not_begun(run: RunBuilder) -> Iterator[str]:
    """The struck query writes to nothing that is judged. The one that does began with the next attempt."""
    run.queries = [query(AUDIT, *run.ends, first={1: 0, 2: 1}), query(PAYMENTS, *run.ends, first={2: 0})]
    injected = state(AUDIT, planned=(2, 20), committed=(1, 10))
    run.injection(1, checkpoint=AUDIT, states=(injected,), tables=[[]])
    yield "there is no other query, and the rows are there"
    run.queries = run.queries[:1]
    run.found(tables=None)


@adversary(2, untested("step 1 (`pause driver`) does not count for postgres payments:"), twin=held("1 loss"))
def a_driver_that_only_stood_still(run: RunBuilder) -> Iterator[str]:
    """The driver was paused when a batch was planned, and went on with it: nobody could have lost it."""
    run.injection(1, point="batch-planned", holds=10, again=None)
    stood = Evidence(signalled={"4711": "paused for 3 s"}, checkpoint_after=run.steps[0].evidence.checkpoint_after)
    killed, run.steps[0] = run.steps[0], replace(run.steps[0], name="pause driver", evidence=stood)
    run.claim(schedule=(replace(STEP, do=fault("pause driver", for_s=3.0)),))
    yield "it was killed"
    run.steps[0] = killed
    run.claim(schedule=(STEP,))


PEAKS = replace(TOTALS, expected="select account, max(amount) as peak from ledger group by account")
PEAK = [("account", "text", "text"), ("peak", "numeric", "number")]


@adversary(2, held("1 repetition"))
def a_maximum_that_is_written_in_place(run: RunBuilder) -> None:
    """The table has no unique key, so a row could stand beside another one of its key; the pipeline replaces its rows,
    and what it writes twice is the same maximum."""
    run.sink(PEAKS, types=[PEAK])
    run.injection(1)


RATED = replace(
    TOTALS,
    expected="select account, (sum(amount) * (select amount from ledger where id = 13))::decimal(18, 4) as peak "
    "from ledger group by account",
)


@adversary(2, untested("cannot be run with records left out or counted twice"), twin=held("1 repetition"))
def an_effect_that_one_record_decides(run: RunBuilder) -> Iterator[str]:
    """All totals are in the currency of one record of the struck batch. Of a ledger that has it twice `expected` is
    no query."""
    run.sink(RATED, types=[PEAK])
    run.injection(1)
    yield "another batch has that record"
    run.sink(replace(RATED, expected=(RATED.expected or "").replace("id = 13", "id = 3")), types=[PEAK])
    run.claim(sinks=(replace(run.scenario.sinks[0]),))


@adversary(5, violated(Kind.WRONG_AGGREGATE, 4, blame(), fits=None))
def a_rival_that_the_effect_cannot_be_run_with(run: RunBuilder) -> None:
    """The struck batch came again. Of a ledger that has the first batch twice `expected` is no query, so nobody can
    tell whether that one comes to the same."""
    expected = RATED.expected or ""
    run.sink(replace(RATED, expected=expected.replace("id = 13", "id = 3")), types=[PEAK])
    run.injection(1)
    run.tables = [run.rows((0, 40), again=[(10, 20)])]
    run.calm()


STOCK = replace(TOTALS, expected="select account, sum(amount)::uinteger as peak from ledger group by account")


@adversary(
    6,
    violated(Kind.WRONG_AGGREGATE, 4, blame(), batches=(0, 1, 2, 3)),
    twin=held("1 repetition"),
)
def a_stock_that_one_batch_only_takes_from(run: RunBuilder) -> Iterator[str]:
    """`expected` has no answer for that batch alone, which would be less than nothing. The totals are wrong all the
    same."""
    run.sink(STOCK, types=[PEAK])
    for place, each in enumerate(run.records):
        each["amount"] = "-1" if 20 <= place < 30 else str(5 + place % 3)
    run.injection(1)
    run.tables = [run.rows((0, 40), again=[(10, 20)])]
    run.calm()
    yield "they are right"
    run.tables = []
