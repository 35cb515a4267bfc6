"""Payments from one topic of Kafka into another with Spark's own Kafka sink, each checked by Python on its way.

BROKEN as spark_sink.py is. When the driver dies while its tasks write, the partitions that are done are in the topic,
and come again with the batch. With `--late-log` Spark tracks its progress asynchronously: whole batches come again that
no log knows.

    spark-submit checked_by_python.py --bootstrap localhost:9092 --topic payments --to checked \
        --checkpoint /data/checkpoints/checked

Repair: read the topic without repeated origins (`drop_duplicates: origin`)
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
#   effect: |
#     select id, account, amount, currency, event_time, account as key, concat(_partition, ':', _offset) as origin
#     from ledger
#   key: [id]
# ///

from __future__ import annotations

import payment_records
from pyspark import TaskContext
from pyspark.sql import functions as f

BATCH = "streaming.sql.batchId"


def sound(value: str, partition: int) -> bool:
    """Is it a payment that may go on? A stand-in for a call of some library; a place to stop a task at."""
    from harness import failpoint

    task = TaskContext.get()
    batch = task.getLocalProperty(BATCH) if task is not None else None
    failpoint.reach(f"partition-{partition}", batch=int(batch) if batch else None)
    return bool(value)


def main() -> None:
    args = payment_records.arguments(__doc__)
    checked = payment_records.stream(args).where(f.udf(sound, "boolean")("value", "partition"))
    query = (
        checked.writeStream.format("kafka")
        .option("kafka.bootstrap.servers", args.bootstrap)
        .option("topic", args.to)
        .options(**payment_records.secured(args.login))
        .option("checkpointLocation", args.checkpoint)
        .option("asyncProgressTrackingEnabled", args.late_log is not None)
        .option("asyncProgressTrackingCheckpointIntervalMs", args.late_log or 0)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
