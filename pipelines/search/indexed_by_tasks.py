"""Payments from Kafka into a search index, by the tasks. Holds: a payment's id names its document.

Its offset is the version: what is sent again is refused as a version that is there already, whether a search finds it
or not. The index looks a document up by its id without waiting for a refresh.

    spark-submit indexed_by_tasks.py --bootstrap localhost:9092 --topic payments --search http://localhost:9200 \
        --index payments --checkpoint /data/checkpoints/payments

Broken twin: searched_first.py
"""

# /// onceproof
# args:
#   - --bootstrap={kafka.bootstrap}
#   - --topic={topic}
#   - --search={opensearch.url}
#   - --index={opensearch.prefix}payments
#   - --checkpoint={checkpoint}
# # Executors have not got the driver's environment.
# conf: {spark.executorEnv.ONCEPROOF_FAILPOINTS: "{folder}/failpoints"}
# setup:
#   opensearch: |
#     payments:
#       mappings:
#         dynamic: strict
#         properties:
#           id:
#             type: long
#           account:
#             type: keyword
#           amount:
#             type: scaled_float
#             scaling_factor: 100
#           currency:
#             type: keyword
#           event_time:
#             type: date_nanos
# sink:
#   opensearch: payments
#   columns: |
#     id bigint, account string, amount decimal(12, 2), currency string, event_time timestamp_ntz,
#     document string of field _id, version bigint of field _version
#   effect: |
#     select id, account, amount, currency, event_time, cast(id as varchar) as document, _offset + 1 as version
#     from ledger
#   key: [id]
# ///

from __future__ import annotations

import documents
import in_tasks
from pyspark.sql import DataFrame


def main() -> None:
    args = documents.arguments(__doc__)
    save = in_tasks.into(args.search, args.index, documents.by_id, lambda _, rows: rows)

    def batch(payments: DataFrame, number: int) -> None:
        payments.foreachPartition(save)

    documents.run(args, batch)


if __name__ == "__main__":
    main()
