"""A source of the program's own may go back, with a fault or without: whose doing it is that records come again."""

from __future__ import annotations

from collections.abc import Iterator

from harness.scenario import Kind
from harness.snapshot import Batch, Query
from tests.corpus.case import adversary, held, untested, violated
from tests.corpus.run_builder import CHECKPOINT, RunBuilder, blame, query, state

DUPLICATED = Kind.DUPLICATED


def went(run: RunBuilder, *offsets: int, injected: int, second: int | None = None) -> None:
    """The next offset after each batch of one checkpoint. Attempt 1 worked on those up to `injected`, attempt 2 on
    those from `second`, by itself the one that was struck."""
    second, starts = injected if second is None else second, (0, *offsets)
    run.batches = [
        Batch(
            batch=n,
            ranges={0: (starts[n], end)},
            committed=True,
            attempts=tuple(attempt for attempt, works in ((1, n <= injected), (2, n >= second)) if works),
        )
        for n, end in enumerate(offsets)
    ]
    run.queries = [Query(checkpoint=CHECKPOINT, batches=tuple(run.batches), first={1: 0, 2: second})]


@adversary(
    5,
    violated(
        Kind.DUPLICATED,
        15,
        blame(2, point="batch-planned"),
        fits=None,
    ),
    twin=violated(DUPLICATED, 15, blame(1, point="batch-planned")),
)
def it_had_gone_back_before_the_fault(run: RunBuilder) -> Iterator[str]:
    """Before the fault the source went back, and the batch that was struck reads old records again. They come again
    once, as without faults, and all of its rows were there at the injection: out of an earlier batch."""
    went(run, 20, 5, 20, 30, 40, injected=2)
    run.injection(2, point="batch-planned", states=(state(CHECKPOINT, planned=(3, 20), committed=(2, 5)),), holds=20)
    run.tables = [run.rows((0, 40), again=[(5, 20)])]
    yield "it goes back in the first batch that the next attempt plans"
    run.steps, run.moments = [], []
    went(run, 20, 30, 5, 40, injected=1)
    run.injection(1, point="batch-planned", states=(state(CHECKPOINT, planned=(2, 30), committed=(1, 20)),), holds=20)


@adversary(
    5,
    violated(
        Kind.DUPLICATED,
        15,
        blame(point="batch-planned"),
        fits=None,
    ),
)
def it_was_going_back_when_the_fault_struck(run: RunBuilder) -> None:
    """The batch that was struck ends before it begins: it is empty, and old records come in the next one. So they would
    have come without the fault."""
    went(run, 20, 5, 20, 40, injected=1)
    run.injection(1, point="batch-planned", states=(state(CHECKPOINT, planned=(2, 5), committed=(1, 20)),), holds=20)
    run.tables = [run.rows((0, 40), again=[(5, 20)])]


@adversary(2, untested("step 1 (`kill driver`) does not count for postgres payments:"), twin=held("1 loss"))
def what_comes_again_without_the_fault_is_not_exposed(run: RunBuilder) -> Iterator[str]:
    """The source went back before the fault, and the sink keeps rows by their id. The batch that was struck had written
    nothing; its rows are those of an earlier batch. It brings nothing that could be lost, nor begun to write."""
    went(run, 20, 5, 20, 30, 40, injected=2)
    run.injection(2, point="batch-planned", states=(state(CHECKPOINT, planned=(3, 20), committed=(2, 5)),), holds=20)
    yield "it takes new records behind the old ones"
    went(run, 20, 5, 30, 40, injected=2)
    run.found(states=(state(CHECKPOINT, planned=(3, 30), committed=(2, 5)),))


@adversary(2, untested("nothing was in flight"), twin=held("1 repetition"))
def it_goes_back_long_after_the_fault(run: RunBuilder) -> Iterator[str]:
    """Killed between two batches, with nothing in flight. The next attempt goes on where the last one ended, and after
    some batches its source goes back: a start has nothing to do with that."""
    went(run, 10, 20, 30, 5, 40, injected=0, second=1)
    run.injection(None, point="batch-committed", attempt=1, planned=1, committed=1, holds=10)
    yield "it goes back in the first batch that the next attempt plans"
    went(run, 10, 5, 20, 30, 40, injected=0, second=1)


@adversary(
    5,
    violated(Kind.DUPLICATED, 15, blame(point="batch-planned"), fits=None),
    twin=violated(DUPLICATED, 15, blame(2, point="batch-planned", attempt=2)),
)
def a_second_fault_strikes_while_it_goes_back(run: RunBuilder) -> Iterator[str]:
    """The source goes back after the first fault; the second one strikes the empty batch in which it does. The next
    attempt reads the old records, as this one would have."""
    went(run, 20, 30, 5, 40, injected=1)
    assert run.queries is not None
    (one,) = run.queries
    later = [Batch(batch=3, ranges={0: (5, 40)}, committed=True, attempts=(3,))]
    run.queries = [Query(checkpoint=CHECKPOINT, batches=(*one.batches[:3], *later), first={1: 0, 2: 1, 3: 2})]
    early = state(CHECKPOINT, planned=(2, 30), committed=(1, 20))
    run.injection(1, point="batch-planned", states=(early,), holds=20)
    run.injection(2, point="batch-planned", states=(state(CHECKPOINT, planned=(3, 5), committed=(2, 30)),), holds=30)
    run.tables = [run.rows((0, 40), again=[(5, 20)])]
    run.calm()
    yield "the source goes back only after the second one"
    run.steps, run.moments = [], []
    ends = ((0, 0, 20), (1, 20, 30), (2, 30, 35), (3, 35, 5), (4, 5, 40))
    batches = tuple(
        Batch(batch=n, ranges={0: (start, end)}, committed=True, attempts=attempts)
        for (n, start, end), attempts in zip(ends, ((1,), (1, 2), (2, 3), (3,), (3,)), strict=True)
    )
    run.batches, run.queries = list(batches), [Query(checkpoint=CHECKPOINT, batches=batches, first={1: 0, 2: 1, 3: 2})]
    run.injection(1, point="batch-planned", states=(early,), holds=20)
    run.injection(2, point="batch-planned", states=(state(CHECKPOINT, planned=(3, 35), committed=(2, 30)),), holds=30)


def passed_over(run: RunBuilder) -> None:
    """Batch 1 is in the sink when the fault strikes, and the next attempt begins a checkpoint ten records behind it."""
    old, new = query("checkpoints/1", 10, 20, first={1: 0}), query("checkpoints/2", 40, start=30, first={2: 0})
    run.queries, run.batches = [old, new], [*old.batches, *new.batches]
    there = state("checkpoints/1", planned=(2, 20), committed=(1, 10))
    run.injection(1, checkpoint="checkpoints/1", again=None, holds=20, states=(there,))


@adversary(
    5,
    violated(Kind.LOST, 9, blame(of="checkpoints/1")),
)
def one_of_what_was_passed_over_came(run: RunBuilder) -> None:
    """The next attempt begins beyond records that nobody had planned. One of them is in the sink all the same, so that
    the rest was not lost as one; nothing shows what took it."""
    passed_over(run)
    run.tables = [run.rows((0, 21), (30, 40))]
    run.calm()


@adversary(
    5,
    violated(Kind.LOST, 10, blame(of="checkpoints/1"), fits=None, batches=(0,)),
)
def what_lies_behind_what_was_passed_over(run: RunBuilder) -> None:
    """The next attempt begins beyond records that nobody had planned, which are in the sink: somebody wrote them. The
    ones that are missing are those it began with."""
    passed_over(run)
    run.tables = [run.rows((0, 30))]
    run.calm()


@adversary(
    5,
    violated(Kind.DUPLICATED, 20, blame(2, point="after row 10")),
)
def old_records_beside_new_ones(run: RunBuilder) -> None:
    """The source went back before the fault, and the batch that was struck has old records and new ones, and had
    written five of each. The new ones came twice by the fault; the old ones come again in any case."""
    went(run, 20, 5, 30, 40, injected=2)
    there = state(CHECKPOINT, planned=(3, 30), committed=(2, 5))
    run.injection(2, point="after row 10", states=(there,), tables=[run.rows((0, 25), again=[(5, 10)])])
    run.tables = [run.rows((0, 40), again=[(5, 20), (5, 10), (20, 25)])]


@adversary(
    5,
    violated(Kind.LOST, 4, blame(point="batch-planned", of="checkpoints/1")),
)
def it_begins_in_the_middle_of_what_was_planned(run: RunBuilder) -> None:
    """The next attempt begins a new checkpoint five records behind where the batch began that was struck. One of the
    five is in the sink all the same: they were not lost as one, and nothing shows what took the rest."""
    old, new = query("checkpoints/1", 10, 20, first={1: 0}), query("checkpoints/2", 40, start=15, first={2: 0})
    run.queries, run.batches = [old, new], [*old.batches, *new.batches]
    there = state("checkpoints/1", planned=(2, 20), committed=(1, 10))
    run.injection(1, point="batch-planned", checkpoint="checkpoints/1", again=None, holds=10, states=(there,))
    run.tables = [run.rows((0, 11), (15, 40))]
    run.calm()
