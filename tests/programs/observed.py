"""Says what a program can see of how it was started: of its process, its JVM, its session and its executors. Takes a
file to write; `--other` asks for another session than the one that is ready, `--context` makes a context under a name
given by hand, `--variable` changes its own environment first, `--raise` ends in an error of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from pyspark import SparkContext, TaskContext
from pyspark.sql import DataFrame, SparkSession


def session(words: list[str]) -> SparkSession:
    """A session with a setting of its own."""
    if "--variable" in words:
        os.environ["OBSERVED"] = "1"
    if "--context" in words:
        return SparkSession(SparkContext(appName="by hand"))
    parts = "5" if "--other" in words else "3"
    return SparkSession.builder.appName("observed").config("spark.sql.shuffle.partitions", parts).getOrCreate()


def nothing(rows: DataFrame, number: int) -> None:
    """A batch that writes nothing."""


def executors(number: int) -> dict[str, Any]:
    """What a task sees of the executor's Python, and its own id."""
    context = TaskContext.get()
    assert context is not None
    return {"environment": dict(os.environ), "path": sys.path, "task": context.taskAttemptId()}


def checkpoint(spark: SparkSession, folder: Path) -> dict[str, str]:
    """What a query of one batch leaves in its checkpoint, by file: without its own id, and the time."""
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).option("numPartitions", 2).load()
    query = rows.writeStream.foreachBatch(nothing).option("checkpointLocation", str(folder)).trigger(once=True).start()
    query.awaitTermination(120)
    found = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("[!.]*") if path.is_file()}
    out = {name: re.sub(r'"(id|batchTimestampMs)":[^,}]+', r'"\1":0', text) for name, text in found.items()}
    return {name: re.sub(r"\d{13}", "TIME", text) for name, text in out.items()}


def main() -> None:
    """Start a session, and write down what there is."""
    words = sys.argv[2:]
    spark = session(words)
    jvm: Any = spark.sparkContext._jvm
    runtime = jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
    own: Any = sys.modules["__main__"]
    seen = {
        "argv": sys.argv,
        "orig_argv": sys.orig_argv,
        "cwd": str(Path.cwd()),
        "path": sys.path,
        "flags": str(sys.flags),
        "main": [own.__name__, own.__file__, str(own.__spec__), str(own.__package__), str(own.__cached__)],
        "modules": sorted(sys.modules),
        "signals": {
            name.name: str(signal.getsignal(name)).split(" at 0x")[0]
            for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        },
        "environment": dict(os.environ),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "jvm.arguments": list(runtime.getInputArguments()),
        "jvm.class_path": runtime.getClassPath(),
        "jvm.properties": dict(jvm.java.lang.System.getProperties()),
        "jvm.environment": dict(jvm.java.lang.System.getenv()),
        "jvm.listeners": sorted(str(each) for each in spark.sparkContext._jsc.sc().listenerBus().listeners()),
        "conf": dict(spark.sparkContext.getConf().getAll()),
        "sql": {row.key: row.value for row in spark.sql("set").collect()},
        "tables": [row.name for row in spark.catalog.listTables()],
        "streams": len(spark.streams.active),
    }
    (there,) = spark.sparkContext.parallelize([0], 1).map(executors).collect()
    seen |= {f"executor.{name}": value for name, value in there.items()}
    # Last, since a query leaves its listeners in the session.
    with tempfile.TemporaryDirectory() as folder:
        seen["checkpoint"] = checkpoint(spark, Path(folder))
    Path(sys.argv[1]).write_text(json.dumps(seen, default=str, indent=1, sort_keys=True), encoding="utf-8")
    if "--raise" in words:
        raise RuntimeError("an error of its own")
    spark.stop()


if __name__ == "__main__":
    main()
