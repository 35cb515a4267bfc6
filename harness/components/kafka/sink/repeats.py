"""Drops records that repeat an identity, as a reader of the topic may do: the first one of each stays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b

from harness.checkers.cells import Row
from harness.errors import UsageError
from harness.sinks.json_columns import RECORD, Wanted

DROPPED_MAX = 10_000


class Repeats:
    """What was read so far. A record that has no part of its identity is nobody's repetition. `dropped` are those that
    were; None where no identity is asked for, or there are more than `DROPPED_MAX`."""

    def __init__(self, wanted: Sequence[Wanted], identity: Sequence[str]) -> None:
        self._identity = identity
        names = [column.name for column in wanted]
        self._places = [names.index(name) for name in identity]
        # Where and when it was written says nothing of what it is.
        self._told = [at for at, column in enumerate(wanted) if column.of not in RECORD]
        self._first: dict[bytes, tuple[int, bytes]] = {}
        self.dropped: list[Row] | None = [] if identity else None

    def first(self, row: Row, *, partition: int) -> bool:
        """Is it the first of its identity? Raises UsageError if another partition has another one: no reader of the
        topic could tell which of them came first."""
        found = [row[at] for at in self._places]
        if not found or None in found:
            return True
        print_ = _print([row[at] for at in self._told])
        first = self._first.get(_print(found))
        if first is None:
            self._first[_print(found)] = partition, print_
            return True
        if first[0] != partition and first[1] != print_:
            same = ", ".join(f"{name}={cell}" for name, cell in zip(self._identity, found, strict=True))
            saw = f"partitions {first[0]} and {partition} have two different records with {same}"
            raise UsageError(f"asked to drop records that repeat {', '.join(self._identity)}; {saw}")
        if self.dropped is not None:
            self.dropped.append(row)
            self.dropped = self.dropped if len(self.dropped) <= DROPPED_MAX else None
        return False


def _print(cells: Sequence[str | None]) -> bytes:
    return blake2b(json.dumps(cells).encode(), digest_size=16).digest()
