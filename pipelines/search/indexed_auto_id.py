"""Payments from Kafka into a search index. BROKEN: OpenSearch makes an id for each document that it is sent.

What a batch had written before a crash stays, and is written again under other ids.

    spark-submit indexed_auto_id.py --bootstrap localhost:9092 --topic payments --search http://localhost:9200 \
        --index payments --checkpoint /data/checkpoints/payments

Fixed version: indexed_by_id.py
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
#   columns: id bigint, account string, amount decimal(12, 2), currency string, event_time timestamp_ntz
#   expected: select id, account, amount, currency, event_time from ledger
#   key: [id]
# ///

from __future__ import annotations

import documents
from pyspark.sql import DataFrame

from harness import failpoint


def main() -> None:
    args = documents.arguments(__doc__)
    index = documents.Index(args.search, args.index)

    def batch(payments: DataFrame, number: int) -> None:
        first, second = documents.halves(payments.collect())
        index.send(first, documents.without_id)
        failpoint.reach("half-indexed", batch=number)
        index.send(second, documents.without_id)

    documents.run(args, batch)


if __name__ == "__main__":
    main()
