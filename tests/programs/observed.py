"""Writes down what a program can see of how it was started: of its process, its JVM, its session and its executors."""

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

import psutil
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession


def nothing(rows: DataFrame, number: int) -> None:
    """A batch that writes nothing."""


def executors(number: int) -> dict[str, Any]:
    """What a task sees of the executor's Python, and its own id."""
    context = TaskContext.get()
    assert context is not None
    jvm = os.getpid()
    while b"CoarseGrainedExecutorBackend" not in (command := Path(f"/proc/{jvm}/cmdline").read_bytes()):
        jvm = int(Path(f"/proc/{jvm}/stat").read_text().rpartition(")")[2].split()[1])
    return {
        # What follows the main class are the addresses of this application.
        "jvm.arguments": command.decode().partition("\0org.apache.spark.")[0].split("\0"),
        "environment": dict(os.environ),
        "path": sys.path,
        "modules": sorted(sys.modules),
        "task": context.taskAttemptId(),
    }


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
    spark = SparkSession.builder.appName("observed").config("spark.sql.shuffle.partitions", "3").getOrCreate()
    jvm: Any = spark.sparkContext._jvm
    management = jvm.java.lang.management.ManagementFactory
    runtime, own = management.getRuntimeMXBean(), sys.modules["__main__"]
    threads = jvm.java.lang.Thread.getAllStackTraces().keySet()
    parent = Path(f"/proc/{os.getppid()}/cmdline").read_bytes().split(b"\0")
    seen = {
        "argv": sys.argv,
        "orig_argv": sys.orig_argv,
        "cwd": str(Path.cwd()),
        "path": sys.path,
        "flags": str(sys.flags),
        "main": [own.__name__, own.__file__, str(own.__spec__), str(own.__package__)],
        "modules": sorted(sys.modules),
        "signals": {
            name.name: str(signal.getsignal(name)).split(" at 0x")[0]
            for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        },
        "environment": dict(os.environ),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "parent": parent[0].decode(),
        "parent is the JVM": os.getppid() == runtime.getPid(),
        "children": [each.name() for each in psutil.Process().children()],
        "jvm.arguments": list(runtime.getInputArguments()),
        "jvm.class_path": runtime.getClassPath(),
        "jvm.properties": dict(jvm.java.lang.System.getProperties()),
        "jvm.environment": dict(jvm.java.lang.System.getenv()),
        "jvm.threads": sorted({re.sub(r"\d+", "N", each.getName()) for each in threads}),
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
    spark.stop()


if __name__ == "__main__":
    main()
