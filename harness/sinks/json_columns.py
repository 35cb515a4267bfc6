"""What a scenario file says of columns whose values are JSON: `id bigint, at timestamp_ntz, origin string of header o`.

Names and types are written as in Spark's DDL. A column is the field of that name of the JSON object in the value,
unless `of` says what else it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from harness.checkers.schema_check import Column
from harness.fields import values as v
from harness.fields.hints import did_you_mean

DEFAULT = "key string of key, value string of value"
"""Where the file says nothing: both as text."""
WHOLE = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
"""The bits of each."""
FAMILIES = {
    **dict.fromkeys(WHOLE, "number"),
    "decimal": "number",
    "float": "float",
    "double": "float",
    "boolean": "bool",
    "string": "text",
    "binary": "bytes",
    "date": "date",
    "timestamp": "instant",
    "timestamp_ntz": "timestamp",
}
ALIASES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "dec": "decimal",
    "numeric": "decimal",
    "real": "float",
    "timestamp_ltz": "timestamp",
}
"""What Spark calls a type as well."""
RECORD = {"partition": ("int", "bigint"), "offset": ("bigint",), "timestamp": ("timestamp",)}
"""What a record has beside key, value and headers, and the types that hold it."""
BYTES = ("string", "binary", "decimal", *WHOLE)
"""What bytes that are no JSON may be read as."""
PRECISION_MAX = 38
COLUMN = re.compile(
    r"([^\s:]+)(?:\s*:\s*|\s+)([A-Za-z]\w*(?:<.*>)?)\s*(?:\(\s*([0-9]+)\s*(?:,\s*([0-9]+)\s*)?\))?"
    # A row that lacks it is compared as it is, so that this says nothing.
    r"(?:\s*\b[nN][oO][tT]\s+[nN][uU][lL][lL])?"
    r"(?:\s+of\s+(\S+)(?:\s+(\S.*))?)?(\s+\S.*)?",
    re.DOTALL,
)
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
EXAMPLE = "columns such as `id bigint, amount decimal(12,2), origin string of header origin`"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A column: what it is called, its type (`decimal` with `precision` and `scale`), and what of the record it is:
    `field`, `header` (of that `source` name), `key`, `value`, `partition`, `offset` or `timestamp`."""

    name: str
    type: str
    of: str = "field"
    source: str = ""
    precision: int = 10
    scale: int = 0

    @property
    def full(self) -> str:
        """Its type with precision and scale."""
        return f"decimal({self.precision},{self.scale})" if self.type == "decimal" else self.type

    @property
    def family(self) -> str:
        """That of its cells."""
        return FAMILIES[self.type]


def parsed(text: str) -> tuple[Wanted, ...]:
    """Return the columns. Raises ValueError in words."""
    found = tuple(_column(part.strip()) for part in _split(text))
    twice = {column.name for column in found if [each.name for each in found].count(column.name) > 1}
    if twice:
        raise ValueError(f"{', '.join(sorted(twice))} is there twice")
    return found


def compared(text: str) -> tuple[Column, ...]:
    """Return the columns as they are compared with those of `expected`; none of an empty text."""
    return tuple(Column(each.name, each.full, each.family) for each in (parsed(text) if text else ()))


def names(text: str) -> tuple[str, ...]:
    """Return the names of columns, with commas between them."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _split(text: str) -> list[str]:
    """At the commas that are in no brackets."""
    depth, parts = 0, [""]
    for sign in text:
        depth += (sign in "(<") - (sign in ")>")
        if sign == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


def _column(text: str) -> Wanted:
    match = COLUMN.fullmatch(text)
    if match is None or not NAME.fullmatch(match[1]):
        raise ValueError(f"{text!r} is no column: write NAME TYPE, or NAME TYPE of header NAME")
    name, written, precision, scale, of, source, rest = match.groups()
    type_ = ALIASES.get(written.lower(), written.lower())
    if type_ not in FAMILIES:
        near = did_you_mean(type_, [*FAMILIES, *ALIASES]) or f": there are {', '.join(FAMILIES)}"
        raise ValueError(f"{name} has the unknown type {written}{near}")
    if rest:
        raise ValueError(f"{name}: what is {rest.strip()!r} after its type? There are `not null` and `of`")
    if precision and type_ != "decimal":
        raise ValueError(f"{name}: {type_} takes no length")
    if of is None:
        of, source = "field", name
    made = Wanted(
        name=name, type=type_, of=of, source=source or "", precision=int(precision or 10), scale=int(scale or 0)
    )
    _sound(made)
    return made


def _sound(made: Wanted) -> None:
    """Raises ValueError for what no record can give."""
    if not made.scale <= made.precision <= PRECISION_MAX or not made.precision:
        raise ValueError(f"{made.name}: a decimal has 1 to {PRECISION_MAX} digits, its decimals among them")
    if bool(made.source) != (made.of in ("field", "header")):
        raise ValueError(f"{made.name}: of header NAME, of field NAME, of key, of value, or of {', of '.join(RECORD)}")
    if made.of in RECORD:
        if made.type not in RECORD[made.of]:
            raise ValueError(f"{made.name}: the {made.of} of a record is {' or '.join(RECORD[made.of])}")
    elif made.of in ("key", "value", "header"):
        if made.type not in BYTES:
            raise ValueError(f"{made.name}: a {made.of} is read as {', '.join(BYTES)}, not as {made.type}")
    elif made.of != "field":
        raise ValueError(
            f"{made.name}: of what is {made.of!r}? There are field, header, key, value, {', '.join(RECORD)}"
        )


def _columns(value: object) -> str:
    if not isinstance(value, str):
        raise v.refusal(EXAMPLE, value)
    try:
        parsed(value)
    except ValueError as failure:
        raise v.worded(f"must be {EXAMPLE}: {failure}") from None
    return value


def _names(value: object) -> str:
    if isinstance(value, str) and all(NAME.fullmatch(name.strip()) for name in value.split(",")):
        return value
    raise v.refusal("columns with commas between them", value)


Columns = Annotated[str, v.typed(_columns, EXAMPLE, type="string", minLength=1)]
Names = Annotated[str, v.typed(_names, "columns with commas between them", type="string", minLength=1)]
