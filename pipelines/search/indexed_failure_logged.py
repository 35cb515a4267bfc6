"""Payments from Kafka into a search index. BROKEN: an error is logged, and the batch goes on.

A server that is away for a moment costs the payments of that moment: Spark takes the batch for done.

    spark-submit indexed_failure_logged.py --bootstrap localhost:9092 --topic payments --search http://localhost:9200 \
        --index payments --checkpoint /data/checkpoints/payments

Fixed versions: indexed_retried.py, or indexed_by_id.py, where the error ends the query
"""

# /// onceproof
# args:
#   - --bootstrap={kafka.bootstrap}
#   - --topic={topic}
#   - --search={opensearch.url}
#   - --index={opensearch.prefix}payments
#   - --checkpoint={checkpoint}
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
#   expected: |
#     select id, account, amount, currency, event_time, cast(id as varchar) as document, _offset + 1 as version
#     from ledger
#   key: [id]
# ///

from __future__ import annotations

import logging

import documents
from pyspark.sql import DataFrame


def main() -> None:
    args = documents.arguments(__doc__)
    index = documents.Index(args.search, args.index)

    def batch(payments: DataFrame, number: int) -> None:
        for rows in documents.halves(payments.collect()):
            try:
                index.send(rows, documents.by_id)
            except documents.FAILURES:
                logging.exception("batch %d was not indexed", number)

    documents.run(args, batch)


if __name__ == "__main__":
    main()
