"""Item 7: "as expected" that was not earned. A broken twin counts as caught only by what its schedule was to cause."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from harness.scenario import Expected, Kind, Word
from tests.corpus.case import adversary, held, inconclusive, untested, violated
from tests.corpus.run_builder import RunBuilder, blame
from tests.corpus.stalled import stall, taken_away

DUPLICATED, LOST = Kind.DUPLICATED, Kind.LOST
INJECTED, OTHER = (10, 20), (30, 40)


def expected(run: RunBuilder, *kinds: Kind, **more: Any) -> None:
    run.claim(verdict=Expected(word=Word.VIOLATED, kinds=kinds, **more))


@adversary(
    7,
    violated(Kind.DUPLICATED, 10, blame(), as_expected=True, batches=(3,)),
)
def rows_of_a_batch_that_was_not_struck(run: RunBuilder) -> None:
    """Duplicates were expected and there are some: of a batch that no fault touched."""
    expected(run, DUPLICATED)
    run.injection(1)
    run.tables = [run.rows((0, 40), again=[OTHER])]
    run.calm()


@adversary(
    7,
    violated(
        Kind.DUPLICATED, 10, said="no step of the schedule is known to have caused the violation", without_faults=True
    ),
    twin=violated(DUPLICATED, 10, without_faults=True, as_expected=True),
)
def also_without_faults(run: RunBuilder) -> Iterator[str]:
    """The rows of the last batch are twice in every baseline run too: the program needs no fault to double them."""
    expected(run, DUPLICATED)
    run.injection(1)
    run.tables = [run.rows((0, 40), again=[OTHER])]
    run.calm(*[run.tables] * 3)
    yield "that is what was expected (`without_faults: true`)"
    expected(run, DUPLICATED, without_faults=True)


@adversary(
    7,
    violated(DUPLICATED, 10, blame(1), said="expected without faults too"),
    twin=violated(DUPLICATED, 10, without_faults=True, as_expected=True),
)
def not_without_faults(run: RunBuilder) -> Iterator[str]:
    """A program that doubles rows by itself was expected (`without_faults: true`), and it took a fault to double
    them."""
    expected(run, DUPLICATED, without_faults=True)
    run.injection(1)
    run.tables = [run.rows((0, 40), again=[INJECTED])]
    yield "they were twice when the fault was injected, and are twice in all baseline runs"
    run.found(tables=[run.rows((0, 20), again=[INJECTED])])
    run.calm(*[run.tables] * 3)


@adversary(
    7,
    violated(Kind.DUPLICATED, 10, said="no step of the schedule is known to have caused the violation", batches=(1,)),
    twin=violated(DUPLICATED, 10, blame(1), batches=(1,), as_expected=True),
)
def of_the_struck_batch_and_before_the_fault(run: RunBuilder) -> Iterator[str]:
    """The rows of the struck batch are twice, as expected; the snapshot shows them twice before anything was started
    again. No baseline run shows them, and that fault did not do it."""
    expected(run, DUPLICATED)
    run.injection(1, tables=[run.rows((0, 20), again=[INJECTED])])
    run.tables = [run.rows((0, 40), again=[INJECTED])]
    run.calm()
    yield "the snapshot shows them once"
    run.found(tables=[run.rows((0, 20))])


@adversary(
    7,
    violated(
        Kind.DUPLICATED,
        3,
        said="no step of the schedule is known to have caused the violation",
        fits=None,
        batches=(0,),
    ),
    twin=violated(DUPLICATED, 10, blame(1), batches=(1,), as_expected=True),
)
def an_injection_of_which_nothing_is_known(run: RunBuilder) -> Iterator[str]:
    """Duplicates were expected. The sink could not be read when the second fault struck, after which the driver
    lived; rows of batch 0 are twice, which no fault touched. What nobody knows is no cause."""
    expected(run, DUPLICATED)
    run.injection(1)
    run.injection(2, point="after 25 rows", holds=25)
    run.unread["2-injection/0"] = "a lock kept readers out"
    run.edits = {"2-injection": {"alive": ["4712"], "left": {"0": ["insert into payments"]}}}
    run.tables = [run.rows((0, 40), again=[(0, 3)])]
    run.calm()
    yield "the struck batch is twice"
    run.tables = [run.rows((0, 40), again=[INJECTED])]


@adversary(7, violated(Kind.LOST, 10, blame(point="batch-planned"), as_expected=True, batches=(2,)))
def a_loss_beside_the_fault(run: RunBuilder) -> None:
    """Lost rows were expected of the batch that was struck before it was written; those of the next one are lost."""
    expected(run, LOST)
    run.injection(1, point="batch-planned", holds=10)
    run.tables = [run.rows((0, 20), (30, 40))]
    run.calm()


@adversary(
    7,
    untested("step 1 (`kill driver`) does not count for postgres payments:", as_expected=True),
    twin=held("1 repetition", as_expected=False),
)
def untested_on_purpose(run: RunBuilder) -> Iterator[str]:
    """A scenario that shows that a fault in an empty batch tests nothing expects untested, and got held."""
    run.claim(verdict=Expected(word=Word.UNTESTED))
    run.batch_sizes(0, 10, 10, 10)
    run.injection(0)
    yield "batch 0 held ten records"
    run.batch_sizes(10, 10, 10)


@adversary(7, untested("something else is wrong", shown=None), twin=untested("nothing was in flight", as_expected=True))
def untested_because_the_step_missed(run: RunBuilder) -> Iterator[str]:
    """A fault between two batches was to expose nothing, and untested was expected; the fault came to nothing."""
    run.claim(verdict=Expected(word=Word.UNTESTED))
    run.injection(None, point="batch-committed", planned=2, committed=2, again=2)
    (step,) = run.steps
    run.steps = [replace(step, injected=False)]
    yield "it struck"
    run.steps = [step]


@adversary(
    7,
    untested("step 1 (`kill driver`) does not count for postgres payments:"),
    twin=untested("nothing was in flight", as_expected=True),
)
def untested_because_the_sink_was_not_read(run: RunBuilder) -> Iterator[str]:
    """The sink could not be read when the fault was injected: that nothing was exposed nobody knows."""
    run.claim(verdict=Expected(word=Word.UNTESTED))
    run.injection(None, point="batch-committed", planned=2, committed=2, again=2)
    run.unread["1-injection/0"] = "the server did not answer"
    yield "it could"
    run.unread.clear()


@adversary(7, inconclusive("and something else is open"), twin=inconclusive("did not come back", as_expected=True))
def out_of_time_where_a_stop_was_expected(run: RunBuilder) -> Iterator[str]:
    """A login was to be taken away for good, and the pipeline to stop over it. It came back, and the time was up."""
    run.claim(verdict=Expected(word=Word.INCONCLUSIVE))
    stall(run)
    stopped = run.outcome
    run.outcome = {"caught_up": False, "reasons": ["not caught up: 10 of 40 records were not committed in time"]}
    run.calm()
    yield "it did not come back"
    taken_away(run, 1)
    run.outcome = stopped
