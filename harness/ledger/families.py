"""The family of a type of DuckDB's, and how a value of it leaves DuckDB as text."""

from __future__ import annotations

_FAMILIES = {
    "number": "TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINTEGER UBIGINT UHUGEINT BIGNUM DECIMAL",
    "float": "FLOAT DOUBLE",
    "text": "VARCHAR ENUM",
    "bool": "BOOLEAN",
    "timestamp": "TIMESTAMP TIMESTAMP_S TIMESTAMP_MS TIMESTAMP_NS",
    "date": "DATE",
    "time": "TIME",
    "bytes": "BLOB",
    "json": "JSON",
    "uuid": "UUID",
}
FAMILY_OF = {name: family for family, names in _FAMILIES.items() for name in names.split()} | {
    "TIMESTAMP WITH TIME ZONE": "instant"
}


def family_of(type_: str) -> str | None:
    """Return the family of a type of DuckDB's, whatever its modifiers; None for a list, or what else has no canonical
    text."""
    return None if type_.endswith("]") else FAMILY_OF.get(type_.split("(")[0])


def as_text(column: str, family: str) -> str:
    """Return the expression whose text is the value of a column, exactly."""
    if family == "bytes":
        return f"hex({column})"
    if family == "float":
        # FLOAT as the double it is: its own text would be read back as another double.
        return f"cast(cast({column} as double) as varchar)"
    return f"cast({column} as varchar)"
