"""Payments from one topic of Kafka into another, sent by the driver. Holds: records and offsets in one transaction.

Each batch is one transaction of Kafka's, and the offsets that it ends at go into it, as those of a consumer group.
After a crash the next start first ends what the one before had open (same transactional id), and then leaves out what
lies before the group's offsets: Spark runs a batch again that it does not know to be done.

    spark-submit sent_in_transaction.py --bootstrap localhost:9092 --topic payments --to checked \
        --group checked --checkpoint /data/checkpoints/checked

Readers of the topic must be `read_committed`.

Broken versions: sent.py, spark_sink.py, batch_passed_over.py
"""

# /// onceproof
# args:
#   [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --to, "{kafka.checked.topic}", --checkpoint, "{checkpoint}",
#   --group, "{kafka.checked.group}"]
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
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata
from pyspark.sql import DataFrame

from harness import failpoint


def committed(bootstrap: str, group: str, topic: str) -> dict[int, int]:
    """The next offset of each partition, by what the group has committed."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
    places = [TopicPartition(topic, number) for number in sorted(consumer.partitions_for_topic(topic) or ())]
    found = {place.partition: consumer.committed(place) or 0 for place in places}
    consumer.close(autocommit=False)
    return found


def main() -> None:
    args = payment_records.arguments(__doc__, "group")
    producer = KafkaProducer(bootstrap_servers=args.bootstrap, transactional_id=args.group)
    # Ends what an earlier start left open, and lets it send no more: only then are the group's offsets the last word.
    producer.init_transactions()
    done = committed(args.bootstrap, args.group, args.topic)

    def batch(records: DataFrame, number: int) -> None:
        rows = [row for row in records.collect() if row["offset"] >= done.get(row["partition"], 0)]
        if not rows:
            return
        ends = {row["partition"]: row["offset"] + 1 for row in sorted(rows, key=lambda row: row["offset"])}
        offsets = {TopicPartition(args.topic, part): OffsetAndMetadata(end, "", -1) for part, end in ends.items()}
        producer.begin_transaction()
        payment_records.sent(producer, args.to, rows, partial(failpoint.reach, "half-sent", batch=number))
        producer.send_offsets_to_transaction(offsets, args.group)
        failpoint.reach("all-sent", batch=number)
        producer.commit_transaction()
        done.update(ends)

    stream = payment_records.stream(args).writeStream.foreachBatch(batch)
    stream.option("checkpointLocation", args.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
