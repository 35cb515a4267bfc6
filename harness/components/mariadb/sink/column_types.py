"""What the columns of a result keep, by the server's description of it: `decimal(12,2)`, `datetime(6)`, `float`."""

from __future__ import annotations

from typing import Any

from pymysql.constants import FIELD_TYPE, FLAG

from harness.components.mariadb.database import quoted
from harness.sinks.table import SinkColumn

BINARY = 63
"""The character set of what is no text."""
INTEGERS = {
    FIELD_TYPE.TINY: "tinyint",
    FIELD_TYPE.SHORT: "smallint",
    FIELD_TYPE.INT24: "mediumint",
    FIELD_TYPE.LONG: "int",
    FIELD_TYPE.LONGLONG: "bigint",
    FIELD_TYPE.YEAR: "year",
}
TIMES = {
    FIELD_TYPE.TIMESTAMP: ("timestamp", "instant"),
    FIELD_TYPE.DATETIME: ("datetime", "timestamp"),
    FIELD_TYPE.TIME: ("time", "time"),
}
FLOATS = {FIELD_TYPE.FLOAT: "float", FIELD_TYPE.DOUBLE: "double"}
TEXTS = (
    FIELD_TYPE.VARCHAR,
    FIELD_TYPE.VAR_STRING,
    FIELD_TYPE.STRING,
    FIELD_TYPE.TINY_BLOB,
    FIELD_TYPE.MEDIUM_BLOB,
    FIELD_TYPE.LONG_BLOB,
    FIELD_TYPE.BLOB,
)


def column(field: Any) -> SinkColumn | None:
    """Return what PyMySQL says of one column; None for a type that has no exact and comparable text."""
    found = _known(field)
    return SinkColumn(name=field.name, type=found[0], family=found[1]) if found else None


def _known(field: Any) -> tuple[str, str] | None:
    kind = field.type_code
    if kind in INTEGERS:
        return INTEGERS[kind], "number"
    if kind == FIELD_TYPE.BIT:
        return f"bit({field.length})", "number"
    if kind in (FIELD_TYPE.DECIMAL, FIELD_TYPE.NEWDECIMAL):
        # The length counts the point and the sign.
        digits = field.length - bool(field.scale) - (not field.flags & FLAG.UNSIGNED)
        return f"decimal({digits},{field.scale})", "number"
    if kind in FLOATS:
        return FLOATS[kind], "float"
    if kind in TIMES:
        name, family = TIMES[kind]
        return f"{name}({field.scale})", family
    if kind in (FIELD_TYPE.DATE, FIELD_TYPE.NEWDATE):
        return "date", "date"
    if kind in TEXTS:
        return ("binary", "bytes") if field.charsetnr == BINARY else ("text", "text")
    return None


def cell(column: SinkColumn) -> str:
    """Return the expression whose text is the value, exactly."""
    name = quoted(column.name)
    if column.family == "bytes":
        return f"lower(hex({name}))"
    if column.family == "instant":
        return f"concat(cast({name} as char), 'Z')"
    if column.type == "float":
        # As the double it is: its own text is rounded to six digits.
        return f"cast(cast({name} as double) as char)"
    if column.type.startswith("bit("):
        return f"cast({name} + 0 as char)"
    return f"cast({name} as char)"
