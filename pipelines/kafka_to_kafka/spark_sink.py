"""Payments from one topic of Kafka into another with Spark's own Kafka sink. BROKEN: at least once.

The sink has no transaction and keeps no note of the batch: what is run again is written again, with the records of
tasks that had finished. Each record carries in a header where it came from, so that a reader of the topic can drop
what is there twice: then program and reader together are right.

    spark-submit spark_sink.py --bootstrap localhost:9092 --topic payments --to checked \
        --checkpoint /data/checkpoints/checked

Fixed version: read the topic without repeated origins (`drop_duplicates: origin`), or sent_in_transaction.py
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

import payment_records


def main() -> None:
    args = payment_records.arguments(__doc__)
    query = (
        payment_records.stream(args)
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", args.bootstrap)
        .option("topic", args.to)
        .options(**payment_records.secured(args.login))
        .option("checkpointLocation", args.checkpoint)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
