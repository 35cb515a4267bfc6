"""Values of Arrow's types, and what a sink that is read as Arrow makes of each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa

from harness.checkers.cells import Row
from harness.resources import Resources
from harness.scenario import Sink
from harness.sinks.reading import columns, read

Value = tuple[pa.DataType, object, str, str | None]
"""A type, a value of it, the family of its column, and its canonical cell."""
DAY = datetime(2026, 1, 31, 10, 0, 0, 123456)
EXACT: list[Value] = [
    (pa.bool_(), True, "bool", "true"),
    (pa.int64(), 2**53 + 1, "number", "9007199254740993"),
    (pa.decimal128(38, 19), Decimal("9007199254740993.0000000000000000001"), "number",
     "9007199254740993.0000000000000000001"),
    (pa.decimal128(12, 2), Decimal("1.50"), "number", "1.5"),
    (pa.float32(), 0.1, "float", "0.10000000149011612"),
    (pa.float64(), 0.1 + 0.2, "float", "0.30000000000000004"),
    (pa.float64(), -0.0, "float", "-0.0"),
    (pa.float64(), float("nan"), "float", "nan"),
    (pa.string(), "Ü\n\t\\N 😀 \0 ", "text", "Ü\n\t\\N 😀 \0 "),
    (pa.string(), "", "text", ""),
    (pa.binary(), b"\x00\xff", "bytes", "00ff"),
    (pa.date32(), date(2026, 1, 31), "date", "2026-01-31"),
    (pa.timestamp("us"), DAY, "timestamp", "2026-01-31T10:00:00.123456"),
    (pa.timestamp("us", "UTC"), DAY.replace(tzinfo=UTC), "instant", "2026-01-31T10:00:00.123456Z"),
    (pa.int64(), None, "number", None),
    (pa.string(), None, "text", None),
]  # fmt: skip
"""Those that every format has."""


def table_of(value: Value) -> pa.Table:
    """The value alone, as `x`."""
    return pa.table({"x": pa.array([value[1]], value[0])})


def arrives(value: Value, sink: Sink, own: dict[str, Resources]) -> None:
    """The sink, which holds the value alone, reads it back exactly, and says of its columns the same without rows."""
    _, _, family, cell = value
    found = read(sink, own)
    assert (found.unreadable, [(c.name, c.family) for c in found.columns], found.rows) == (
        "",
        [("x", family)],
        [(cell,)],
    )
    assert columns(sink, own) == found.columns


def payments(made: Sequence[Row]) -> pa.Table:
    """Rows of an id, a text and an amount."""
    return pa.table({
        "id": pa.array([int(row[0] or 0) for row in made], pa.int64()),
        "account": pa.array([row[1] for row in made], pa.string()),
        "amount": pa.array([Decimal(row[2] or 0) for row in made], pa.decimal128(38, 9)),
    })  # fmt: skip
