"""Canonical cells: one text for one value, so that rows compare exactly and no number goes through a float.

A cell is None (NULL) or a text; a column has a family, which says how the text is written:

    number      integers and decimals: no exponent, no leading or trailing zeros, `-0` is `0`; `NaN`, `Infinity`
    float       the double, shortest text that reads back the same; `-0.0` stays; `nan`, `inf`
    text        as it is: case, blanks and Unicode form count
    bool        `true`, `false`
    timestamp   naive, `2026-01-31T23:59:59.000000`; more than six digits only if they are not zeros
    instant     the same in UTC with `Z`
    date, time  `2026-01-31`, `23:59:59.000000`
    bytes       hex
    json        keys sorted, no blanks, numbers exact
    uuid        small letters

Who reads an engine picks the family from the engine's type; both sides must pick the same one to be comparable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal

Cell = str | None
Row = tuple[Cell, ...]

EXPONENT_MAX = 10_000
"""A number of more digits than this keeps its exponent: `1e999999999` must not fill the memory."""

_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_DATE = r"([+-]?\d{4,}-\d\d-\d\d)"
_TIME = r"(\d\d:\d\d:\d\d)(?:\.(\d+))?"
_DATE_ONLY = re.compile(rf"{_DATE}( \(?BC\)?)?")
_TIME_ONLY = re.compile(_TIME)
_MOMENT = re.compile(rf"{_DATE}[ T]{_TIME}(Z|[+-]\d\d(?::?\d\d(?::?\d\d)?)?)?( \(?BC\)?)?")
_BEHIND_THE_DAY = " (BC) "
"""Where DuckDB has the era of a moment."""
ENDLESS = frozenset({"infinity", "-infinity"})


def canonical(value: object, family: str) -> Cell:
    """Return the one text of `value` in `family`; None stays None.

    `value` is an engine's text, or a Python object as a database driver returns it.
    Raises ValueError if it cannot be a value of that family, or the family is unknown."""
    return None if value is None else _writer(family)(_text(value))


def canonical_rows(rows: Iterable[Sequence[object]], families: Sequence[str]) -> list[Row]:
    """Return every row with every cell canonical. Raises ValueError."""
    writers = [_writer(family) for family in families]
    return [
        tuple([
            None if cell is None else write(cell if type(cell) is str else _text(cell))
            for write, cell in zip(writers, row, strict=True)
        ])
        for row in rows
    ]  # fmt: skip


def _writer(family: str) -> Callable[[str], str]:
    try:
        return FAMILIES[family]
    except KeyError:
        raise ValueError(f"no family {family!r}; there are {', '.join(FAMILIES)}") from None


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, dict | list):
        return json.dumps(value)
    return str(value)


def _number(text: str) -> str:
    if _INTEGER.fullmatch(text):
        return text
    try:
        value = Decimal(text)
    except ArithmeticError:
        raise ValueError(f"{text!r} is no number") from None
    if not value.is_finite():
        return "NaN" if value.is_nan() else str(value)
    if abs(value.adjusted()) > EXPONENT_MAX:
        return _scientific(value)
    plain = format(value, "f")
    plain = plain.rstrip("0").rstrip(".") if "." in plain else plain
    return "0" if plain == "-0" else plain


def _scientific(value: Decimal) -> str:
    sign, digits, _ = value.as_tuple()
    mantissa = "".join(map(str, digits)).rstrip("0")
    if not mantissa:
        return "0"
    return f"{'-' if sign else ''}{mantissa[0]}.{mantissa[1:]}E{value.adjusted()}".replace(".E", "E")


def _float(text: str) -> str:
    return repr(float(text))


def _bool(text: str) -> str:
    if text in ("true", "t"):
        return "true"
    if text in ("false", "f"):
        return "false"
    raise ValueError(f"{text!r} is no bool")


def _fraction(digits: str | None) -> str:
    """Return at least six digits; beyond them only what is not a trailing zero."""
    digits = digits or ""
    return digits[:6].ljust(6, "0") + digits[6:].rstrip("0")


def _era(mark: str | None) -> str:
    return " BC" if mark else ""


def _moment(text: str) -> re.Match[str] | None:
    if _BEHIND_THE_DAY in text:
        text = text.replace(_BEHIND_THE_DAY, " ") + " BC"
    return _MOMENT.fullmatch(text)


def _timestamp(text: str) -> str:
    if text in ENDLESS:
        return text
    found = _moment(text)
    if found is None or found[4] is not None:
        raise ValueError(f"{text!r} is no timestamp without time zone")
    return f"{found[1]}T{found[2]}.{_fraction(found[3])}{_era(found[5])}"


def _instant(text: str) -> str:
    if text in ENDLESS:
        return text
    found = _moment(text)
    if found is None or found[4] is None:
        raise ValueError(f"{text!r} is no timestamp with time zone")
    day, clock, zone = found[1], found[2], found[4]
    if zone.strip("Z+-0:"):
        # Only whole seconds move with the zone, so the fraction is safe from any rounding.
        try:
            moved = datetime.fromisoformat(f"{day}T{clock}{zone}").astimezone(UTC)
        except OverflowError:
            raise ValueError(f"{text!r} is beyond the calendar in UTC") from None
        day, clock = moved.date().isoformat(), moved.time().isoformat()
    return f"{day}T{clock}.{_fraction(found[3])}Z{_era(found[5])}"


def _date(text: str) -> str:
    if text in ENDLESS:
        return text
    found = _DATE_ONLY.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no date")
    return f"{found[1]}{_era(found[2])}"


def _time(text: str) -> str:
    found = _TIME_ONLY.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no time of day")
    return f"{found[1]}.{_fraction(found[2])}"


def _bytes(text: str) -> str:
    return bytes.fromhex(text.removeprefix("\\x")).hex()


def _json(text: str) -> str:
    return _sorted(json.loads(text, parse_int=Decimal, parse_float=Decimal))


def _sorted(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quoted(key)}:{_sorted(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_sorted, value)) + "]"
    if isinstance(value, Decimal):
        return _number(str(value))
    return _quoted(value)


def _quoted(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


FAMILIES: dict[str, Callable[[str], str]] = {
    "number": _number,
    "float": _float,
    "text": str,
    "bool": _bool,
    "timestamp": _timestamp,
    "instant": _instant,
    "date": _date,
    "time": _time,
    "bytes": _bytes,
    "json": _json,
    "uuid": str.lower,
}
