"""Says what a program can see of how it was started: of its process, its JVM and its session. Takes a file to write."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession


def main() -> None:
    """Start a session with a setting of its own, and write down what there is."""
    spark = SparkSession.builder.appName("observed").config("spark.sql.shuffle.partitions", "3").getOrCreate()
    jvm: Any = spark.sparkContext._jvm
    runtime = jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
    seen = {
        "argv": sys.argv,
        "cwd": str(Path.cwd()),
        "path": sys.path,
        "environment": dict(os.environ),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "jvm.arguments": list(runtime.getInputArguments()),
        "jvm.class_path": runtime.getClassPath(),
        "jvm.properties": dict(jvm.java.lang.System.getProperties()),
        "jvm.environment": dict(jvm.java.lang.System.getenv()),
        "conf": dict(spark.sparkContext.getConf().getAll()),
        "sql": {row.key: row.value for row in spark.sql("set").collect()},
    }
    Path(sys.argv[1]).write_text(json.dumps(seen, default=str, indent=1, sort_keys=True), encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    main()
