"""What a dropped file looks like, and what becomes of it once a batch has taken it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness.sources.lines import NO_LINE, is_line, text


class Format(StrEnum):
    """How a file stores records: one a line, or as the column `value` (binary) of a Parquet file."""

    LINES = "lines"
    PARQUET = "parquet"


class Afterwards(StrEnum):
    """What its writer does to a file that a batch has taken: nothing, gives it another name, or writes the same again
    under its name."""

    NOTHING = "nothing"
    RENAMED = "renamed"
    REWRITTEN = "rewritten"


@dataclass(frozen=True)
class Form:
    """`written` makes the bytes of a file, `takes` says whether a record can be in one, `refused` why it cannot."""

    suffix: str
    written: Callable[[Sequence[bytes]], bytes]
    takes: Callable[[bytes], bool] = lambda value: True
    refused: str = ""


def parquet(values: Sequence[bytes]) -> bytes:
    """The same records are the same bytes."""
    # Scenario files are read without what writes tables.
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = pa.BufferOutputStream()
    pq.write_table(pa.table({"value": pa.array(values, pa.binary())}), out)
    return bytes(out.getvalue().to_pybytes())


FORMS = {
    Format.LINES: Form("txt", text, is_line, NO_LINE),
    Format.PARQUET: Form("parquet", parquet),
}
