"""Which of Arrow's types can be compared exactly. A type that is not known to arrive as it is is refused by its name,
with the type to cast it to."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types as t

PRECISION_MAX = 38
COARSE = ("s", "ms", "us")


def refusal(schema: pa.Schema) -> str:
    """Return what is wrong with the first column that cannot be compared; empty if all can be."""
    for each in schema:
        if cure := _cure(each.type):
            return f"it gave a column {each.name} of type {each.type}, which cannot be compared exactly. {cure}"
    return ""


def _cure(kind: pa.DataType) -> str:
    """Return what to do about a type; empty if nothing need be."""
    if t.is_boolean(kind) or t.is_integer(kind) or t.is_float32(kind) or t.is_float64(kind) or t.is_date32(kind):
        return ""
    if any(is_it(kind) for is_it in (t.is_string, t.is_large_string, t.is_binary, t.is_large_binary)):
        return ""
    if t.is_decimal128(kind):
        return "" if kind.scale >= 0 else f"Cast it to decimal128({PRECISION_MAX}, 0)"
    if t.is_timestamp(kind):
        return "" if kind.unit in COARSE else "Cast it to timestamp('us'), which refuses digits that it would lose"
    if t.is_time(kind):
        return "" if kind.unit in COARSE else "Cast it to time64('us')"
    if t.is_dictionary(kind):
        return "Decode it: `column.dictionary_decode()`"
    if t.is_null(kind):
        return "Say its type: `pyarrow.array(values, type)`"
    if t.is_decimal(kind):
        return f"Cast it to decimal128({PRECISION_MAX}, scale), or to text here and in `expected`"
    return "Cast it to a plain type, here and in `expected` alike"
