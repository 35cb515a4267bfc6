"""Item 9: at-most-once allows the loss of what an injection exposed, and of nothing else.

The faults struck batch 1 when half of it is in the sink: then repetition is exposed as well, which at-most-once
forbids.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.scenario import Guarantee, Kind
from tests.corpus.case import adversary, held, untested, violated
from tests.corpus.run_builder import RunBuilder, blame, query, state
from tests.folders import PER_RECORD

LOST = Kind.LOST
ROWS = "after 15 rows"
HALF = blame(1, point=ROWS)


def at_most_once(run: RunBuilder) -> None:
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)


@adversary(
    9,
    held(
        "1 loss",
        "1 repetition",
        kinds={Kind.LOST: 38},
        faults=(blame(point="after 15 rows"),),
        fits=None,
    ),
)
def two_of_forty(run: RunBuilder) -> None:
    """One fault, and two of forty records arrive: nothing came twice."""
    at_most_once(run)
    run.injection(1, point=ROWS, holds=15)
    run.tables = [run.rows((0, 2))]
    run.calm()


@adversary(
    9,
    held(
        "1 repetition",
        kinds={Kind.LOST: 5},
        faults=(blame(point="after 15 rows"),),
        fits=None,
        batches=(1,),
    ),
)
def gone_after_it_was_there(run: RunBuilder) -> None:
    """The rows of the struck batch were all in the sink when the fault was injected, and are gone in the end: what
    was delivered was not exposed."""
    at_most_once(run)
    run.injection(1, point=ROWS)
    run.tables = [run.rows((0, 15), (20, 40))]
    run.calm()


@adversary(
    9,
    untested(
        "step 1 (`kill driver`) does not count for postgres payments:",
        shown=("1 loss",),
        kinds={Kind.LOST: 20},
        faults=(blame(point="after 15 rows", of="checkpoints/1"),),
        fits=None,
    ),
)
def more_than_was_offered_meanwhile(run: RunBuilder) -> None:
    """The checkpoint was lost, and the next attempt began at the end of the topic: it may miss what was sent meanwhile.
    Five of the records that it took are missing too."""
    at_most_once(run)
    run.queries = [query("checkpoints/1", 10, first={1: 0}), query("checkpoints/2", 40, start=30, first={2: 0})]
    first = state("checkpoints/1", planned=(2, 20), committed=(1, 10))
    run.injection(1, point=ROWS, checkpoint="checkpoints/1", again=None, holds=15, states=(first,))
    run.tables = [run.rows((0, 15), (35, 40))]
    run.calm()


@adversary(
    9,
    violated(LOST, 5, HALF, fits=None),
    twin=held("1 loss", "1 repetition", kinds={LOST: 10}, faults=(HALF,)),
)
def one_of_two_sinks_that_must_agree(run: RunBuilder) -> Iterator[str]:
    """Two sinks whose names are cut to the same sixty characters must agree, and only one of them lost the batch."""
    at_most_once(run)
    table = "select id, account, amount from a_table_of_payments_with_a_very_long_name where half = {}"
    columns = [("id", "bigint", "number"), ("account", "text", "text"), ("amount", "numeric", "number")]
    run.sink(*[replace(PER_RECORD, target=table.format(half)) for half in (0, 1)], types=[columns, columns])
    run.claim(together=True)
    run.injection(1, point=ROWS, holds=15)
    part = run.rows((0, 15), (20, 40))
    run.tables = [run.rows((0, 40)), part]
    run.calm([], [], [])
    yield "both lost it"
    run.tables = [part, part]


@adversary(9, untested("at-most-once allows it", shown=("1 loss",)), twin=held("1 loss", "1 repetition"))
def nothing_but_a_loss_exposed(run: RunBuilder) -> Iterator[str]:
    """Killed before the batch wrote anything: no program could have written it twice."""
    at_most_once(run)
    run.injection(1, point="batch-planned", holds=10)
    yield "half of the batch was in the sink"
    run.found(holds=15)


@adversary(9, untested("at-least-once allows it", shown=("1 repetition",)), twin=held("1 loss", "1 repetition"))
def nothing_but_a_repetition_exposed(run: RunBuilder) -> Iterator[str]:
    """Killed when all of the batch was in the sink: no program could have lost it, and only that is forbidden."""
    run.claim(guarantee=Guarantee.AT_LEAST_ONCE)
    run.injection(1, point=ROWS)
    yield "half of the batch was in the sink"
    run.found(holds=15)


@adversary(
    9,
    held(
        "1 loss",
        "1 repetition",
        kinds={Kind.LOST: 10},
        faults=(blame(point="after 15 rows"),),
        batches=(0,),
    ),
)
def lost_before_the_fault(run: RunBuilder) -> None:
    """Batch 0 was committed and not in the sink when the fault struck batch 1."""
    at_most_once(run)
    run.injection(1, point=ROWS, tables=[run.rows((10, 15))])
    run.tables = [run.rows((10, 40))]
    run.calm()


@adversary(
    9,
    violated(LOST, 1, without_faults=True, batches=(1,)),
    twin=held(
        "1 loss",
        "1 repetition",
        kinds={Kind.LOST: 1},
        faults=(blame(point="after 15 rows"),),
        batches=(1,),
    ),
)
def one_record_that_is_always_left_out(run: RunBuilder) -> Iterator[str]:
    """The program leaves out one record of the struck batch, with or without faults. It was not there when the fault
    was injected and never came, as if the fault had lost it."""
    at_most_once(run)
    rest = run.rows((0, 15), (16, 40))
    run.injection(1, point=ROWS, tables=[run.rows((0, 15), (16, 20))])
    run.tables = [rest]
    run.calm(*[[rest]] * 3)
    yield "without faults it is there"
    run.calm()
