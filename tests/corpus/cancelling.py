"""Item 4: errors that cancel. The sums are right in the end, and two of the records behind them took effect wrongly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.corpus.case import adversary, held, inconclusive
from tests.corpus.counters import counting
from tests.corpus.run_builder import RunBuilder
from tests.corpus.witnesses import executor
from tests.folders import TOTALS

BALANCES = replace(TOTALS, expected="select account, sum(amount) as total from ledger group by account")
BALANCED = [("account", "text", "text"), ("total", "numeric", "number")]


@adversary(4, held("1 repetition"))
def a_batch_doubled_and_its_like_lost(run: RunBuilder) -> None:
    """Exactly-once; the struck batch was counted twice and a later one of the same size never. The totals are those
    of an honest run, so they show nothing."""
    counting(run, 3, 3, 3, 3)
    run.injection(1)


@adversary(
    4,
    inconclusive("at the reading of step 1, 2 totals of postgres totals were not those of the"),
    twin=held("1 repetition"),
)
def already_wrong_when_it_struck(run: RunBuilder) -> Iterator[str]:
    """When the fault struck batch 2, batch 0 was in the totals twice. That batch 3, of the same size, was lost
    afterwards makes them right again."""
    counting(run, 2, 3, 5, 2)
    run.injection(2, tables=[run.rows((0, 20), again=[(0, 4)])])
    yield "the totals were right when the fault was injected"
    run.found(tables=[run.rows((0, 20))])


@adversary(
    4, inconclusive("at the reading of step 1, 2 totals of postgres totals were not those of the"), twin=held("1 loss")
)
def already_wrong_when_an_executor_died(run: RunBuilder) -> Iterator[str]:
    """The same, and only an executor was killed, when batch 2 was planned. Its driver made no progress meanwhile."""
    counting(run, 2, 3, 5, 2)
    run.injection(2, point="batch-planned", tables=[run.rows((0, 20), again=[(0, 4)])])
    executor(run)
    yield "the totals were right when the fault was injected, and batch 2 was in none"
    run.found(tables=[run.rows((0, 10))])


@adversary(
    4,
    inconclusive("at the reading of step 1, 2 totals of postgres totals were not those of the"),
    twin=held("1 repetition"),
)
def ahead_in_a_sink_that_is_late(run: RunBuilder) -> Iterator[str]:
    """The scenario says that the sink shows its rows late. When the fault was injected, its totals were ahead of every
    batch: no delay does that. In the end they are right, as if nothing had been."""
    counting(run, 2, 3, 5, 2)
    run.claim(quiet_period_s=5.0)
    run.injection(2, tables=[run.rows((0, 20), again=[(0, 4)])])
    yield "they were behind, as after batch 0"
    run.found(tables=[run.rows((0, 4))])


@adversary(
    4,
    held("1 repetition", "2 repetition"),
    twin=inconclusive("at the reading of step 2, 2 totals of postgres totals were not those of the"),
)
def one_fault_doubles_what_the_next_one_loses(run: RunBuilder) -> Iterator[str]:
    """The first fault doubled batch 1, the second lost batch 3 of the same size. When the second one struck, the
    totals were what they would be with batch 3 written, and in the end they are right."""
    counting(run, 2, 3, 4, 3)
    run.injection(1)
    run.injection(3, point="batch-planned", tables=[run.rows((0, 18), again=[(4, 10)])])
    yield "batch 3 is of another size, so that the second snapshot shows what the first fault did"
    run.batch_sizes(4, 6, 8, 4)


@adversary(4, held("1 repetition"))
def amounts_that_cancel_within_the_batch(run: RunBuilder) -> None:
    """The sums of the struck batch are zero for each account: payment and refund. Once, twice or never, the balance
    is the same."""
    run.sink(BALANCES, types=[BALANCED])
    for place, record in enumerate(run.records):
        record["account"] = f"a{place % 2}"
    for place, record in enumerate(run.records[10:18]):
        record["amount"] = "5" if place < 4 else "-5"
    for record in run.records[18:20]:
        record["amount"] = "0"
    run.injection(1)
