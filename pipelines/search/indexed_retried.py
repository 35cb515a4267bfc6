"""Payments from Kafka into a search index. Holds: a request without a good answer is sent again.

It is not known what was written of such a request. Under the id of the payment it does not matter. When a minute was
not enough, the error ends the query, and with it the batch.

    spark-submit indexed_retried.py --bootstrap localhost:9092 --topic payments --search http://localhost:9200 \
        --index payments --checkpoint /data/checkpoints/payments

Broken version: indexed_failure_logged.py
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

import threading
from collections.abc import Sequence
from time import monotonic

import documents
from pyspark.sql import DataFrame, Row

PATIENCE_S = 60.0
PAUSE_S = 0.2


def send(index: documents.Index, rows: Sequence[Row]) -> None:
    """Write them, again and again until it is done."""
    end = monotonic() + PATIENCE_S
    while True:
        try:
            return index.send(rows, documents.by_id)
        except documents.FAILURES:
            if monotonic() > end:
                raise
        threading.Event().wait(PAUSE_S)


def main() -> None:
    args = documents.arguments(__doc__)
    index = documents.Index(args.search, args.index)

    def batch(payments: DataFrame, number: int) -> None:
        for rows in documents.halves(payments.collect()):
            send(index, rows)

    documents.run(args, batch)


if __name__ == "__main__":
    main()
