"""Payments from one topic of Kafka into another with Spark's own Kafka sink, each checked by Python on its way.

BROKEN as spark_sink.py is. When the driver dies while its tasks write, the partitions that are done are in the topic,
and come again with the batch. When an executor dies in the middle of a task, what the task has sent is in the topic,
and the next try sends it again; so does the next try of a task whose producer has given up on a broker that is away
(after `DELIVERY_TIMEOUT_MS`, or two minutes). With `--late-log` Spark tracks its progress asynchronously: whole batches
come again that no log knows.

A task sends only what Python has given back. In Spark 4.0.0 that is 100 records at a time
(`spark.sql.execution.python.udf.maxRecordsPerBatch` is for what Python is given), and only once a buffer of
`spark.sql.execution.python.udf.buffer.size` bytes is full, or the task has no more records. Its 64 KB hold
thousands of booleans.

    spark-submit checked_by_python.py --bootstrap localhost:9092 --topic payments --to checked \
        --checkpoint /data/checkpoints/checked

Fixed version: read the topic without repeated origins (`drop_duplicates: origin`)
"""

# /// onceproof
# args:
#   [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --to, "{kafka.checked.topic}", --checkpoint, "{checkpoint}"]
# # Executors have not got the driver's environment.
# conf: {spark.executorEnv.ONCEPROOF_FAILPOINTS: "{folder}/failpoints"}
# sink:
#   kafka: checked
#   columns: |
#     id bigint, account string, amount decimal(12, 2), currency string, event_time timestamp_ntz,
#     key string of key, origin string of header origin
#   expected: |
#     select id, account, amount, currency, event_time, account as key, concat('0:', _partition, ':', _offset) as origin
#     from ledger
#   key: [id]
# ///

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import payment_records
from pyspark import TaskContext
from pyspark.sql import functions as f

MIDDLE = 150
"""The first 100 records of a task have gone to the sink by then, the second hundred have not."""


def checker(call_ms: int) -> Callable[[str], bool]:
    """A function that counts the records of one task, since each task unpacks its own, and takes so long for each."""
    seen = 0

    def sound(value: str) -> bool:
        """Return whether the payment may go on. It stands for a library's call, with three places to stop a task."""
        from harness import failpoint

        nonlocal seen
        seen += 1
        threading.Event().wait(call_ms / 1000)
        if seen == 1:
            failpoint.reach_in_task("task-begun")
        # Spark begins its tasks by this number, not by that of the topic's partition: when the third begins, one of the
        # two that an executor runs at once has ended, and has sent all it has.
        task = TaskContext.get()
        failpoint.reach_in_task(f"partition-{task.partitionId() if task is not None else 0}")
        if seen == MIDDLE:
            failpoint.reach_in_task("task-half-done")
        return bool(value)

    return sound


def delivery() -> dict[str, str]:
    """Spark's options for how long the producer tries to send a record; one request may take half of that."""
    timeout_ms = os.environ.get("DELIVERY_TIMEOUT_MS")
    if timeout_ms is None:
        return {}
    return {"kafka.delivery.timeout.ms": timeout_ms, "kafka.request.timeout.ms": str(int(timeout_ms) // 2)}


def main() -> None:
    args = payment_records.arguments(__doc__, call_ms=True)
    checked = payment_records.stream(args).where(f.udf(checker(args.call_ms), "boolean")("value"))
    query = (
        checked.writeStream.format("kafka")
        .option("kafka.bootstrap.servers", args.bootstrap)
        .option("topic", args.to)
        .options(**payment_records.secured(args.login), **delivery())
        .option("checkpointLocation", args.checkpoint)
        .option("asyncProgressTrackingEnabled", args.late_log is not None)
        .option("asyncProgressTrackingCheckpointIntervalMs", args.late_log or 0)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
