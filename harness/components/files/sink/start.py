"""How a pipeline into Parquet files begins."""

from __future__ import annotations

from harness.sinks.starts import Parts, Table

BATCH = """\

    def batch(rows: DataFrame, number: int) -> None:
        # Try it with mode("append") and without the number: the same scenario then finds duplicates.
        rows.write.mode("overwrite").parquet(f"{args.output}/batch-{number:06}")
"""


class Overwrite:
    """A folder for each batch."""

    shapes = ("map-only",)
    broken = ()

    def parts(self, table: Table) -> Parts:
        """Each batch over what it wrote before."""
        return Parts(
            where="Parquet files, a folder for each batch, which is written over",
            why="A batch that runs twice does no harm: its folder has its number, and is written over as a whole.",
            options={"--output": f"{{files.path}}/{table.name}"},
            examples=f" --output /data/{table.name}",
            sink=(f"files: {table.name}",),
            batch=BATCH,
        )
