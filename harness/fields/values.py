"""The single values of a scenario file: what each must look like, and the words that say so.

Every scalar arrives as text (`harness.load.yaml_tree`), so nothing here guesses a type: a whole number is written as
one, a duration has a unit, `true` is `true`. A refusal says what was asked and what was seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum
from itertools import islice
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from harness.component import COMPONENTS, AnswersQueries, KeepsCheckpoints, SetsUp
from harness.errors import UsageError
from harness.fields.hints import did_you_mean, seen
from harness.fields.placeholders import NAME, wrong_in
from harness.machine import spark_versions
from harness.scenario import CrashPoint, Guarantee, Kind, Victim, Word

WRONG_MAX = 5
"""How many wrong placeholders of one text are named."""
UNITS_S = {"ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60), "h": Decimal(3600)}
DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)(ms|s|m|h)")
DURATION_MAX_S = 7 * 24 * 3600
NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,20})?")
RATE = re.compile(rf"({NUMBER.pattern})/s")
IDENTIFIER = r"[a-z_][a-z0-9_]{0,62}"
TABLE = re.compile(rf"(?:{IDENTIFIER}\.)?{IDENTIFIER}")
ANY_NAME = re.compile(r"[\w$\"`.-]{1,100}(?: [\w$\"`.-]{1,100})?")
"""What may be meant as the name of a table; three words are rather a slip in a query."""
OWN_PROGRESS = ("checkpoint", "async", "dstreams", "group")
"""How far a pipeline is, where no query says it."""
OPENING = r"(?:[\s(]|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*"
"""What may stand before a query: brackets and comments."""
QUERY_WORDS = ("select", "with", "table", "values")
A_RATE = "a rate such as 200/s"
DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
A_DAY = "a day such as 2026-12-31"
A_FLAG = "true or false"
A_TEXT = "a text"
A_LINE = "one line of 1 to 200 printable characters"
ALL, NAMED = "all", "named"
THE_CRASH_POINTS = "all, named (those that verdict names), or a list of names of crash points"
A_COLUMN = "a column name (one line of 1 to 200 printable characters)"
A_PLACE = "a table (small letters, digits, '_', its schema before a dot) or a query (select, with)"
A_QUERY = "a query (select, with, from, table or values)"
A_PROGRESS = "checkpoint, async, dstreams, group or a query (select, with) for the next offsets"

Schema = dict[str, Any]


def _opened(*words: str) -> re.Pattern[str]:
    """Return the beginning of a query: one of the words. Without a flag for its case, which a JSON Schema has not."""
    spelt = ("".join(f"[{sign}{sign.upper()}]" for sign in word) for word in words)
    return re.compile(rf"{OPENING}(?:{'|'.join(spelt)})\b")


QUERY = _opened(*QUERY_WORDS)
LEDGER_QUERY = _opened(*QUERY_WORDS, "from")


@dataclass(frozen=True)
class Typed:
    """How a value is read from text and written into a file again; `wanted` says in words what has to be there.
    `schema` is what the JSON Schema says of it. Put it in `Annotated`."""

    read: Callable[[Any], Any]
    wanted: str
    schema: tuple[tuple[str, Any], ...]
    write: Callable[[Any], Any] = lambda value: value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
        return dict(self.schema)


def typed(read: Callable[[Any], Any], wanted: str, **schema: Any) -> Typed:
    """`Typed`, with the schema's words as keywords."""
    return Typed(read, wanted, tuple(schema.items()))


def worded(words: str) -> PydanticCustomError:
    """Return an error with these words. They go in as context, so that braces in them stay braces."""
    return PydanticCustomError("refused", "{words}", {"words": words})


def refusal(wanted: str, value: object, hint: str = "") -> PydanticCustomError:
    """Return the error that says what was wanted and what was seen."""
    return worded(f"must be {wanted}, not {seen(value)}{hint}")


def parsed(
    parse: Callable[[str], Any], wanted: str, *, hint: Callable[[str], str] = lambda text: "", **schema: Any
) -> Typed:
    """Return what `parse` makes of a text: None of one that is not `wanted`, and may be meant as `hint` says."""

    def read(value: object) -> Any:
        found = parse(value) if isinstance(value, str) else None
        if found is None:
            raise refusal(wanted, value, hint(value) if isinstance(value, str) else "")
        return found

    return typed(read, wanted, **schema)


def whole(low: int, high: int) -> Typed:
    """Return a whole number from `low` to `high`."""

    def parse(text: str) -> int | None:
        return int(text) if re.fullmatch(r"-?[0-9]{1,20}", text) and low <= int(text) <= high else None

    return parsed(parse, f"a whole number from {low} to {high}", type="integer", minimum=low, maximum=high)


def counted(low: int, high: int) -> Any:
    """Return the type of a field that holds such a number."""
    return Annotated[int, whole(low, high)]


def number(low: float, high: float) -> Typed:
    """Return a decimal number from `low` to `high`."""

    def parse(text: str) -> float | None:
        return float(text) if NUMBER.fullmatch(text) and low <= float(text) <= high else None

    return parsed(parse, f"a number from {low:g} to {high:g}", type="number", minimum=low, maximum=high)


def duration(*, zero: bool = False) -> Typed:
    """Return a length of time with its unit, read as seconds; more than nothing unless `zero`."""
    wanted = "a duration such as 250ms, 3s or 2m"

    def read(value: object) -> float:
        match = DURATION.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            bare = isinstance(value, str) and NUMBER.fullmatch(value)
            raise refusal(wanted, value, ": the unit is missing" if bare else "")
        seconds = Decimal(match[1]) * UNITS_S[match[2]]
        if seconds > DURATION_MAX_S or not (seconds or zero):
            raise refusal("at most 168h" if seconds else "more than no time", value)
        return float(seconds)

    return Typed(read, wanted, (("type", "string"), ("pattern", f"^{DURATION.pattern}$")), write=lasting)


def lasting(seconds: float) -> str:
    """Return a length of time with its unit, to a microsecond: `3s`, `0.25s`, `0.015ms`."""
    exact = round(Decimal(repr(seconds)), 6)
    coarse = exact == round(exact, 3)
    return f"{short(exact)}s" if coarse else f"{short(exact * 1000)}ms"


def short(number: Decimal) -> str:
    """Return a decimal without exponent and trailing zeros."""
    digits = format(number, "f")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def is_query(text: str) -> bool:
    """Return whether it is a query that a database's server answers, and no table's name, which may be `values`."""
    return bool(QUERY.match(text)) and not TABLE.fullmatch(text)


def form(annotation: Any) -> Typed | None:
    """Return how a field of that type is read and written; None if its type says no more than that it is one of
    Python's."""
    return next((each for each in getattr(annotation, "__metadata__", ()) if isinstance(each, Typed)), None)


def reads(annotation: Any, text: str) -> bool:
    """Return whether a scenario file may say it so."""
    found = form(annotation)
    try:
        return found is not None and found.read(text) is not None
    except PydanticCustomError:
        return False


def written(annotation: Any, value: Any) -> Any:
    """Return a value of a field as the file has it; `annotation` is the field's type."""
    found = form(annotation)
    return found.write(value) if found else value


def matching(pattern: str, wanted: str) -> Typed:
    """Return a text of one form."""
    return parsed(
        lambda text: text if re.fullmatch(pattern, text) else None, wanted, type="string", pattern=f"^{pattern}$"
    )


def table_or_query(quote: str, by_query: Callable[[str, str], str]) -> Typed:
    """Return a table or a query; `by_query` says how a query reads a table of another name: as it was written, and
    quoted."""

    def read(value: object) -> str:
        if isinstance(value, str) and (TABLE.fullmatch(value) or is_query(value)):
            return value
        text = value if isinstance(value, str) else ""
        parts = [part.strip(quote) for part in text.split(".")] if ANY_NAME.fullmatch(text) else []
        quoted = ".".join(f"{quote}{part}{quote}" for part in parts)
        hint = by_query(".".join(parts), f"select * from {quoted}") if parts and all(parts) else ""
        raise refusal(A_PLACE, value, hint)

    return typed(read, A_PLACE, type="string", minLength=1)


def one_of(names: Sequence[str]) -> Typed:
    """Return one of some names."""
    known, wanted = dict(zip(names, names, strict=True)), f"one of {', '.join(names)}"
    return parsed(known.get, wanted, hint=lambda text: did_you_mean(text, names), type="string", enum=list(names))


def choice(words: Iterable[StrEnum], *also: str, renamed: Mapping[str, str] = MappingProxyType({})) -> Typed:
    """Return one of some words, read as the enum's member; `also` are other forms that the key may have, `renamed` has
    earlier names."""
    known = {word.value: word for word in words}
    wanted = f"one of {', '.join([*known, *also])}"

    def hint(text: str) -> str:
        return f"; it is called {renamed[text]!r} now" if text in renamed else did_you_mean(text, known)

    return parsed(known.get, wanted, hint=hint, type="string", enum=list(known))


def _rate(text: str) -> float | None:
    match = RATE.fullmatch(text)
    return float(match[1]) or None if match else None


def _day(text: str) -> str | None:
    with suppress(ValueError):
        return date.fromisoformat(text).isoformat() if DAY.fullmatch(text) else None
    return None


def _line(text: str) -> str | None:
    return text if text.strip() and len(text) <= 200 and text.isprintable() else None


TEXT = parsed(str, A_TEXT, type="string")
LINE = parsed(_line, A_LINE, type="string", minLength=1, maxLength=200)


def _crash_points(value: object) -> tuple[str, ...]:
    if value in (ALL, NAMED):
        return (str(value),)
    if isinstance(value, list) and value:
        return tuple(map(LINE.read, value))
    raise refusal(THE_CRASH_POINTS, value)


def _template(value: object) -> str:
    text: str = TEXT.read(value)
    if words := "; ".join(islice(wrong_in(text), WRONG_MAX)):
        raise worded(words)
    return text


def _part(ability: type[Any]) -> Typed:
    """Return a component with an ability, or a part of one."""

    def read(value: object) -> str:
        able = [kind.about.name for kind in COMPONENTS if isinstance(kind, ability)]
        name, dot, part = str(value).partition(".")
        if isinstance(value, str) and name in able and (not dot or re.fullmatch(NAME, part)):
            return value
        whole = able + [f"{each}.second" for each in able]
        hint = did_you_mean(value, whole) if isinstance(value, str) else ""
        raise refusal(f"one of {', '.join(able)}, or such a one with a name after a dot", value, hint)

    return typed(read, "a component, or a part of one", type="string")


def _spark_version(value: object) -> str:
    try:
        return spark_versions.chosen(str(value))
    except UsageError as refused:
        raise worded(str(refused)) from None


def _progress(value: object) -> str:
    if isinstance(value, str) and is_query(value):
        return _template(value)
    if value in OWN_PROGRESS:
        return str(value)
    hint = did_you_mean(value, OWN_PROGRESS) if isinstance(value, str) else ""
    raise refusal(A_PROGRESS, value, hint)


Flag = Annotated[bool, parsed({"true": True, "false": False}.get, A_FLAG, type="boolean")]
Day = Annotated[str, parsed(_day, A_DAY, type="string", pattern=f"^{DAY.pattern}$")]
Text = Annotated[str, TEXT]
Line = Annotated[str, LINE]
# An editor reads 9092 as a number; the loader reads it as the text that it is.
Template = Annotated[str, typed(_template, "a text; it may have placeholders", type=["string", "number", "boolean"])]
Query = Annotated[
    str,
    parsed(
        lambda text: text if LEDGER_QUERY.match(text) else None,
        A_QUERY,
        type="string",
        pattern=f"^{LEDGER_QUERY.pattern}",
    ),
]
Progress = Annotated[str, typed(_progress, A_PROGRESS, type="string", minLength=1)]
Queried = Annotated[str, _part(AnswersQueries)]
Kept = Annotated[str, _part(KeepsCheckpoints)]
SparkVersion = Annotated[str, typed(_spark_version, "a Spark version such as 3.5", type=["string", "number"])]
Prepared = Annotated[str, _part(SetsUp)]
Rate = Annotated[float, parsed(_rate, A_RATE, type="string", pattern=f"^{RATE.pattern}$")]
# In SQL a name is quoted, or a parameter: whatever the sink calls a column, it may be called here.
Column = Annotated[str, parsed(_line, A_COLUMN, type="string", minLength=1, maxLength=200)]
Label = Annotated[str, matching("[a-z0-9][a-z0-9_.-]{0,63}", "a name of small letters, digits, '_', '.' and '-'")]
Part = Annotated[str, matching(NAME, "the name of a part: small letters, digits and '_'")]
Folder = Annotated[str, matching("[A-Za-z0-9_][A-Za-z0-9_.=-]{0,127}", "the name of a checkpoint's folder")]
Tag = Annotated[str, matching("[a-z][a-z0-9_]{0,63}", "a tag of small letters, digits and '_'")]
Variable = Annotated[str, matching("[A-Za-z_][A-Za-z0-9_]{0,127}", "the name of an environment variable")]
Conf = Annotated[str, matching(r"spark\.[A-Za-z0-9_.-]{1,200}", "a Spark setting that begins with 'spark.'")]
Duration = Annotated[float, duration()]
Pause = Annotated[float, duration(zero=True)]
CrashPoints = Annotated[
    tuple[str, ...],
    typed(
        _crash_points,
        THE_CRASH_POINTS,
        anyOf=[{"type": "string", "enum": [ALL, NAMED]}, {"type": "array", "items": {"type": "string"}}],
    ),
]
Promise = Annotated[Guarantee, choice(Guarantee)]
Place = Annotated[CrashPoint, choice(point for point in CrashPoint if point is not CrashPoint.BATCH_PLANNING)]
VictimPart = Annotated[Victim, choice(Victim)]
RENAMED = {"void": "untested", "unknown": "inconclusive"}
PlainWord = Annotated[
    Word, choice((Word.HELD, Word.INCONCLUSIVE, Word.UNTESTED), "{violated: [KIND]}", renamed=RENAMED)
]
FindingKind = Annotated[Kind, choice(kind for kind in Kind if kind is not Kind.RECOVERED)]
