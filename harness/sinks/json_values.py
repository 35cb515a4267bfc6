"""The fields of a JSON object and other texts as canonical cells: exactly, or not at all.

A value is never rounded to fit: one that its column does not keep in full is refused. Missing and null are NULL, as
Spark's `to_json` leaves out what is NULL.
"""

from __future__ import annotations

import base64
import json
import math
import re
import struct
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal, localcontext
from typing import Any

from harness.checkers.cells import Cell, canonical
from harness.errors import UsageError
from harness.sinks.json_columns import WHOLE, Wanted

DIGITS_MAX = 400
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_NUMBER = re.compile(rf"{_INTEGER.pattern}(\.[0-9]+)?([eE][+-]?[0-9]+)?")
ENDLESS = ("NaN", "Infinity", "-Infinity")
"""What `to_json` writes in quotes, and others bare."""


class Number(str):
    """A number as it is written."""

    __slots__ = ()


def fields(text: str) -> dict[str, Any]:
    """Return the object that the text is. Raises ValueError in words."""
    try:
        found = json.loads(text, parse_int=Number, parse_float=Number, parse_constant=Number, object_pairs_hook=_once)
    except json.JSONDecodeError as failure:
        raise ValueError(f"is no JSON: {failure}") from None
    except RecursionError:
        raise ValueError("is JSON of too many levels") from None
    if not isinstance(found, dict):
        raise ValueError("is JSON, and no object")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"has the field {next(name for name in names if names.count(name) > 1)!r} twice")
    return found


def inexact(where: str, words: str) -> UsageError:
    """Return what is said of a row that cannot be read exactly."""
    return UsageError(f"{where} cannot be read exactly: {words}. Mend the sink's `columns`, or the program")


def utf8(data: bytes) -> str:
    """Return the text. Raises ValueError in words."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("is no UTF-8") from None


def of_bytes(data: bytes | None, wanted: Wanted) -> Cell:
    """Return what a key, a value or a header is. Raises ValueError in words."""
    if data is None:
        return None
    if wanted.type == "binary":
        return data.hex()
    text = utf8(data)
    return text if wanted.type == "string" else of_json(Number(text), wanted)


def of_json(value: Any, wanted: Wanted) -> Cell:
    """Return what a field is. Raises ValueError in words."""
    if value is None:
        return None
    read = _whole if wanted.type in WHOLE else READ[wanted.type]
    try:
        return read(value, wanted)
    except ValueError as refused:
        raise ValueError(f"{_short(value)} is no {wanted.full}{_why(refused)}") from None


def _why(refused: ValueError) -> str:
    return f": {refused}" if isinstance(refused, _Refused) else ""


class _Refused(ValueError):
    """With words of ours."""


def _short(value: Any) -> str:
    text = str(value) if isinstance(value, Number) else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _number(value: Any) -> Decimal:
    if not isinstance(value, Number) or not _NUMBER.fullmatch(value):
        raise ValueError
    if len(value) > DIGITS_MAX:
        raise _Refused("it is too long")
    try:
        return Decimal(value)
    except ArithmeticError:
        raise _Refused("it does not fit") from None


def _whole(value: Any, wanted: Wanted) -> str:
    if not isinstance(value, Number) or not _INTEGER.fullmatch(value) or len(value) > DIGITS_MAX:
        raise ValueError
    edge = 1 << (WHOLE[wanted.type] - 1)
    if not -edge <= int(value) < edge:
        raise _Refused("it does not fit")
    return str(int(value))


def _decimal(value: Any, wanted: Wanted) -> Cell:
    number = _number(value)
    with localcontext(prec=2 * DIGITS_MAX) as context:
        context.clear_traps()
        kept = number.quantize(Decimal((0, (1,), -wanted.scale)))
        if not kept.is_finite() or kept != number:
            raise _Refused("it has more decimals" if abs(number.adjusted()) < DIGITS_MAX else "it does not fit")
    if kept and kept.adjusted() >= wanted.precision - wanted.scale:
        raise _Refused("it does not fit")
    return canonical(format(kept, "f"), "number")


def _double(value: Any, wanted: Wanted) -> Cell:
    if value in ENDLESS:
        return canonical(str(float(value)), "float")
    given = _number(value)
    number = float(given)
    if wanted.type == "float":
        try:
            (number,) = struct.unpack("f", struct.pack("f", number))
        except OverflowError:
            number = math.inf
    if math.isinf(number) or (given and not number):
        raise _Refused("it does not fit")
    # A fraction is rounded to what the column keeps; a whole number that is another one then is refused.
    if given == given.to_integral_value() and given not in (Decimal(number), _shortest(number, wanted.type)):
        raise _Refused("it has more digits")
    return canonical(repr(number), "float")


def _shortest(number: float, type_: str) -> Decimal:
    """Return the shortest decimal that is read as this number."""
    if type_ == "double":
        return Decimal(repr(number))
    texts = (f"{number:.{digits}e}" for digits in range(10))
    return Decimal(next(text for text in texts if struct.pack("f", float(text)) == struct.pack("f", number)))


def _boolean(value: Any, _: Wanted) -> str:
    if not isinstance(value, bool):
        raise ValueError
    return str(value).lower()


def _text(value: Any) -> str:
    if not isinstance(value, str) or isinstance(value, Number):
        raise ValueError
    return value


def _string(value: Any, _: Wanted) -> str:
    text = _text(value)
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise _Refused("half of a surrogate pair is no character")
    return text


def _binary(value: Any, _: Wanted) -> str:
    return base64.b64decode(_text(value), validate=True).hex()


def _date(value: Any, _: Wanted) -> Cell:
    text = _text(value)
    date.fromisoformat(text)
    return canonical(text, "date")


def _moment(value: Any, wanted: Wanted) -> Cell:
    text = _text(value)
    # It is a day and a time that there are; what follows the seconds is kept as it is.
    datetime.fromisoformat(text[:19])
    return canonical(text, wanted.family)


READ: dict[str, Callable[[Any, Wanted], Cell]] = {
    "decimal": _decimal,
    "float": _double,
    "double": _double,
    "boolean": _boolean,
    "string": _string,
    "binary": _binary,
    "date": _date,
    "timestamp": _moment,
    "timestamp_ntz": _moment,
}
