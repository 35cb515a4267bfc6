"""The Spark program from whose classes the archives are made: run by `harness.training.processes`, never imported.

It does once what pipelines do all the time: a Kafka stream into foreachBatch with JSON, SQL, a shuffle, Python in the
executors; a batch read of Kafka; a clean stop, without which no archive is written. What writes through JDBC is loaded
by name, since no database is asked for.

Takes the broker, the topic, the number of records in it, a folder for the checkpoint, and a file to wait for. It asks
for that file by another one before it stops (none: do not wait). A worker kills an executor 10 s after its application
ended, and an archive may take longer. So the harness freezes the worker meanwhile.
"""

from __future__ import annotations

import os
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

BATCH = 60
FINISH_S, PAUSE_S = 300.0, 0.1
DRIVER = "META-INF/services/java.sql.Driver"
SPARKS_JDBC = tuple(
    f"org/apache/spark/sql/{folder}/"
    for folder in ("jdbc", "execution/datasources/jdbc", "execution/datasources/v2/jdbc")
)


def touch(rows: Iterator[Row]) -> None:
    """Stands for a write from the executors."""
    for row in rows:
        row.asDict()


def read(spark: SparkSession, broker: str, topic: str) -> DataFrame:
    """Return the topic as a table, as a pipeline that manages offsets by hand reads it."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker)
    return reader.option("subscribe", topic).option("startingOffsets", "earliest").load()


def jdbc_classes(spark: SparkSession) -> list[str]:
    """Return the classes of Spark's JDBC source and writer, and of each JDBC driver that comes beside Spark's jars."""
    beside = spark.sparkContext.getConf().get("spark.driver.extraClassPath") or ""
    jvm: Any = spark._jvm
    found: list[str] = []
    for jar in jvm.java.lang.System.getProperty("java.class.path").split(os.pathsep):
        if zipfile.is_zipfile(jar):
            with zipfile.ZipFile(jar) as opened:
                files = opened.namelist()
            whole = DRIVER in files and jar in beside.split(os.pathsep)
            found += [file for file in files if file.endswith(".class") and (whole or file.startswith(SPARKS_JDBC))]
    # Copies for later JDKs lie under META-INF.
    named = [file for file in found if not file.startswith("META-INF") and file != "module-info.class"]
    return sorted(file.removesuffix(".class").replace("/", ".") for file in named)


def load(spark: SparkSession, names: list[str]) -> tuple[int, int]:
    """Load these classes in the driver and in an executor; how many of them each could. One that needs a library which
    is not there is left out, as it would be by who writes."""
    jvm: Any = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    here = 0
    for name in names:
        with suppress(Py4JJavaError):
            jvm.java.lang.Class.forName(name, False, loader)
            here += 1
    if not spark.catalog.functionExists("try_reflect"):
        return here, 0  # before Spark 4 one class that fails would end the query
    table = spark.createDataFrame([Row(name=name) for name in names])
    there = table.selectExpr("try_reflect('java.lang.Class', 'forName', name) as loaded").collect()
    return here, sum(row.loaded is not None for row in there)


def wait(gate: Path) -> None:
    """Ask for the file `gate`, and wait until it is there."""
    gate.with_suffix(".requested").touch()
    pause = threading.Event()
    for _ in range(int(FINISH_S / PAUSE_S)):
        if gate.exists():
            return
        pause.wait(PAUSE_S)
    sys.exit(f"{gate} did not come in {FINISH_S:g} s")


def main() -> None:
    """Run until every record was seen, and stop."""
    broker, topic, records, checkpoint = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    spark = SparkSession.builder.appName("training").config("spark.sql.shuffle.partitions", "3").getOrCreate()
    seen, finished = [0], threading.Event()

    def batch(payments: DataFrame, number: int) -> None:
        payments.foreachPartition(touch)
        payments.groupBy("account").agg(f.sum("amount"), f.count("*")).collect()
        payments.dropDuplicates(["id"]).write.mode("append").parquet(f"{checkpoint}/sink")
        seen[0] += len(payments.cache().collect())
        payments.unpersist()
        if seen[0] >= records:
            finished.set()

    stream = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker).option("subscribe", topic)
    stream = stream.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", BATCH)
    payment = "id bigint, account string, amount decimal(12, 2), event_time timestamp_ntz"
    text = f"from_json(cast(value as string), '{payment}') as payment"
    parsed = stream.load().selectExpr(text, "partition", "offset").select("payment.*", "partition", "offset")
    query = parsed.writeStream.foreachBatch(batch).option("checkpointLocation", f"{checkpoint}/query").start()
    if not finished.wait(FINISH_S):
        sys.exit(f"saw {seen[0]} of {records} records in {FINISH_S:g} s")
    # The batch that set the word has still to write its commit.
    query.processAllAvailable()
    query.stop()
    read(spark, broker, topic).groupBy("partition").agg(f.max("offset")).collect()
    spark.createDataFrame([Row(id=1, text="a")]).createOrReplaceTempView("plain")
    spark.sql("select id, count(*) from plain group by id").collect()
    load(spark, jdbc_classes(spark))
    for gate in sys.argv[5:]:
        wait(Path(gate))
    spark.stop()


if __name__ == "__main__":
    main()
