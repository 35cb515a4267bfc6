"""Readers that drop what repeats an identity, as the scenario says: a batch that came again and was dropped has been
put to the test, and nothing else has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.checkers.cells import Row
from harness.scenario import Kind
from tests.corpus.case import adversary, held, untested, violated
from tests.corpus.run_builder import RunBuilder, blame
from tests.folders import PER_RECORD, TOTALS, TYPES

HIDDEN = "folds equal rows"
NOT_SHOWN = untested(HIDDEN, shown=None)
AT_INJECTION, AT_THE_NEXT, IN_THE_END = "1-injection/0", "2-injection/0", "0"
BATCH = (10, 20)


def reader(run: RunBuilder, *, before: list[Row], after: list[Row]) -> None:
    """Batch 1 was whole in the topic and not committed when the fault was injected; what the reader had dropped by
    then, and in the end."""
    run.sink(replace(PER_RECORD, folds=True), types=[TYPES["payments"]])
    run.edits["sink/0.json"] = {"folds": True, "folding": "a record that repeats the id of one before it is dropped"}
    run.steps, run.moments = [], []
    run.injection(1)
    run.dropped = {AT_INJECTION: before, IN_THE_END: after}


@adversary(14, NOT_SHOWN, twin=held("1 repetition"))
def dropped_before_the_fault(run: RunBuilder) -> Iterator[str]:
    """All that the reader ever dropped of the batch, it had dropped when the fault was injected: that brought no
    repetition, and nobody knows that the reader would have seen through it."""
    batch = run.rows(BATCH)
    reader(run, before=batch, after=batch)
    yield "it had dropped nothing by then"
    reader(run, before=[], after=batch)


@adversary(14, NOT_SHOWN, twin=held("1 repetition"))
def another_batch_was_dropped(run: RunBuilder) -> Iterator[str]:
    """Ten records came again and were dropped, but they are those of the batch before."""
    reader(run, before=[], after=run.rows((0, 10)))
    yield "they are those of the batch that was struck"
    reader(run, before=[], after=run.rows(BATCH))


@adversary(14, NOT_SHOWN, twin=held("1 repetition"))
def a_part_of_the_batch_was_dropped(run: RunBuilder) -> Iterator[str]:
    """Nine records of ten came again: whether the reader would have dropped the tenth is not known."""
    reader(run, before=[], after=run.rows((10, 19)))
    yield "so did the tenth"
    reader(run, before=[], after=run.rows(BATCH))


@adversary(14, NOT_SHOWN, twin=held("1 repetition"))
def what_was_dropped_was_another_record(run: RunBuilder) -> Iterator[str]:
    """What came again under the same ids has other amounts. The reader keeps the first of each, and another one, which
    keeps the last, would be wrong."""
    batch = run.rows(BATCH)
    reader(run, before=[], after=[(*row[:2], "0") for row in batch])
    yield "it has the same amounts"
    reader(run, before=[], after=batch)


@adversary(14, NOT_SHOWN, twin=held("1 repetition"))
def nobody_knows_what_had_been_dropped(run: RunBuilder) -> Iterator[str]:
    """The reading at the injection kept nothing of what the reader dropped: the batch may have come twice before the
    fault."""
    batch = run.rows(BATCH)
    reader(run, before=[], after=batch)
    del run.dropped[AT_INJECTION]
    yield "it kept that nothing had been"
    run.dropped[AT_INJECTION] = []


def read_twice(run: RunBuilder, *, before: list[Row]) -> None:
    """A second fault loses the checkpoint: attempt 3 writes all of it again. What the reader had dropped by then."""
    reader(run, before=[], after=[*before, *run.rows((0, 40))])
    run.injection(2, again=0)
    run.dropped[AT_THE_NEXT] = before


@adversary(14, held("2 repetition"), twin=NOT_SHOWN)
def it_came_after_another_fault(run: RunBuilder) -> Iterator[str]:
    """Attempt 2 knew the batch and did not write it again. It came with all others when a second fault had lost the
    checkpoint: that one's doing."""
    read_twice(run, before=[])
    yield "nobody knows what had been dropped when the second fault struck"
    del run.dropped[AT_THE_NEXT]


@adversary(14, NOT_SHOWN, twin=held("1 repetition", "2 repetition"))
def nobody_looked_between_two_faults(run: RunBuilder) -> Iterator[str]:
    """The batch came again after the first fault or after the second one: the reading at the second kept nothing."""
    batch = run.rows(BATCH)
    read_twice(run, before=batch)
    del run.dropped[AT_THE_NEXT]
    yield "it kept that the batch had come by then"
    run.dropped[AT_THE_NEXT] = batch


@adversary(14, NOT_SHOWN, twin=held("1 repetition"))
def a_row_of_each_kind_dropped_once(run: RunBuilder) -> Iterator[str]:
    """The batch has each of its rows twice, and one of each came again and was dropped."""
    run.records = [{**record, "id": at // 2} for at, record in enumerate(run.records)]
    run.records = [{**record, "account": "a", "amount": "1"} for record in run.records]
    batch = run.rows(BATCH)
    reader(run, before=[], after=batch[::2])
    yield "both came again"
    reader(run, before=[], after=batch)


@adversary(14, NOT_SHOWN, twin=held("1 repetition"))
def totals_that_were_dropped(run: RunBuilder) -> Iterator[str]:
    """`expected` is totals: what the reader dropped are rows of some batch's totals, and say nothing of records."""
    run.sink(replace(TOTALS, folds=True), types=[TYPES["totals"]])
    run.edits["sink/0.json"] = {"folds": True}
    run.injection(1)
    run.dropped = {AT_INJECTION: [], IN_THE_END: run.rows(BATCH)}
    yield "the sink has a row for each record"
    run.edits["sink/0.json"] = {"folds": True}
    run.sink(replace(PER_RECORD, folds=True), types=[TYPES["payments"]])
    run.dropped = {AT_INJECTION: [], IN_THE_END: run.rows(BATCH)}


@adversary(
    14,
    violated(Kind.LOST, 1, blame(), fits=None),
    twin=held("1 repetition"),
    guard=True,
)
def dropped_and_one_lost(run: RunBuilder) -> Iterator[str]:
    """The batch came again and was dropped, but for one record that is in the topic under no identity of its own."""
    reader(run, before=[], after=run.rows(BATCH))
    run.tables = [run.rows((0, 15), (16, 40))]
    run.calm()
    yield "it is there"
    run.tables = [run.rows((0, 40))]
