"""How a pipeline into Parquet files begins."""

from __future__ import annotations

from harness.sinks.starts import Parts, Table
from harness.sinks.starts.shapes import APPENDED, Start

BATCH = """\

    def batch(rows: DataFrame, number: int) -> None:
{hint}        rows.write.mode("overwrite").parquet(f"{{args.output}}/batch={{number}}")
"""


def overwrite(table: Table) -> Parts:
    """A folder for each batch."""
    return Parts(
        where="Parquet files, a folder for each batch",
        why="A batch that runs twice does no harm: its folder has its number, and is written over as a whole.",
        options={"--output": f"{{files.path}}/{table.name}"},
        examples=f" --output /data/{table.name}",
        # A listing has the batch as a column; no query over the ledger knows which batch closes a window.
        sink=(
            f"files: {table.name}",
            "reader: recursive     # listing: the folder's `batch` would be a column too",
        ),
        batch=BATCH.format(hint=table.hint('with mode("append")', "        ")),
    )


START = Start(overwrite, shapes=APPENDED)
