"""Payments from one topic of Kafka into another, batch by batch. BROKEN: an error is logged, and the batch called done.

A broker that is away for longer than the tasks wait, to read or to send, makes the batch fail. Spark is not told, takes
the batch for done and goes on with the next one.

    spark-submit batch_passed_over.py --bootstrap localhost:9092 --topic payments --to checked \
        --checkpoint /data/checkpoints/checked

Fixed version: sent_in_transaction.py, or error_ends_query.py, which writes at least once
"""

# /// onceproof
# args:
#   [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --to, "{kafka.checked.topic}", --checkpoint, "{checkpoint}"]
# # A task is not tried again: four tries, as by default, outlast an outage of seconds.
# conf: {spark.task.maxFailures: "1"}
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

import logging

import payment_records
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

POLL_MS = 500
"""How long a task waits for records that its batch names."""
SEND_MS = {"kafka.delivery.timeout.ms": 2000, "kafka.request.timeout.ms": 1000, "kafka.max.block.ms": 2000}
"""How long it waits until what it sends is taken: less than an outage of seconds. By default it is two minutes."""


def main() -> None:
    args = payment_records.arguments(__doc__)

    def batch(records: DataFrame, number: int) -> None:
        sink = records.write.format("kafka").option("kafka.bootstrap.servers", args.bootstrap).option("topic", args.to)
        try:
            sink.options(**SEND_MS).save()
        except (PySparkException, Py4JError):
            logging.exception("batch %d failed", number)

    stream = payment_records.stream(args, poll_ms=POLL_MS).writeStream.foreachBatch(batch)
    stream.option("checkpointLocation", args.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
