"""Item 11: sinks that are told apart by a name that is cut at sixty characters."""

from __future__ import annotations

from dataclasses import replace

from harness.checkers.cells import Row
from harness.scenario import Kind
from tests.corpus.case import adversary, violated
from tests.corpus.run_builder import RunBuilder, blame
from tests.folders import PER_RECORD, TYPES

LONG = "select id, account, amount from a_table_of_payments_with_a_very_long_name where half = {}"


def namesakes(run: RunBuilder) -> None:
    """Two queries that only what follows the sixtieth character tells apart."""
    halves = [
        replace(
            PER_RECORD,
            target=LONG.format(half),
            expected=f"select * from ({PER_RECORD.expected}) where id % 2 = {half}",
        )
        for half in (1, 0)
    ]
    run.sink(*halves, types=[TYPES["payments"]] * 2)


@adversary(
    11,
    violated(
        Kind.UNEXPECTED,
        1,
        blame(point="batch-planned"),
        kinds={Kind.UNEXPECTED: 1, Kind.LOST: 25},
        fits=None,
    ),
)
def findings_of_a_namesake(run: RunBuilder) -> None:
    """The first sink is the wrong table, so what is missing there says nothing. Its namesake lost a batch, and that is
    thrown away with it."""
    namesakes(run)
    run.injection(1, point="batch-planned", holds=10)
    stray: list[Row] = [("-1", "a", "1")]
    run.tables = [stray, run.rows((0, 10), (20, 40), sink=1)]
    run.calm()
