"""Prints as JSON which Spark it runs on: its PySpark, the JVM's Spark and Scala, and the PySpark of an executor."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

import pyspark
from pyspark.sql import Row, SparkSession


def there(rows: Iterable[Row]) -> Iterable[tuple[str, str]]:
    """The PySpark of the worker that has these rows, and its Python."""
    import sys

    import pyspark

    from harness import failpoint

    failpoint.reach("there")
    yield pyspark.__version__, sys.executable


def main() -> None:
    spark = SparkSession.builder.appName("versions").getOrCreate()
    jvm: Any = spark._jvm
    executor = spark.sparkContext.parallelize([Row(id=1)], 1).mapPartitions(there).collect()[0]
    found = {
        "program": [pyspark.__version__, sys.executable],
        "executor": list(executor),
        "spark": spark.version,
        "scala": jvm.scala.util.Properties.versionNumberString(),
        "connector": jvm.java.lang.Class.forName("org.apache.spark.sql.kafka010.KafkaSourceProvider").getName(),
    }
    print(f"versions: {json.dumps(found)}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
