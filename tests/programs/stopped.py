"""The query of `counted.py`, which another thread stops once it is asked to.

spark-submit stopped.py FILES CHECKPOINT OUT
"""

from __future__ import annotations

import pathlib
import sys
import threading

from pyspark.sql import SparkSession

WITHIN_S = 120


def main(files: str, checkpoint: str, out: str) -> None:
    """Take all files that are there, or end once the file `stop` is beside them."""
    spark = SparkSession.builder.config("spark.sql.shuffle.partitions", 2).getOrCreate()
    numbers = spark.readStream.schema("key string, number long").option("maxFilesPerTrigger", 1).json(files)
    writing = numbers.groupBy("key").sum("number").writeStream.outputMode("update").format("noop")
    query = writing.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    beside, tick = pathlib.Path(out).parent, threading.Event()

    def stop() -> None:
        while not (beside / "stop").exists():
            tick.wait(0.05)
        (beside / "stopping").touch()
        query.stop()

    threading.Thread(target=stop, daemon=True).start()
    query.awaitTermination(WITHIN_S)


if __name__ == "__main__":
    main(*sys.argv[1:])
