"""What the mapping of an index keeps, and of which types its fields can be read back exactly.

A document is read as its client sent it (`_source`), and searched as its mapping keeps it. Where the two may differ, a
column is refused by name, or a document by its id: who searches would find another value than is compared here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.errors import UsageError
from harness.sinks.base import Missing
from harness.sinks.json_columns import WHOLE, Wanted
from harness.sinks.table import SinkColumn

TEXTS = ("keyword", "text", "wildcard", "match_only_text", "ip")
ONLY_INDEXED = ("text", "match_only_text")
"""Texts that have no values by column (`doc_values`) beside their terms."""
WHOLES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
MOMENTS = {"date": 3, "date_nanos": 9}
"""The decimals of a second that each keeps."""
FORMATS = re.compile(
    r"(strict_)?date_optional_time(_nanos)?|(strict_)?date(_hour_minute_second(_millis|_fraction)?)?|epoch_(second|millis)"
    r"|(strict_)?date_time(_no_millis)?|(strict_)?year_month_day|rfc3339_lenient|iso8601"
    r"|(yyyy|uuuu)-MM-dd(('T'|T| )HH:mm(:ss([.,]S+)?)?)?(X+|x+|Z+|'Z')?"
)
"""How a date or a moment may be written so that its index reads the text as it is read here: no year of a week
(`YYYY`), no day before its month."""
BY_ITSELF = {**dict.fromkeys(TEXTS, "string"), **WHOLES, "boolean": "boolean", "double": "double", "binary": "binary"}
"""The type of a column that the scenario does not name."""
MADE = {
    **dict.fromkeys(TEXTS, ("string", "decimal", *WHOLE)),
    **dict.fromkeys((*WHOLES, "unsigned_long"), (*WHOLE, "decimal")),
    **dict.fromkeys(MOMENTS, ("timestamp", "timestamp_ntz", "date")),
    "boolean": ("boolean",),
    "binary": ("binary",),
    "double": ("double",),
    "float": ("float",),
    "scaled_float": ("decimal",),
}
"""The types of columns that the scenario may name, by that of the mapping."""
BESIDE = ("_id", "_version")


@dataclass(frozen=True, kw_only=True)
class Index:
    """One index as its server describes it. `mapping` is that of its fields, by name; is it `closed`, a field that it
    lacks is kept in the document alone, and no search finds it. `made` are the fields of which a search finds what no
    document says, by name, each with the reason. `refresh` is its own `refresh_interval`, if it has one."""

    name: str
    uuid: str
    shards: int
    mapping: Mapping[str, Any]
    closed: bool = False
    refresh: str = ""
    made: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Field:
    """A column, and what the mapping says of the field that it is; nothing where it has none of that name."""

    wanted: Wanted
    kept: Mapping[str, Any]

    @property
    def decimals(self) -> int | None:
        """How many of a second its index keeps; None where it is no moment."""
        return MOMENTS.get(str(self.kept.get("type")))


def described(name: str, answer: Mapping[str, Any]) -> Index:
    """Return the index of that name, out of the server's answer. Raises UsageError if it cannot be read exactly."""
    if name not in answer:
        other = ", ".join(sorted(answer))
        raise UsageError(f"asked to read the index {name}; it is an alias of {other}. Name the index in `sink`")
    mapping, settings = answer[name]["mappings"], answer[name]["settings"]["index"]
    if set(mapping.get("_source", {})) - {"recovery_source_enabled"}:
        raise UsageError(f"asked to read the index {name}; its mapping keeps documents in part, by `_source`")
    if _off(mapping.get("enabled", True)):
        raise UsageError(f"asked to read the index {name}; its mapping is off (`enabled`): no search finds a field")
    return Index(
        name=name,
        uuid=str(settings["uuid"]),
        shards=int(settings["number_of_shards"]),
        mapping=mapping.get("properties", {}),
        # Also `false_allow_templates`.
        closed=_off(str(mapping.get("dynamic", True)).partition("_")[0]),
        refresh=str(settings.get("refresh_interval", "")),
        made=_made(mapping),
    )


def _made(mapping: Mapping[str, Any]) -> dict[str, str]:
    copied = dict.fromkeys(_copied(mapping), "its index adds what `copy_to` of another field copies")
    return copied | dict.fromkeys(mapping.get("derived", ()), "a script makes it at each search (`derived`)")


def _copied(mapping: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields that others are copied to, also from within an object."""
    for kept in mapping.get("properties", {}).values():
        to = kept.get("copy_to", ())
        yield from (to,) if isinstance(to, str) else to
        yield from _copied(kept)


def columns_of(fields: Sequence[Field]) -> tuple[SinkColumn, ...]:
    """As they are compared."""
    return tuple(SinkColumn(name=each.wanted.name, type=_type(each), family=each.wanted.family) for each in fields)


def _type(field: Field) -> str:
    """With the decimals that the index keeps, where they are fewer than a microsecond's."""
    fewer = field.decimals is not None and field.decimals < 6 and field.wanted.type != "date"
    return f"{field.wanted.full}({field.decimals})" if fewer else field.wanted.full


def fields_of(index: Index, wanted: Sequence[Wanted]) -> tuple[Field, ...]:
    """Return the columns that are `wanted`; without any, those of the mapping. Raises UsageError for one that cannot be
    read exactly, Missing where the mapping has none yet."""
    if wanted:
        return tuple(_named(index, each) for each in wanted)
    if not index.mapping:
        raise Missing(f"asked to read the index {index.name}; it has no field yet")
    return tuple(_by_itself(index, name, kept) for name, kept in index.mapping.items())


def _named(index: Index, wanted: Wanted) -> Field:
    kept = index.mapping.get(wanted.source, {})
    if wanted.source not in BESIDE:
        other = _altered(kept) or _other(kept, wanted) if kept else _lacking(index, wanted.source)
        if why := index.made.get(wanted.source) or other:
            raise _refusal(index, wanted.source, why)
    return Field(wanted=wanted, kept=kept)


def _lacking(index: Index, name: str) -> str:
    """Return why a field that the mapping has not cannot be read; empty if one may come yet."""
    if "." in name:
        return "a name with a dot is that of a field within an object"
    return "its mapping lacks the field and adds none (`dynamic: false`)" if index.closed else ""


def _by_itself(index: Index, name: str, kept: Mapping[str, Any]) -> Field:
    mapped = str(kept.get("type", "object"))
    type_ = BY_ITSELF.get(mapped)
    if why := index.made.get(name) or _altered(kept):
        raise _refusal(index, name, why)
    if type_ is None:
        named = ", ".join(MADE.get(mapped, ()))
        cure = f": name its type under `columns` ({named})" if named else ": name other columns under `columns`"
        raise _refusal(index, name, f"its mapping is {mapped}, of which no exact type follows{cure}")
    return Field(wanted=Wanted(name=name, type=type_, source=name), kept=kept)


def _altered(kept: Mapping[str, Any]) -> str:
    """Return why an index does not keep what a document says, whatever its type; empty if it does."""
    if "null_value" in kept:
        return f"its index keeps {kept['null_value']!r} for null"
    if "normalizer" in kept:
        return f"its index keeps what the normalizer {kept['normalizer']} makes of it"
    if kept.get("type") == "constant_keyword":
        return "a search finds its constant in each document, also in one without the field"
    if "format" in kept and not all(map(FORMATS.fullmatch, re.sub(r"[][]", "", kept["format"]).split("||"))):
        return f"its index may read another moment by its `format` ({kept['format']}) than the text says"
    by_column = kept.get("doc_values", kept.get("type") not in ONLY_INDEXED)
    if _off(kept.get("index", True)) and _off(by_column):
        return "its index keeps nothing of it that a search would find (`index` and `doc_values` are off)"
    return ""


def _off(value: object) -> bool:
    return str(value).lower() == "false"


def _other(kept: Mapping[str, Any], wanted: Wanted) -> str:
    """Return why an index that keeps a field so does not keep a column of that type; empty if it does."""
    mapped = str(kept.get("type", "object"))
    if wanted.type not in MADE.get(mapped, ()):
        known = ", ".join(MADE.get(mapped, ()))
        return f"its mapping is {mapped}, which is read as {known}, not as {wanted.full}" if known else (
            f"its mapping is {mapped}, which cannot be compared exactly"
        )  # fmt: skip
    if wanted.type == "decimal" and (mapped in WHOLES or mapped == "unsigned_long") and wanted.scale:
        return f"its mapping is {mapped}, which cuts the decimals of {wanted.full}"
    factor = float(kept.get("scaling_factor", 1))
    if mapped == "scaled_float" and factor % 10**wanted.scale:
        return f"its mapping is scaled_float with the factor {factor:g}, which rounds {wanted.full}"
    return ""


def _refusal(index: Index, name: str, why: str) -> UsageError:
    return UsageError(f"the index {index.name} has a field {name} that cannot be read exactly: {why}")
