"""Makes a row of a document, or refuses it by its id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from harness.checkers.cells import Cell, Row
from harness.components.opensearch.sink.mapping import Field
from harness.errors import UsageError
from harness.sinks.json_values import Number, inexact, of_bytes, of_json

EXACT_MAX = 2**53
"""Up to here a scaled number goes through a double unchanged."""


def row_of(hit: Mapping[str, Any], fields: Sequence[Field], *, index: str, all_of_it: bool) -> Row:
    """Return the row of one document of a search. `all_of_it`: a field of it that is no column is refused. Raises
    UsageError for what cannot be read exactly."""
    source = hit.get("_source")
    if not isinstance(source, dict):
        raise _refusal(hit, index, "it has no `_source`")
    if all_of_it and (more := source.keys() - {field.wanted.source for field in fields}):
        raise _refusal(hit, index, f"it has {', '.join(sorted(more))}, which the mapping has not")
    out: list[Cell] = []
    for field in fields:
        try:
            out.append(_cell(hit, source, field))
        except ValueError as refused:
            raise _refusal(hit, index, f"column {field.wanted.name}: {refused}") from None
    return tuple(out)


def _cell(hit: Mapping[str, Any], source: Mapping[str, Any], field: Field) -> Cell:
    wanted = field.wanted
    if wanted.source == "_id":
        return of_bytes(str(hit["_id"]).encode(), wanted)
    if wanted.source == "_version":
        return of_json(hit["_version"], wanted)
    if wanted.source in hit.get("_ignored", ()):
        raise ValueError("its index has left it out, as malformed")
    value = source.get(wanted.source)
    cell = of_json(value, wanted)
    _same_in_index(value, cell, field)
    return cell


def _same_in_index(value: Any, cell: Cell, field: Field) -> None:
    """Raise ValueError if who searches would find another value."""
    if cell is None:
        return
    if field.decimals is not None and len(_fraction(str(value)).rstrip("0")) > field.decimals:
        raise ValueError(f"its index keeps {field.decimals} decimals of the second of {value!r}")
    longest = field.kept.get("ignore_above")
    # Such a text is left out without a word: it is not among the fields that a search calls `_ignored`.
    if longest is not None and _utf16(str(value)) > int(longest):
        raise ValueError(f"its index leaves out what is longer than {longest}, and it has {_utf16(str(value))}")
    factor = field.kept.get("scaling_factor", 0)
    if isinstance(value, Number) and abs(Decimal(value)) * Decimal(str(factor)) > EXACT_MAX:
        raise ValueError(f"its index rounds {value}")


def _utf16(text: str) -> int:
    """Return the length that the server's `ignore_above` goes by: Java's, in units of UTF-16."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _fraction(text: str) -> str:
    """Return the digits behind the second of a moment."""
    digits = text[19:].lstrip(".,")
    return digits[: next((at for at, letter in enumerate(digits) if not letter.isdigit()), len(digits))]


def _refusal(hit: Mapping[str, Any], index: str, words: str) -> UsageError:
    return inexact(f"the document {hit.get('_id')!r} of {index}", words)
