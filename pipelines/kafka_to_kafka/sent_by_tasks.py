"""Payments from one topic of Kafka into another, sent by the tasks. BROKEN: no transaction, and no note of the task.

A task that dies half way leaves what it has sent. Spark runs the task again, by itself when an executor dies, and those
records are there twice.

    spark-submit sent_by_tasks.py --bootstrap localhost:9092 --topic payments --to checked \
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

from collections.abc import Callable, Iterable

import payment_records
from kafka import KafkaProducer
from pyspark.sql import DataFrame, Row

ANSWER_S = 30.0


def into(bootstrap: str, to: str) -> Callable[[Iterable[Row]], None]:
    """A writer for `foreachPartition`."""

    def save(rows: Iterable[Row]) -> None:
        from harness import failpoint

        producer, answers = KafkaProducer(bootstrap_servers=bootstrap), []
        found = list(rows)
        for place, row in enumerate(found, 1):
            headers = [(header["key"], bytes(header["value"])) for header in row["headers"]]
            answers.append(producer.send(to, key=row["key"].encode(), value=row["value"].encode(), headers=headers))
            if place == len(found) // 2:
                producer.flush()
                failpoint.reach_in_task("half-sent")
        for answer in answers:
            answer.get(ANSWER_S)
        producer.close()

    return save


def main() -> None:
    args = payment_records.arguments(__doc__)
    save = into(args.bootstrap, args.to)

    def batch(records: DataFrame, number: int) -> None:
        records.foreachPartition(save)

    stream = payment_records.stream(args).writeStream.foreachBatch(batch)
    stream.option("checkpointLocation", args.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
