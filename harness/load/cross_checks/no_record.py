"""The SQL of a scenario, asked of DuckDB over no record: each `expected` is a query over the ledger."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from harness.checkers.schema_check import Column, schema_mismatch
from harness.errors import UsageError, one_line
from harness.fields.hints import did_you_mean
from harness.load import build
from harness.load.cross_checks.readable import unguessed
from harness.load.models import ExpectedShape
from harness.load.reader import Section
from harness.load.with_header import Claim
from harness.sinks import SINKS
from harness.sinks.base import NamesColumns
from harness.workloads import make

if TYPE_CHECKING:
    from harness.ledger import Ledger

LATE = re.compile(r'column "(_late|_open)"', re.IGNORECASE)
"""As DuckDB names one that it has not found."""


def check_queries(claim: Claim, *, root: Path) -> None:
    """Add what is wrong with `expected`, whatever else is wrong; nothing where the input is: it says of which columns
    a record is. Whether they fit their sinks is asked of a file that is right otherwise."""
    described: list[tuple[Section, list[Column]]] = []
    wrong: list[tuple[Section, str]] = []
    for sink in claim.sinks:
        if not (sql := sink.get("expected")):
            continue
        try:
            with of_nothing(claim, root=root, where=sink.path, windows=windowed(sink)) as ledger:
                if ledger is not None:
                    described.append((sink, ledger.table(sql).described))
        except UsageError as failure:
            lines = (" ".join(line.split()) for line in str(failure).splitlines())
            wrong.append((sink, "; ".join(filter(None, lines)) + unclosed(sink, str(failure))))
    for sink, expected in described:
        unguessed(sink, {column.name for column in expected})
    for sink, _ in wrong:
        unguessed(sink, set())
    for sink, expected in described if not claim.top.mistakes else ():
        fits(sink, expected)
    for sink, words in wrong:
        sink.wrong(words, "expected")


def unclosed(sink: Section, words: str) -> str:
    """Return what a sink lacks whose `expected` was refused in these words: its ledger has columns of windows with a
    watermark alone."""
    column = None if windowed(sink) else LATE.search(words)
    return f"; only a sink with `watermark` has {column[1]!r}: add `{sink.path}.watermark`" if column else ""


def windowed(sink: Section) -> bool:
    """Return whether it has a watermark, even one with a misspelt name, which was refused."""
    known = ExpectedShape.model_fields
    return any(
        key == "watermark" or (key not in known and did_you_mean(key, ["watermark"])) for key in sink.node.items or ()
    )


def fits(sink: Section, expected: Sequence[Column]) -> None:
    """Add why `expected` cannot be compared with its sink, as far as the file names the sink's columns."""
    noun = build.sink(sink)
    kind = SINKS[noun.kind]
    declared = kind.declared_columns(noun.options) if isinstance(kind, NamesColumns) else ()
    if disordered(sink, [column.name for column in expected], [column.name for column in declared]):
        return
    for words in schema_mismatch(noun, expected, declared or expected, name=sink.path):
        sink.wrong(f"{words}. Mend `expected`{', `key` or `columns`' if declared else ' or `key`'}", "expected")


def disordered(sink: Section, expected: Sequence[str], named: Sequence[str]) -> bool:
    """Add each column of the order that the sink has not; the file names its columns, or they are those of
    `expected` and the one that rows are sorted by."""
    order, whose = sink.section("order"), "`columns`" if named else "`expected`"
    places: list[tuple[tuple[str | int, ...], str | None]] = [
        ((key,), order.get(key)) for key in ("by", "follows") if key != "by" or named
    ]
    places += [(("per", index), column) for index, column in enumerate(order.get("per", ()))]
    known = named or [*expected, str(order.get("by"))]
    wrong = [(loc, column) for loc, column in places if column is not None and column not in known]
    for loc, column in wrong:
        order.wrong(f"{order.path}.{loc[0]} {column!r} is no column of {whose}{did_you_mean(column, known)}", *loc)
    return bool(wrong)


@contextmanager
def of_nothing(claim: Claim, *, root: Path, where: str, windows: bool = False) -> Iterator[Ledger | None]:
    """What `expected` is asked of, `where` in the words of mistakes; None where the input is wrong or not known. With
    `windows` the ledger has the columns that a watermark gives it. That a column of the workload's fits no record is
    said at the input, once."""
    # Loading DuckDB takes longer than reading a scenario.
    from harness.ledger import Ledger, Source

    owner, given = claim.owner("input"), claim.input
    unknown = "input" not in owner.values and (owner.has("input") or not claim.whole)
    if unknown or any(key not in given.values for key in given.node.items or ()):
        yield None
        return
    try:
        workload = make(build.given(given), seed=0, root=root)
    except UsageError as failure:
        if not claim.top.mistakes:
            owner.wrong(one_line(failure), "input", build.workload(given))
        yield None
        return
    columns = tuple((column.name, column.type, column.expression) for column in workload.columns)
    source = Source(parquet=None, columns=columns, places=() if windows else None)
    try:
        made = Ledger(source, where=where)
    except UsageError as failure:
        of_input(claim, one_line(failure))
        yield None
        return
    with made as ledger:
        yield ledger


def of_input(claim: Claim, words: str) -> None:
    """Say what is wrong with the records, unless something was said there already."""
    owner, loc = claim.owner("input"), ("input", build.workload(claim.input))
    node = owner.node.at(loc)
    if (owner.file, node.line, node.column) not in [(each.file, each.line, each.column) for each in owner.mistakes]:
        owner.wrong(words, *loc)
