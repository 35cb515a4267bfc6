"""What a KEY of the command line means.

205                 the row whose key is 205; of several columns in their order, `A-3,2026-01-01`
id=205              the same by name; `account=A-3,currency=EUR` for several columns
@2/53               the record at partition 2, offset 53
#204                the record that was sent as number 204, counted from 0
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.errors import UsageError
from harness.report.escape import visible

FORMS = "A key is `205`, `id=205`, `2026-01-01T00:00:10.000000` for a time, `@PARTITION/OFFSET` or `#NUMBER`"
PLACE = re.compile(r"@(\d{1,9})/(\d{1,18})")
NUMBER = re.compile(r"#(\d{1,18})")


@dataclass(frozen=True, kw_only=True)
class RecordKey:
    """One of the three: where a record lies, its number, or the cells of a key (by column, where they were named)."""

    place: tuple[int, int] | None = None
    seq: int | None = None
    cells: tuple[str | None, ...] = ()
    columns: tuple[str, ...] = ()

    def key(self, names: Sequence[str]) -> tuple[str | None, ...] | None:
        """Return the cells in the order of a sink's key; None if that has other columns."""
        if not self.columns:
            return self.cells if len(self.cells) == len(names) else None
        if sorted(self.columns) != sorted(names):
            return None
        by_name = dict(zip(self.columns, self.cells, strict=True))
        return tuple(by_name[name] for name in names)


def parsed(text: str) -> RecordKey:
    """Return the record or row that `text` names. Raises UsageError if it names none."""
    if found := PLACE.fullmatch(text):
        return RecordKey(place=(int(found[1]), int(found[2])))
    if found := NUMBER.fullmatch(text):
        return RecordKey(seq=int(found[1]))
    cells = next(csv.reader([text]), []) if "\n" not in text and "\r" not in text else [text]
    if not text.strip() or not cells:
        raise UsageError(f"asked to explain the key {visible(text, 80)!r}; that is none. {FORMS}")
    pairs = [cell.partition("=") for cell in cells]
    if all(name and equals for name, equals, _ in pairs):
        names = tuple(name.strip() for name, _, _ in pairs)
        if len(set(names)) == len(names):
            return RecordKey(columns=names, cells=tuple(_cell(value) for _, _, value in pairs))
    return RecordKey(cells=tuple(map(_cell, cells)))


def _cell(text: str) -> str | None:
    return None if text == "NULL" else text
