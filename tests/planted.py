"""The fourteen planted faults through a real sink: what it is made to hold, and that each difference is found."""

from __future__ import annotations

from random import Random

from harness.checkers.cells import Row
from harness.checkers.compare import Case
from harness.checkers.self_tests import self_tests
from harness.sinks.table import SinkTable
from tests.laws import FAULTS, Signature, good_rows, marks


def plant(fault: str) -> tuple[list[Row], list[Row], Signature]:
    """The rows that should be there, those that the sink is made to hold, and what the comparison must say."""
    good = good_rows(2000)
    found, must = FAULTS[fault](good, Random(7))
    return good, found, must


def is_found(good: list[Row], there: SinkTable, must: Signature) -> None:
    """The comparison says just that of what was read, and each self-test finds its own fault."""
    case = case_of(good, there)
    found = marks(case)
    assert found == must
    assert all(self_test.found for self_test in self_tests(case, bad={key for _, key, _ in found}))


def case_of(expected: list[Row], there: SinkTable) -> Case:
    """What was read, against what should be there."""
    names = tuple(column.name for column in there.columns)
    families = tuple(column.family for column in there.columns)
    return Case(sink="s", columns=names, families=families, key=("id",), expected=expected, found=there.rows)
