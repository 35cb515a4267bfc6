"""Makes a row of a record, or refuses it by its partition and offset."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from harness.checkers.cells import Cell, Row
from harness.errors import UsageError
from harness.sinks.json_columns import Wanted
from harness.sinks.json_values import fields, inexact, of_bytes, of_json, utf8
from harness.sinks.table import SinkColumn

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def columns_of(wanted: Sequence[Wanted]) -> tuple[SinkColumn, ...]:
    """As they are compared."""
    return tuple(SinkColumn(name=each.name, type=each.full, family=each.family) for each in wanted)


def row_of(record: Any, wanted: Sequence[Wanted], *, topic: str) -> Row:
    """Return the row of a record of the client's. Raises UsageError for what cannot be read exactly."""
    try:
        found = _fields(record) if any(column.of == "field" for column in wanted) else {}
    except ValueError as refused:
        raise _refusal(record, topic, f"its value {refused}") from None
    out: list[Cell] = []
    for column in wanted:
        try:
            out.append(_cell(record, column, found))
        except ValueError as refused:
            raise _refusal(record, topic, f"column {column.name}: {refused}") from None
    return tuple(out)


def _refusal(record: Any, topic: str, words: str) -> UsageError:
    return inexact(f"the record at partition {record.partition}, offset {record.offset} of {topic}", words)


def _fields(record: Any) -> dict[str, Any]:
    if record.value is None:
        raise ValueError("is null, and no object")
    return fields(utf8(record.value))


def _cell(record: Any, column: Wanted, found: dict[str, Any]) -> Cell:
    match column.of:
        case "field":
            return of_json(found.get(column.source), column)
        case "header":
            return of_bytes(_header(record, column.source), column)
        case "key":
            return of_bytes(record.key, column)
        case "value":
            return of_bytes(record.value, column)
        case "timestamp":
            return _instant(record.timestamp)
        case place:
            return str(getattr(record, place))


def _header(record: Any, name: str) -> bytes | None:
    values: list[bytes | None] = [value for key, value in record.headers if key == name]
    if len(values) > 1:
        raise ValueError(f"the record has {len(values)} headers {name}")
    return values[0] if values else None


def _instant(timestamp_ms: int) -> Cell:
    if timestamp_ms < 0:
        return None
    try:
        moment = EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        raise ValueError(f"its timestamp, {timestamp_ms} ms, is beyond the calendar") from None
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
