"""Drops records that repeat an identity, as a reader of the topic may do: the first one of each stays.

Which identities were seen is in a temporary database of SQLite's: memory does not go by the records, and its file
has no name once it is open, so it is gone when the process is.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from hashlib import blake2b

from harness.checkers.cells import Row
from harness.errors import StackError, UsageError
from harness.sinks.json_columns import RECORD, Wanted

DROPPED_MAX = 10_000
CACHE_KB = 8192
SEEN = f"""
pragma journal_mode = off;
pragma cache_size = -{CACHE_KB};
create table seen (identity blob primary key, part integer, content blob) without rowid;
begin
"""


class Repeats:
    """What was read so far. A record that has no part of its identity is no repetition. `dropped` are those that
    were; None where no identity is asked for, or there are more than `DROPPED_MAX`. To be closed; for one thread."""

    def __init__(self, wanted: Sequence[Wanted], identity: Sequence[str]) -> None:
        self._identity = identity
        names = [column.name for column in wanted]
        self._places = [names.index(name) for name in identity]
        # Where and when it was written says nothing of what it is.
        self._content = [at for at, column in enumerate(wanted) if column.of not in RECORD]
        self._seen = sqlite3.connect("", isolation_level=None)
        self._seen.executescript(SEEN)
        self.dropped: list[Row] | None = [] if identity else None

    def close(self) -> None:
        """Forget what was seen."""
        self._seen.close()

    def first(self, row: Row, *, partition: int) -> bool:
        """Return whether it is the first record of its identity. Raises UsageError for another record under the same
        one: a reader that drops it would lose it, and of two partitions it is not known which record came first. Raises
        StackError if the disk is full."""
        found = [row[at] for at in self._places]
        if not found or None in found:
            return True
        print_ = _print([row[at] for at in self._content])
        first = self._before(_print(found), partition, print_)
        if first is None:
            return True
        if first[1] != print_:
            same = ", ".join(f"{name}={cell}" for name, cell in zip(self._identity, found, strict=True))
            here = first[0] == partition
            where = f"partition {partition} has" if here else f"partitions {first[0]} and {partition} have"
            saw = f"{where} two different records with {same}"
            raise UsageError(f"asked to drop records that repeat {', '.join(self._identity)}; {saw}")
        if self.dropped is not None:
            self.dropped.append(row)
            self.dropped = self.dropped if len(self.dropped) <= DROPPED_MAX else None
        return False

    def _before(self, identity: bytes, partition: int, content: bytes) -> tuple[int, bytes] | None:
        """Return partition and content of the first record of an identity; None for the first one, which is kept."""
        try:
            new = self._seen.execute("insert or ignore into seen values (?, ?, ?)", (identity, partition, content))
            if new.rowcount:
                return None
            at: tuple[int, bytes]
            (at,) = self._seen.execute("select part, content from seen where identity = ?", (identity,))
            return at
        except sqlite3.Error as failure:
            request = "asked SQLite to keep in a temporary file which records of a topic were read"
            raise StackError(f"{request}; saw {failure}. Is the disk of TMPDIR full?") from failure


def _print(cells: Sequence[str | None]) -> bytes:
    return blake2b(json.dumps(cells).encode(), digest_size=16).digest()
