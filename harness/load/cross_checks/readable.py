"""A sink names its rows, by columns that it and its `expected` have, as far as their words tell."""

from __future__ import annotations

import re

from harness.load.reader import RENAMED, Section

UNNAMED = re.compile(r"\b(columns|unnest|unlist)\s*\(")
COUNT = re.compile(r"\bcount\s*\(\s*\*\s*\)", re.IGNORECASE)


def readable(sink: Section, *, query: str | None) -> None:
    """Add what is wrong; `query` is the sink's target, where that is one."""
    if not any(map(sink.has, ("expected", *(old for old, new in RENAMED.items() if new == "expected")))):
        sink.wrong(f"{sink.path}.expected is missing: the SQL over `ledger` that gives the rows it should hold")
    if not sink.has("key") or sink.get("key") == []:
        one = ", and a single row has none: add one to both (`select 1 as one, ...`)" if sink.has("key") else ""
        sink.wrong(f"{sink.path}.key is missing: the columns that name a row{one}", *(["key"] if one else []))
    guessed, shown = guesses(sink), names(query)
    for loc, words in guessed.items():
        sink.wrong(words, *loc)
    before: set[str] = set()
    for index, column in enumerate(sink.get("key", ())):
        if column in before:
            sink.wrong(f"{sink.path}.key names {column!r} twice", "key", index)
        elif absent(column, shown) and ("key", index) not in guessed:
            sink.wrong(f"{sink.path}.key {column!r} is no column of the query", "key", index)
        before.add(column)
    order = sink.section("order")
    if order.get("by") and absent(order.get("by"), shown):
        order.wrong(f"{order.path}.by {order.get('by')!r} is no column of the query", "by")


def guesses(sink: Section) -> dict[tuple[str | int, ...], str]:
    """Return by its place, what the words of `expected` say is wrong with it. DuckDB knows better, where it is
    asked."""
    found: dict[tuple[str | int, ...], str] = {}
    words, expected, key = sink.get("expected"), names(sink.get("expected")), sink.get("key", ())
    if words and not re.search(r"\bledger\b", words, re.IGNORECASE):
        found["expected",] = f"{sink.path}.expected reads no `ledger`: then no record could be missed"
    for index, column in enumerate(key):
        if absent(column, expected) and column not in key[:index]:
            found["key", index] = f"{sink.path}.key {column!r} is no column of `expected`"
    return found


def unguessed(sink: Section, columns: set[str]) -> None:
    """Take back what was guessed of `expected` that has these columns; all of it where it has none, being wrong."""
    for loc, words in guesses(sink).items():
        if not columns or (loc[0] == "key" and sink.get("key")[loc[1]] in columns):
            sink.retract(words, *loc)


def absent(column: str, words: set[str]) -> bool:
    """Return whether it is none of the words of a query. Nothing is guessed of a name that is no single word, such as
    `order id`."""
    return bool(words) and column.lower() not in words and re.fullmatch(r"\w+", column) is not None


def names(query: str | None) -> set[str]:
    """Return every word of a query: a column of it is one of them. Empty if that is not known. Then there is no query,
    or it gives all of a table. Or it does not name its columns: a `*`, a pattern, the fields of what it unnests."""
    if query is None or "*" in (bare := COUNT.sub("count", query.lower())) or UNNAMED.search(bare):
        return set()
    words = set(re.findall(r"\w+", bare))
    whole = "select" not in words or "table" in words or re.search(r"(?:^|\()\s*from\b", bare)
    return set() if whole else words
