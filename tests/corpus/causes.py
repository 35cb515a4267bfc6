"""Item 5: a cause that is asserted and not shown. The word is right, and the wrong fault or batch is blamed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.scenario import Expected, Kind, Word
from harness.snapshot import Batch, Position
from tests.corpus.case import adversary, violated
from tests.corpus.counters import counting
from tests.corpus.nothing_written import AUDIT, PAYMENTS
from tests.corpus.run_builder import RunBuilder, blame, query, state
from tests.folders import PER_RECORD, values

DUPLICATED, LOST = Kind.DUPLICATED, Kind.LOST
TWICE = (10, 20)


@adversary(
    5,
    violated(Kind.WRONG_AGGREGATE, 2, blame(2, attempt=2), batches=(0, 1, 2, 3)),
)
def ties_between_two_struck_batches(run: RunBuilder) -> None:
    """Both struck batches come to the same, and one of them was counted twice, after the second fault. Nothing but
    their numbers tells them apart, and a number is no witness."""
    counting(run, 2, 3, 3, 5)
    run.injection(1)
    run.injection(2)
    run.tables = [run.rows((0, 26), again=[(10, 16)])]
    run.calm()


@adversary(
    5,
    violated(Kind.WRONG_AGGREGATE, 2, blame(2), batches=(0, 1, 2, 3)),
)
def ties_with_batches_that_were_not_struck(run: RunBuilder) -> None:
    """All batches come to the same, so that the totals do not say which of them was counted twice."""
    counting(run, 3, 3, 3, 3)
    run.injection(2)
    run.tables = [run.rows((0, 24), again=[(12, 18)])]
    run.calm()


@adversary(
    5,
    violated(Kind.DUPLICATED, 10, blame(2, of="checkpoints/1"), batches=(2,)),
)
def second_checkpoint_counts_from_zero_again(run: RunBuilder) -> None:
    """The fault struck batch 2 of the first checkpoint. The doubled rows are those of batch 2 of the second one,
    which the next attempt began, and which no fault touched."""
    run.queries = [
        query("checkpoints/1", 10, 20, first={1: 0}),
        query("checkpoints/2", 30, 40, 50, start=20, first={2: 0}),
    ]
    ends = ((0, 0, 10), (1, 10, 20), (0, 20, 30), (1, 30, 40), (2, 40, 50))
    run.batches = [Batch(batch=n, ranges={0: (start, end)}, committed=True) for n, start, end in ends]
    run.records = values(50)
    first = state("checkpoints/1", planned=(3, 30), committed=(2, 20))
    run.injection(2, checkpoint="checkpoints/1", again=None, holds=30, states=(first,))
    run.tables = [run.rows((0, 50), again=[(40, 50)])]
    run.calm()


@adversary(
    5,
    violated(DUPLICATED, 10, blame(None, point="after row 15"), batches=(1,)),
    twin=violated(DUPLICATED, 10, blame(None, point="after row 35", attempt=2), batches=(3,)),
)
def every_fault_is_blamed_where_offsets_are_kept_by_hand(run: RunBuilder) -> Iterator[str]:
    """The pipeline manages its own offsets, so no fault names a batch. Two faults struck, and one did it."""
    run.claim(pipeline=replace(run.scenario.pipeline, progress="group"))
    for point, saved in (("after row 15", 10), ("after row 35", 30)):
        run.injection(None, point=point, position={0: saved}, again=None, holds=saved + 10)
    moves = [(1, 1.0, 0), (1, 2.0, 10), (2, 3.5, 10), (2, 4.0, 20), (2, 5.0, 30), (3, 6.5, 30), (3, 7.0, 40)]
    run.positions = [Position(attempt=a, at_s=s, next={0: n}) for a, s, n in moves]
    run.tables = [run.rows((0, 40), again=[TWICE])]
    run.found(2, tables=[run.rows((0, 40), again=[TWICE])])
    yield "the second snapshot has every row once, and those that the second fault had in flight are twice in the end"
    run.found(2, tables=[run.rows((0, 40))])
    run.tables = [run.rows((0, 40), again=[(30, 40)])]


@adversary(5, violated(Kind.LOST, 10, blame(point="batch-planned"), batches=(2,)))
def the_batch_beside_the_struck_one(run: RunBuilder) -> None:
    """The lost rows are those of the batch after the struck one, which was not even planned when the fault was
    injected."""
    run.injection(1, point="batch-planned", holds=10)
    run.tables = [run.rows((0, 20), (30, 40))]
    run.calm()


@adversary(
    5,
    violated(Kind.LOST, 1, blame(point="batch-planned"), batches=(1,)),
)
def one_row_of_the_struck_batch(run: RunBuilder) -> None:
    """One row of the struck batch is missing and nine came. A lost batch is lost as one: that fault may have done
    it, and nothing shows it."""
    run.injection(1, point="batch-planned", holds=10)
    run.tables = [run.rows((0, 17), (18, 40))]
    run.calm()


@adversary(
    5,
    violated(DUPLICATED, 10, batches=(1,), without_faults=True, said="also without faults"),
    twin=violated(DUPLICATED, 10, blame(1), batches=(1,)),
)
def twice_before_the_fault(run: RunBuilder) -> Iterator[str]:
    """The rows of the struck batch were there twice when the fault was injected: the program doubles them by
    itself."""
    run.injection(1, tables=[run.rows((0, 20), again=[TWICE])])
    run.tables = [run.rows((0, 40), again=[TWICE])]
    run.calm(*[run.tables] * 3)
    yield "they were there once when the fault was injected, and come once without faults"
    run.found(tables=[run.rows((0, 20))])
    run.calm()


@adversary(
    5,
    violated(DUPLICATED, 10, blame(1, attempt=2), batches=(1,)),
    twin=violated(DUPLICATED, 10, blame(1, point="after row 20"), batches=(1,)),
)
def one_batch_struck_twice(run: RunBuilder) -> Iterator[str]:
    """Two faults struck the same batch in two attempts; the snapshots say after which of them the rows came again."""
    run.injection(1, point="after row 20")
    run.injection(1)
    run.tables = [run.rows((0, 40), again=[TWICE])]
    yield "the second snapshot has the rows twice already"
    run.found(2, tables=[run.rows((0, 20), again=[TWICE])])


@adversary(
    5,
    violated(Kind.WRONG_AGGREGATE, 2, blame(attempt=2), batches=(0, 1, 2)),
    twin=violated(Kind.WRONG_AGGREGATE, 2, blame(point="after row 6"), batches=(0, 1, 2)),
)
def a_total_struck_twice(run: RunBuilder) -> Iterator[str]:
    """The same with totals: which of the two attempts counted the batch again is in the second snapshot."""
    counting(run, 2, 3, 5, 7)
    run.injection(1, point="after row 6")
    run.injection(1)
    run.tables = [run.rows((0, 34), again=[(4, 10)])]
    yield "the second snapshot has it twice already"
    run.found(2, tables=[run.rows((0, 10), again=[(4, 10)])])


@adversary(
    5,
    violated(Kind.DUPLICATED, 10, blame(of="checkpoints/payments"), batches=(1,)),
)
def batch_of_the_same_number_in_another_query(run: RunBuilder) -> None:
    """The fault struck batch 1 of the query that feeds the first sink. The doubled rows are in the second sink, whose
    own query had committed its batch 1."""
    run.sink(replace(PER_RECORD, query="payments"), replace(PER_RECORD, part="second", query="audit"))
    run.queries = [query(PAYMENTS, *run.ends, first={1: 0, 2: 1}), query(AUDIT, *run.ends, first={1: 0, 2: 2})]
    busy = {"planned": (2, 20), "committed": (1, 10)}
    payments, audit = state(PAYMENTS, **busy), state(AUDIT, planned=(2, 20), committed=(2, 20))
    run.injection(1, checkpoint=PAYMENTS, holds=20, states=(payments, audit))
    run.tables = [run.rows((0, 40)), run.rows((0, 40), again=[TWICE])]
    run.calm()


@adversary(
    5,
    violated(LOST, 10, batches=(0,), without_faults=True),
    twin=violated(LOST, 10, blame(None, point="batch-committed"), batches=(0,)),
)
def gone_before_the_fault_and_without_it(run: RunBuilder) -> Iterator[str]:
    """Killed between two batches; the rows of the one before were not in the sink, and never came. So it is in every
    baseline run."""
    run.injection(None, point="batch-committed", planned=1, committed=1, again=1, tables=[[]])
    run.tables = [run.rows((10, 40))]
    run.calm(*[[run.rows((10, 40))]] * 3)
    yield "it was planned and not committed yet, and arrives without faults"
    run.found(committed=0, again=0)
    run.calm()


PLANNED = blame(2, point="batch-planned")


def cleared(run: RunBuilder, *kept: tuple[int, int]) -> None:
    """Killed before batch 2 wrote, with batches 0 and 1 in the sink; these offsets are left in the end."""
    run.injection(2, point="batch-planned", holds=20)
    run.tables = [run.rows(*kept)]
    run.claim(verdict=Expected(word=Word.VIOLATED, kinds=(LOST,)))


@adversary(
    5,
    violated(LOST, 20, batches=(0, 1), without_faults=True, said="also without faults"),
    twin=violated(LOST, 20, PLANNED, batches=(0, 1), as_expected=True),
)
def cleared_without_faults_too(run: RunBuilder) -> Iterator[str]:
    """All that was in the sink when the fault was injected is gone: the program clears its output. It does so without
    faults."""
    cleared(run, (20, 40))
    run.calm(*[[run.rows((20, 40))]] * 3)
    yield "without faults it does not: it clears it at its start, and starts once"
    run.calm()


@adversary(
    5,
    violated(
        Kind.LOST,
        20,
        said="also without faults: 20 findings, or others of their kind, show",
        fits=None,
        batches=(0, 1),
        without_faults=True,
    ),
    twin=violated(LOST, 20, PLANNED, batches=(0, 1), as_expected=True),
)
def cleared_now_and_then(run: RunBuilder) -> Iterator[str]:
    """The same, of a program that clears its output when its disk is full: each baseline run lost other rows."""
    cleared(run, (20, 40))
    run.calm([run.rows((5, 40))], [run.rows((0, 12), (20, 40))], [run.rows((0, 33))])
    yield "no baseline run lost any"
    run.calm()


@adversary(5, violated(Kind.LOST, 1, blame(2, point="batch-planned"), as_expected=True, batches=(0,)))
def one_row_that_was_there(run: RunBuilder) -> None:
    """One row was there when the fault was injected, and is not in the end. It may have gone for any reason."""
    cleared(run, (0, 4), (5, 40))
    run.calm()


@adversary(
    5,
    violated(LOST, 10, blame(3, attempt=2), batches=(0,)),
    twin=violated(
        Kind.LOST,
        10,
        fits=(
            blame(2, point="batch-planned"),
            blame(3, attempt=2),
        ),
        batches=(0,),
    ),
)
def cleared_after_the_second_fault(run: RunBuilder) -> Iterator[str]:
    """Two faults struck, and batch 0 was there at both of them: the first one did not clear it."""
    cleared(run, (10, 40))
    run.claim(verdict=Expected())
    run.injection(3, holds=40)
    run.calm()
    yield "it was not there at the second one"
    run.found(2, tables=[run.rows((10, 40))])
