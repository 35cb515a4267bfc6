"""Payments from Kafka into a search index. Holds: a payment's id names its document, and its offset is the version.

What is sent again is refused as a version that is there already, which is what was wanted.

    spark-submit indexed_by_id.py --bootstrap localhost:9092 --topic payments --search http://localhost:9200 \
        --index payments --checkpoint /data/checkpoints/payments

Broken versions: indexed_auto_id.py, indexed_failure_logged.py
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

import documents
from pyspark.sql import DataFrame

from harness import failpoint


def main() -> None:
    args = documents.arguments(__doc__)
    index = documents.Index(args.search, args.index)

    def batch(payments: DataFrame, number: int) -> None:
        first, second = documents.halves(payments.collect())
        index.send(first, documents.by_id)
        failpoint.reach("half-indexed", batch=number)
        index.send(second, documents.by_id)

    documents.run(args, batch)


if __name__ == "__main__":
    main()
