"""Makes any text safe to show: what cannot be seen, or turns the line around, is shown as an escape.

Used for every piece of data that reaches a terminal, a log or a page. HTML's own escaping is not done here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

CELL = 200
"""The most characters shown of one cell."""
NAMES = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
# Printable by Unicode's word and yet invisible: fillers and variation selectors.
INVISIBLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")


def visible(text: str, limit: int = 2000) -> str:
    """`text` on one line: control, bidi, invisible characters and lone surrogates as `\\x1b`, `\\u202e`; cut at
    `limit` characters of the original, saying how many are left out."""
    head = text[:limit]
    if not head.isprintable() or INVISIBLE.search(head):
        head = "".join(_shown(char) for char in head)
    return head if len(text) <= limit else f"{head}… ({plural(len(text) - limit, 'more character')})"


def cell(value: str | None, limit: int = CELL) -> str:
    """Return one cell of a row: None is NULL; a text that could be taken for another (blank at an end, empty, `NULL`,
    quoted) is put in quotes; a backslash is doubled, so that an escape cannot be faked."""
    if value is None:
        return "NULL"
    shown = visible(value[:limit].replace("\\", "\\\\"), limit * 2)
    if value != value.strip() or value in {"", "NULL"} or value[:1] == value[-1:] == '"':
        shown = f'"{shown}"'
    return shown if len(value) <= limit else f"{shown}… ({plural(len(value) - limit, 'more character')})"


def cells(left: str | None, right: str | None, limit: int = CELL) -> tuple[str, str]:
    """Return two cells beside each other. If they differ, what is shown differs too: a far difference is brought into
    view, and letters that only look alike are shown by their code points."""
    if left is None or right is None or left == right:
        return cell(left, limit), cell(right, limit)
    skip = max(0, _first_difference(left, right) - limit // 2) if max(len(left), len(right)) > limit else 0
    mark = f"(from character {skip:,}) " if skip else ""
    pair = (mark + cell(left[skip:], limit), mark + cell(right[skip:], limit))
    if _appearance(pair[0]) != _appearance(pair[1]):
        return pair
    return mark + ascii(left[skip : skip + limit]), mark + ascii(right[skip : skip + limit])


def plural(count: int, noun: str) -> str:
    """`1 row`, `2 rows`, `3 batches`, `2 processes`."""
    ending = "" if count == 1 else "es" if noun.endswith(("ch", "ss")) else "s"
    return f"{count:,} {noun}{ending}"


def aligned(rows: Sequence[Sequence[str]], columns: int = 0) -> list[str]:
    """Return the rows in aligned columns. A terminal has so many `columns`: the last cell is wrapped at words. Where
    less than half of the line is left, it begins another line. With 0 nothing is wrapped, as in a log."""
    widths = [max(map(len, column)) for column in [*zip(*rows, strict=True)][:-1]]
    begin = sum(widths) + 2 * len(widths)
    out = []
    for *cells, last in rows:
        head = "".join(f"{cell:<{width}}  " for cell, width in zip(cells, widths, strict=True))
        if columns <= 0 or len(head) + len(last) <= columns:
            out.append(f"{head}{last}".rstrip())
        elif begin <= columns // 2:
            out += wrap(last, columns, initial_indent=head, subsequent_indent=" " * begin)
        else:
            out += ["  ".join(cells), *wrap(last, columns, initial_indent="    ", subsequent_indent="    ")]
    return out


def dictionary(value: Any, prefix: str = "") -> list[tuple[str, str]]:
    """Return nested dictionaries and lists as flat (dotted name, text) pairs, in their order; empty ones are left
    out."""
    if isinstance(value, dict):
        return [
            pair for name, item in value.items() for pair in dictionary(item, f"{prefix}.{name}" if prefix else name)
        ]
    if isinstance(value, (list, tuple)):
        return [(prefix, ", ".join(map(_text, value)))] if value else []
    return [(prefix, _text(value))]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return " ".join(f"{name} {_text(item)}" for name, item in value.items())
    return "none" if value is None else str(value)


def tail(path: Path, lines: int = 20, limit: int = 64 * 1024) -> list[str]:
    """Return the last lines of a log, each visible; reads at most `limit` bytes. No file, no lines."""
    if not path.is_file():
        return []
    with path.open("rb") as log:
        log.seek(max(0, path.stat().st_size - limit))
        text = log.read(limit).decode("utf-8", "replace")
    return [visible(line, 400) for line in text.splitlines()[-lines:]]


def _shown(char: str) -> str:
    if char in NAMES:
        return NAMES[char]
    if char.isprintable() and not INVISIBLE.match(char):
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _first_difference(left: str, right: str) -> int:
    for place, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return place
    return min(len(left), len(right))


def _appearance(text: str) -> str:
    """Return what a reader may take the text for: composed, compatible forms made one, look-alike alphabets to
    Latin."""
    from unicodedata import normalize

    return normalize("NFKC", text).translate(ALIKE)


ALIKE = str.maketrans("АВЕКМНОРСТХІЈЅаеорсухіјѕΑΒΕΖΗΙΚΜΝΟΡΤΥΧο", "ABEKMHOPCTXIJSaeopcyxijsABEZHIKMNOPTYXo")  # noqa: RUF001
