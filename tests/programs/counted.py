"""Sums numbers by key in a stateful query, a batch for each file, and keeps what each batch showed.

spark-submit counted.py FILES CHECKPOINT OUT
"""

from __future__ import annotations

import json
import pathlib
import sys

from pyspark.sql import DataFrame, SparkSession


def main(files: str, checkpoint: str, out: str) -> None:
    """Take all files that are there, and end."""
    spark = SparkSession.builder.config("spark.sql.shuffle.partitions", 2).getOrCreate()
    numbers = spark.readStream.schema("key string, number long").option("maxFilesPerTrigger", 1).json(files)

    def keep(summed: DataFrame, batch: int) -> None:
        rows = sorted([*map(list, summed.collect())])
        with pathlib.Path(out).open("a", encoding="utf-8") as file:
            print(json.dumps([batch, rows]), file=file)

    writing = numbers.groupBy("key").sum("number").writeStream.outputMode("update").foreachBatch(keep)
    writing.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
