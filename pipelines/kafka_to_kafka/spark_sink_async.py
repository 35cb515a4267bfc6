"""Payments from one topic of Kafka into another with Spark's own Kafka sink and AsyncProgressTracking. BROKEN: at least
once, and by more than a batch.

Spark logs offsets late then, once a second by default, and not for every batch: a restart begins again with the batch
after the last that is logged.

    spark-submit spark_sink_async.py --bootstrap localhost:9092 --topic payments --to checked \
        --checkpoint /data/checkpoints/checked

See spark_sink.py for what is left to repair without the option.
"""

# /// onceproof
# args:
#   [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --to, "{kafka.checked.topic}", --checkpoint, "{checkpoint}"]
# progress: async
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


def main() -> None:
    args = payment_records.arguments(__doc__)
    query = (
        payment_records.stream(args)
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", args.bootstrap)
        .option("topic", args.to)
        .option("checkpointLocation", args.checkpoint)
        .option("asyncProgressTrackingEnabled", True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
