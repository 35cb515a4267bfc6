"""Payments from one topic of Kafka into another, sent by the driver. BROKEN: no transaction, and no note of the batch.

What was sent before a crash stays, and is sent again with the batch.

    spark-submit sent.py --bootstrap localhost:9092 --topic payments --to checked --checkpoint /data/checkpoints/checked

Fixed version: sent_in_transaction.py
"""

# /// onceproof
# args:
#   [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --to, "{kafka.checked.topic}", --checkpoint, "{checkpoint}"]
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

from functools import partial

import payment_records
from kafka import KafkaProducer
from pyspark.sql import DataFrame

from harness import failpoint


def main() -> None:
    args = payment_records.arguments(__doc__)
    producer = KafkaProducer(bootstrap_servers=args.bootstrap, acks="all", enable_idempotence=True)

    def batch(records: DataFrame, number: int) -> None:
        half = partial(failpoint.reach, "half-sent", batch=number)
        payment_records.sent(producer, args.to, records.collect(), half)
        failpoint.reach("all-sent", batch=number)

    query = (
        payment_records.stream(args)
        .writeStream.foreachBatch(batch)
        .option("checkpointLocation", args.checkpoint)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
