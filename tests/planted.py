"""The fourteen planted faults through a real sink: what it is made to hold, and that each difference is found."""

from __future__ import annotations

import json
from pathlib import Path
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


def for_spark(folder: Path) -> dict[str, str]:
    """Write what a sink is made to hold as JSON, a file for each fault that a Spark of the tests makes a table of; what
    each table is called, and its fault."""
    folder.mkdir()
    names = {f"planted_{place}": fault for place, fault in enumerate(FAULTS)}
    for name, fault in names.items():
        rows = (
            f'{{"id": {number or 0}, "account": {json.dumps(account)}, "amount": {amount or 0}}}\n'
            for number, account, amount in plant(fault)[1]
        )
        (folder / f"{name}.json").write_text("".join(rows), encoding="utf-8")
    return names


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
