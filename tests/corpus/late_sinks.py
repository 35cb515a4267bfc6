"""Items 2 and 10: a sink that shows its rows late, a zombie that goes on, a transaction that is gone: what was in
flight is what the same moment shows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from harness.scenario import Guarantee, Kind
from harness.snapshot import RESTART
from tests.corpus.case import adversary, held, untested, violated
from tests.corpus.nothing_written import AUDIT, PAYMENTS
from tests.corpus.own_offsets import by_hand
from tests.corpus.run_builder import RunBuilder, blame, query, state
from tests.folders import PER_RECORD, TOTALS, at_point

ROWS = "after row 15"
DOUBLES = replace(
    TOTALS,
    expected="select account, count(*) as n, sum(cast(amount as double)) as total from ledger group by account",
)


def side_by_side(run: RunBuilder) -> None:
    """Two queries read the topic."""
    run.queries = [query(PAYMENTS, *run.ends, first={1: 0, 2: 2}), query(AUDIT, *run.ends, first={1: 0, 2: 1})]
    run.batches = []


@adversary(2, untested("step 1 (`kill driver`) does not count for postgres payments: 2"), twin=held("1 loss"))
def a_late_sink_of_the_other_query(run: RunBuilder) -> Iterator[str]:
    """The payments were all committed and are shown late; only the audit had a batch in flight. As many rows as it had
    committed are there by chance."""
    side_by_side(run)
    run.claim(quiet_period_s=5.0)
    there = (state(PAYMENTS, planned=(2, 20), committed=(2, 20)), state(AUDIT, planned=(2, 20), committed=(1, 10)))
    run.injection(1, point="batch-planned", checkpoint=AUDIT, holds=10, states=there)
    yield "the sink is said to be the audit's"
    run.sink(replace(PER_RECORD, query="audit"))


@adversary(2, untested("step 1 (`kill driver`) does not count for postgres payments: 2"), twin=held("1 repetition"))
def a_zombie_commits_before_the_next_attempt(run: RunBuilder) -> Iterator[str]:
    """The JVM outlived its program and committed the batch of the payments. When the next attempt began, only the audit
    had one in flight."""
    side_by_side(run)
    audit = state(AUDIT, planned=(2, 20), committed=(1, 10))
    before = (state(PAYMENTS, planned=(2, 20), committed=(1, 10)), audit)
    after = (state(PAYMENTS, planned=(2, 20), committed=(2, 20)), audit)
    run.injection(1, point=ROWS, checkpoint=PAYMENTS, holds=10, states=before)
    run.moments.append(replace(run.moments[0], moment=RESTART, holds=20, states=after))
    yield "the sink is said to be the audit's"
    run.sink(replace(PER_RECORD, query="audit"))


IDLE = blame(None, point="failpoint idle")


@adversary(
    10,
    untested("step 1 (`kill driver`) does not count for postgres payments:"),
    twin=violated(Kind.LOST, 10, blame(None, point="failpoint idle"), fits=None),
)
def saved_offsets_of_a_late_sink(run: RunBuilder) -> Iterator[str]:
    """The offsets are saved after the rows were handed on, and the sink that is judged gets them later: so the scenario
    says. Killed between two offset ranges."""
    by_hand(run, 20, 30, 40, point="failpoint idle", holds=10)
    run.claim(quiet_period_s=5.0)
    run.calm()
    yield "they never come"
    run.tables = [run.rows((0, 10), (20, 40))]


@adversary(
    10,
    untested("step 1 (`kill driver`) does not count for postgres payments:"),
    twin=violated(Kind.LOST, 10, IDLE, batches=(), fits=None),
)
def saved_offsets_of_a_sink_that_is_late_unsaid(run: RunBuilder) -> Iterator[str]:
    """The same, and the scenario does not say that rows come late. Nobody took that offset range again, and it came."""
    by_hand(run, 20, 30, 40, point="failpoint idle", holds=10)
    run.calm()
    yield "it never comes"
    run.tables = [run.rows((0, 10), (20, 40))]


@adversary(
    2, untested("step 1 (`kill driver`) does not count for postgres payments:"), twin=held("1 loss", "1 repetition")
)
def a_zombie_finished_the_batch(run: RunBuilder) -> Iterator[str]:
    """Killed in the middle of batch 1. A zombie wrote the rest and committed it, the next attempt began with batch 2,
    and was too quick for a second snapshot: nothing was done again, and nothing was lost."""
    run.injection(1, point=ROWS, holds=15, again=2)
    yield "the next attempt did batch 1 again"
    run.found(again=1)


@adversary(
    2, untested("step 1 (`kill driver`) does not count for postgres payments:"), twin=held("1 loss", "1 repetition")
)
def a_zombie_finished_after_the_second_snapshot(run: RunBuilder) -> Iterator[str]:
    """The same, and the second snapshot was taken before the zombie had committed."""
    run.injection(1, point=ROWS, holds=15, again=2)
    run.moments.append(replace(run.moments[0], moment=RESTART, holds=15))
    yield "the next attempt did batch 1 again"
    run.found(1, again=1)
    run.found(2, again=1)


@adversary(10, untested("at-least-once allows it", shown=("1 repetition",)), twin=held("1 loss"))
def committed_by_sparks_own_word(run: RunBuilder) -> Iterator[str]:
    """Spark had heard that the sink was committed, and the sink that is judged gets its rows later: the batch could
    only come again."""
    run.claim(guarantee=Guarantee.AT_LEAST_ONCE)
    run.injection(1, holds=10)
    yield "it was planned, and had not begun to write"
    run.steps[0] = at_point(run.steps[0], "batch-planned")


@adversary(9, untested("at-most-once allows it", shown=("1 loss",)), twin=held("1 loss", "1 repetition"))
def a_transaction_that_is_gone(run: RunBuilder) -> Iterator[str]:
    """The writer was killed in an open transaction. Once it was dead the server had nothing of it: it cannot come
    twice."""
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    run.injection(1, point=ROWS, holds=10, writing={"0": ("insert into payments",)}, left={})
    yield "the transaction was still there when all had been read"
    run.found(left={"0": ("insert into payments",)})


@adversary(9, untested("at-most-once allows it", shown=("1 loss",)), twin=held("1 loss", "1 repetition"))
def the_last_digit_of_a_double(run: RunBuilder) -> Iterator[str]:
    """Killed before the batch wrote. The totals are sums of doubles, whose last digit hangs on the order: they are the
    same."""
    run.sink(
        DOUBLES,
        types=[[("account", "text", "text"), ("n", "bigint", "number"), ("total", "double precision", "float")]],
    )
    run.records = [{"id": i, "account": f"a{i % 2}", "amount": f"{i}.{(i * 37) % 100:02d}"} for i in range(40)]
    run.batch_sizes(6, 10, 14, 8)
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    run.injection(1, point="batch-planned", holds=6)
    there = [(account, n, repr(math.nextafter(float(str(sum_)), 1e9))) for account, n, sum_ in sorted(run.rows((0, 6)))]
    run.found(tables=[there])
    yield "one of two totals has the batch"
    run.found(tables=[sorted(run.rows((0, 16)))[:1] + there[1:]])


@adversary(10, untested("at-least-once allows it", shown=("1 repetition",)), twin=held("1 repetition"))
def spark_says_that_a_late_sink_has_it(run: RunBuilder) -> Iterator[str]:
    """Killed when the sink was committed, by Spark's own word; nothing of it shows, also not before the next attempt
    worked, and no transaction is open: the sink is late. It may come twice."""
    run.claim(quiet_period_s=5.0, guarantee=Guarantee.AT_LEAST_ONCE)
    run.injection(1, holds=10)
    run.moments.append(replace(run.moments[0], moment=RESTART, holds=10))
    yield "it may not"
    run.claim(guarantee=Guarantee.EXACTLY_ONCE)
