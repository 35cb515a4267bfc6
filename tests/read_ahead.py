"""How much a reader of Arrow batches decodes ahead of who asks for them."""

from __future__ import annotations

import pyarrow as pa

from harness.wait import until

FILES, ROWS = 12, 20_000
STEADY = 10
"""So many readings without a change: who reads ahead has stopped, or was never there."""


def file(number: int) -> pa.Table:
    """The rows of one data file, which no other one has: a megabyte and a half."""
    ids = range(number * ROWS, (number + 1) * ROWS)
    return pa.table({"id": pa.array(ids, pa.int64()), "text": [f"{at:064}" for at in ids]})


def decoded(reader: pa.RecordBatchReader) -> float:
    """How many of such files are in memory once the first batch was taken and nobody has asked for more."""
    before = pa.total_allocated_bytes()
    first = reader.read_next_batch()
    sizes = [0]

    def steady() -> bool:
        sizes.append(pa.total_allocated_bytes() - before)
        return len(sizes) > STEADY and len({*sizes[-STEADY:]}) == 1

    until("what is read ahead to stay as it is", steady, within_s=60.0)
    assert first.num_rows
    one: int = file(0).nbytes
    return sizes[-1] / one
