"""What the view `ledger` is made of: the records of the source, each with its batch, as tables of DuckDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from harness.checkers.closed_windows import Placed
from harness.errors import HarnessError
from harness.run_folder.ledger import SOURCE, read_source
from harness.snapshot import Batch

OWN_COLUMNS = ("_partition", "_offset", "_timestamp_ms", "_batch", "value", "key")
"""What `ledger` has besides the workload's columns; a workload's column of the same name takes its place."""

WINDOW_COLUMNS = ("_late", "_open")
"""What it has of a sink with a watermark: whether that drops the record, whether no batch has written its window."""

HIDDEN = ("_committed", "__partition", "__offset")
"""What `records` has besides, for our own use: a workload's columns cannot hide it. The last two say where it lies, or,
of windows, in which order it was written."""

RESERVED = frozenset({"_partition", "_offset", "_batch", "_committed"})
"""The columns that identify a record: a workload's column of that name would hide one."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """What the view `ledger` is made of; `parquet` None means no record at all. `columns` are (name, type, expression
    over `value` and `key`), `batches` those of the run as the history has them, `committed` the next offsets by
    partition; None means that all records count. `places`: the records in the order in which windows were written, and
    `batches` are ranges of that order; None where batches write what they took."""

    parquet: Path | None
    columns: tuple[tuple[str, str, str], ...]
    batches: Sequence[Batch] = ()
    committed: Mapping[int, int] | None = None
    places: Sequence[Placed] | None = None

    @property
    def own(self) -> tuple[str, ...]:
        """Our columns in `ledger`."""
        return OWN_COLUMNS if self.places is None else (*OWN_COLUMNS, *WINDOW_COLUMNS)

    @property
    def reserved(self) -> frozenset[str]:
        """The columns that no workload may have."""
        return RESERVED if self.places is None else RESERVED.union(WINDOW_COLUMNS)

    def tables(self) -> dict[str, pa.Table]:
        """Return the tables that `query` reads. Raises HarnessError if something of the run is damaged."""
        table = pa.Table.from_batches([], SOURCE) if self.parquet is None else read_source(self.parquet)
        known = {"source": table, "ranges": ranges(self.batches), "front": _next_offsets(self.committed, table)}
        return known if self.places is None else {**known, "places": _places(self.places)}

    def query(self, columns: Sequence[str]) -> str:
        """Return what makes the table `records`."""
        return (_TAKEN if self.places is None else _WRITTEN).format(columns=", ".join(columns))


# ASOF finds at most one range a record, so that batches which overlap can never double a record.
_TAKEN = """
create temp table records as
with raw as (
    select s.partition as _partition, s."offset" as _offset, s.timestamp_ms as _timestamp_ms,
           case when s."offset" < r."end" then r.batch end as _batch,
           decode(s.value) as value, decode(s.key) as key, s."offset" < f.next as _committed,
           s.partition as __partition, s."offset" as __offset
    from source s
    left join front f on f.partition = s.partition
    asof left join ranges r on r.partition = s.partition and s."offset" >= r.start
)
select {columns} from raw order by __partition, __offset
"""
_WRITTEN = """
create temp table records as
with raw as (
    select s.partition as _partition, s."offset" as _offset, s.timestamp_ms as _timestamp_ms, p.batch as _batch,
           p.late as _late, p.open as _open,
           decode(s.value) as value, decode(s.key) as key, s."offset" < f.next as _committed,
           p.at_partition as __partition, p."at" as __offset
    from source s
    join places p on p.partition = s.partition and p."offset" = s."offset"
    left join front f on f.partition = s.partition
)
select {columns} from raw order by __partition, __offset
"""


def ranges(batches: Sequence[Batch]) -> pa.Table:
    """Return what each batch took."""
    try:
        rows = [
            (batch.batch, partition, start, end)
            for batch in batches
            for partition, (start, end) in batch.ranges.items()
            if end > start
        ]
        return _numbers(
            {name: [row[at] for row in rows] for at, name in enumerate(("batch", "partition", "start", "end"))}
        )
    except (OverflowError, pa.ArrowException) as failure:
        words = f"the batches in the history are damaged: {failure!r}"
        raise HarnessError(f"{words}. Run the scenario again") from failure


def _numbers(columns: Mapping[str, Sequence[int]]) -> pa.Table:
    # To make an array of a list pyarrow loads pandas, where there is one: that takes longer than to check a scenario.
    if not any(columns.values()):
        return pa.Table.from_batches([], pa.schema([(name, pa.int64()) for name in columns]))
    return pa.table({name: pa.array(column, pa.int64()) for name, column in columns.items()})


def _places(places: Sequence[Placed]) -> pa.Table:
    types = {name: pa.bool_() if name in ("late", "open") else pa.int64() for name in Placed._fields}
    return pa.table({name: pa.array([getattr(p, name) for p in places], kind) for name, kind in types.items()})


def _next_offsets(committed: Mapping[int, int] | None, source: pa.Table) -> pa.Table:
    """Return the first offset of each partition that does not count."""
    partitions = sorted(set(source["partition"].to_pylist()))
    everything = 2**62
    ends = [everything if committed is None else committed.get(partition, 0) for partition in partitions]
    try:
        return _numbers({"partition": partitions, "next": ends})
    except (ArithmeticError, TypeError, ValueError, pa.ArrowException) as failure:
        words = f"`committed` in the history is damaged: {failure!r}"
        raise HarnessError(f"{words}. Run the scenario again") from failure
