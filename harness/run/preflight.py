"""Before the first record: whether `expected` fits each sink, and the sink is free of what an earlier run left in it.

A sink that the pipeline makes itself is read as soon as it is there. All of them are read again after the first batch
that has records and is committed. What is found here would make the verdict untested after a whole run, or worse: rows
kept from a run that held would be judged as this one's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from harness.checkers.cells import Row
from harness.checkers.schema_check import schema_mismatch
from harness.component import SetsUp, component
from harness.errors import SetupError, StackError, UsageError, WaitError
from harness.ledger import Ledger, Source, Table
from harness.resources import RunResources
from harness.scenario import Scenario, Sink
from harness.sinks import SINKS
from harness.sinks.base import KeepsRows, Missing, Queries, Unmade
from harness.sinks.names import sink_names
from harness.sinks.reading import columns, opened, read
from harness.sinks.table import SinkColumn, SinkTable
from harness.workloads.base import Workload

TASKS_A_CORE = 16
"""Tasks of a batch that one core may have before they are called many: the default of 200 on two cores is a hundred."""
FIRST_MS = 1000
"""How long a lock may keep out the check after the first batch."""


def sinks_now(scenario: Scenario, own: RunResources) -> list[SinkTable]:
    """Return what each sink holds; `unreadable` where it is not there yet. Raises StackError."""
    return [read(sink, own.parts) for sink in scenario.sinks]


def check(scenario: Scenario, workload: Workload, own: RunResources) -> set[int]:
    """Compare what the sinks hold after `setup` with `expected` over no record. Returns the places of the sinks
    that need no second check.

    A sink that the pipeline makes itself is not there yet, and only its `expected` is checked. Raises UsageError
    for `expected` that cannot be run, SetupError where it does not fit its sink, or `setup` left rows there."""
    now, names, checked = sinks_now(scenario, own), sink_names(scenario.sinks), set[int]()
    for place, sink in enumerate(scenario.sinks):
        if sink.expected is None:
            checked.add(place)
            continue
        with _of_nothing(scenario, workload, sink) as ledger:
            expected = ledger.table(sink.expected)
            if now[place].unreadable and not now[place].absent:
                _wrong(sink, own)
            if not now[place].unreadable:
                _fits(sink, expected, now[place].columns, names[place])
                _empty(now[place], expected, sink.key if ledger.aggregates(sink.expected) else ())
                checked.add(place)
    return checked


def late(scenario: Scenario, workload: Workload, own: RunResources, checked: set[int]) -> None:
    """Check the columns of each sink that has appeared since; `checked` has the places of those already checked.

    This costs one question to the server for each sink that is not there yet, and nothing once all are. A server that
    does not answer is asked again at the next check. Raises SetupError for a sink that does not fit its `expected`."""
    names = sink_names(scenario.sinks)
    for place, sink in enumerate(scenario.sinks):
        if place in checked or sink.expected is None:
            continue
        try:
            there = columns(sink, own.parts)
        except UsageError as failure:
            raise SetupError(str(failure)) from failure
        except (StackError, WaitError):
            # A fault may have struck its server, or the system is away for a short time: reported when the sink is
            # read.
            continue
        if there is not None:
            checked.add(place)
            with _of_nothing(scenario, workload, sink) as ledger:
                _fits(sink, ledger.table(sink.expected), there, names[place])


def absent(scenario: Scenario, own: RunResources, checked: Collection[int]) -> list[str]:
    """Return the names of the sinks that are not there yet; `checked` has the places of those that are."""
    names = sink_names(scenario.sinks)
    return [names[place] for place, sink in enumerate(scenario.sinks) if place not in checked and _absent(sink, own)]


def _absent(sink: Sink, own: RunResources) -> bool:
    try:
        return columns(sink, own.parts) is None
    except (UsageError, StackError, WaitError):
        # It is there and wrong, or its server is away: other errors say so.
        return False


def first(scenario: Scenario, own: RunResources, checked: Collection[int]) -> Iterator[tuple[str, str]]:
    """Check the sinks once after the first batch with records was committed; `checked` has the places of the sinks that
    were there already. Yield the name of each sink that is still not there, and why. It may be late, or empty for good,
    so this is no error.

    If a sink keeps its rows for good, they are read too. Nothing is written, and no writer is held up. Raises
    SetupError for a wrong query, and for a row that can never be read exactly."""
    names = sink_names(scenario.sinks)
    for place, sink in enumerate(scenario.sinks):
        found = opened(sink, own.parts)
        if found is None or sink.expected is None:
            continue
        try:
            if place not in checked:
                found.columns()
            if isinstance(found, KeepsRows) and found.keeps_rows:
                with found.reading(wait_ms=FIRST_MS) as rows:
                    next(rows.parts, None)
        except Missing as absent:
            yield names[place], str(absent)
        except UsageError as failure:
            raise SetupError(f"after the first committed batch: {failure}") from failure
        except (StackError, WaitError):
            # A fault may have struck its server meanwhile: this is reported when the sink is needed.
            continue


def crowded(stateful: Mapping[str, int], conf: Mapping[str, str]) -> dict[str, int]:
    """Of the queries that keep state, with their shuffle partitions, those whose batches have many tasks for each core;
    none where the number of cores is not known."""
    cores = conf.get("spark.cores.max", "")
    most = int(cores) * TASKS_A_CORE if cores.isascii() and cores.isdigit() else None
    return {} if most is None else {query: count for query, count in stateful.items() if count > most}


@contextmanager
def _of_nothing(scenario: Scenario, workload: Workload, sink: Sink) -> Iterator[Ledger]:
    """What `expected` of a sink is asked of, over no record. Raises UsageError if its windows have no times."""
    columns = tuple((c.name, c.type, c.expression) for c in workload.columns)
    source = Source(parquet=None, columns=columns, places=() if sink.watermark else None)
    with Ledger(source, where=f"scenario `{scenario.name}`") as ledger:
        if sink.watermark is not None:
            ledger.timed(sink.watermark)
        yield ledger


def _fits(sink: Sink, expected: Table, there: Sequence[SinkColumn], name: str) -> None:
    wrong = schema_mismatch(sink, expected.described, there, name=name)
    if wrong:
        place = "`columns`" if sink.options.get("columns") else "the table in `setup`"
        raise SetupError(f"{'; '.join(wrong)}. Mend `expected`, `key`, or {place}")


def _wrong(sink: Sink, own: RunResources) -> None:
    """Raise SetupError for a query, or what `setup` makes, that is there and wrong: the pipeline will find it so. What
    code or files give may still become readable."""
    kind = SINKS[sink.kind]
    made = bool(kind.component) and isinstance(component(kind.component), SetsUp)
    if made or isinstance(kind, Queries):
        try:
            columns(sink, own.parts)
        except Unmade:
            return
        except UsageError as failure:
            raise SetupError(str(failure)) from failure


def _empty(now: SinkTable, expected: Table, key: Collection[str]) -> None:
    """Raise SetupError for rows after `setup`: a row that is there already hides that the pipeline never wrote it. Rows
    that `expected` makes of no record are left out (a total has a row even then), and totals at zero. `key` tells which
    columns are totals."""
    kept = Counter(now.rows)
    names = [column.name for column in now.columns]
    if set(names) == set(expected.columns):
        kept -= Counter(tuple(row[expected.columns.index(name)] for name in names) for row in expected.rows)
    numbers = [column.family in ("number", "float") for column in now.columns]
    totals = [place for place, name in enumerate(names) if key and name not in key]
    kept = Counter({row: count for row, count in kept.items() if not _zero(row, totals, numbers)})
    if kept:
        request = f"asked for an empty sink; saw {kept.total()} rows in {now.target} before the first record was sent"
        cure = "Name the table without a schema: each run has its own. Or drop and make it in `setup`, or insert no row"
        raise SetupError(f"{request}. {cure}")


def _zero(row: Row, totals: Sequence[int], numbers: Sequence[bool]) -> bool:
    """Return whether a row is one of totals, and nothing but zero."""
    cells = [(row[place], numbers[place]) for place in totals]
    return bool(cells) and all(c is None or (number and re.fullmatch(r"-?0+(\.0+)?", c)) for c, number in cells)
