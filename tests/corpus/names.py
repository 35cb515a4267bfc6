"""Item 11: sinks that are told apart by a name that is cut at sixty characters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.checkers.cells import Row
from harness.scenario import Kind, Word
from tests.corpus.case import Right, adversary, void
from tests.corpus.run_builder import RunBuilder, blame
from tests.folders import PER_RECORD, TYPES

LONG = "select id, account, amount from a_table_of_payments_with_a_very_long_name where half = {}"


def namesakes(run: RunBuilder) -> None:
    """Two queries that only what follows the sixtieth character tells apart."""
    halves = [
        replace(
            PER_RECORD, target=LONG.format(half), effect=f"select * from ({PER_RECORD.effect}) where id % 2 = {half}"
        )
        for half in (1, 0)
    ]
    run.sink(*halves, types=[TYPES["payments"]] * 2)


APART = "(sink 1) holds not one of the keys expected of it"
STRAY = {Kind.LOST: 20, Kind.UNEXPECTED: 1}


@adversary(11, Right(
    word=Word.VIOLATED, said=APART, kinds={Kind.LOST: 25, Kind.UNEXPECTED: 1}, fits=None,
    faults=(blame(1, point="batch-planned"),),
), twin=void(APART, kinds=STRAY, fits=None, shown=None, faults=(blame(1, point="batch-planned"),)))  # fmt: skip
def findings_of_a_namesake(run: RunBuilder) -> Iterator[str]:
    """The first sink is the wrong table, so what is missing there says nothing. Its namesake lost a batch, and that is
    thrown away with it."""
    namesakes(run)
    run.injection(1, point="batch-planned", holds=10)
    stray: list[Row] = [("-1", "a", "1")]
    run.tables = [stray, run.rows((0, 10), (20, 40), sink=1)]
    run.calm()
    yield "the namesake lost nothing"
    run.tables = [stray, run.rows((0, 40), sink=1)]
