"""Records that are a line each, whatever carries them: which can be one, and how they are kept as read back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from harness.checkpoint import Offsets
from harness.workloads.base import Record

if TYPE_CHECKING:
    # Scenario files are read without what reads tables.
    import pyarrow as pa

NO_LINE = "it is no line: empty, or with a line break"


class Line(NamedTuple):
    """A record, and when it was sent, in milliseconds since 1970; 0 where that is not known."""

    value: bytes
    at_ms: int


def is_line(value: bytes) -> bool:
    """Return whether a reader of lines gets it back. A reader of JSON passes over an empty one."""
    return bool(value.strip()) and b"\n" not in value and b"\r" not in value


def text(values: Sequence[bytes]) -> bytes:
    """As they are carried."""
    return b"".join(value + b"\n" for value in values)


def read_back(partition: int, lines: Sequence[Line]) -> pa.RecordBatch:
    """Return all records of a partition, numbered from 0, as `write_source` of the ledger takes them."""
    import pyarrow as pa

    from harness.run_folder.ledger import SOURCE

    rows = [
        {
            "partition": partition,
            "offset": at,
            "timestamp_ms": line.at_ms,
            "key": None,
            "value": line.value,
            "seq": None,
        }
        for at, line in enumerate(lines)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=SOURCE)


class OwnSender:
    """An open source that is its own sender: the lines of its `server`, each of which is a record, are one
    partition."""

    server: Any

    def sender(self) -> Self:
        """Nothing has to be connected."""
        return self

    def placed(self, record: Record) -> Record:
        """There is one partition."""
        return record._replace(partition=0)

    def ends(self) -> Offsets:
        """Return how many records there are."""
        return {0: len(self.server)}

    def read_back(self, path: Path, *, within_s: float) -> Offsets:
        """As they were taken."""
        from harness.run_folder.ledger import write_source

        write_source(path, [read_back(0, self.server.lines())])
        return self.ends()

    def close(self) -> None:
        """The server goes on."""
