"""Payments from Kafka into a search index, by the tasks, which search before they insert. BROKEN: a search is late.

The usual advice for an idempotent sink: look which payments are there, insert the others. But a search finds a document
only once the index was refreshed, by default each second. Each request waits until that is done (`refresh=wait_for`),
so the next search finds what it wrote. A task that dies while it waits has sent its documents; the task that Spark runs
again at once searches before the refresh, does not find them, and inserts them once more.

When the driver dies, the index is refreshed long before the next one searches: this is about a task that runs again.

    spark-submit searched_first.py --bootstrap localhost:9092 --topic payments --search http://localhost:9200 \
        --index payments --checkpoint /data/checkpoints/payments

Repair: indexed_by_tasks.py
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
#   columns: id bigint, account string, amount decimal(12, 2), currency string, event_time timestamp_ntz
#   effect: select id, account, amount, currency, event_time from ledger
#   key: [id]
# ///

from __future__ import annotations

import json
from collections.abc import Sequence
from http.client import HTTPConnection

import documents
import in_tasks
from pyspark.sql import DataFrame, Row


def main() -> None:
    args = documents.arguments(__doc__)
    name = args.index

    def missing(server: HTTPConnection, rows: Sequence[Row]) -> list[Row]:
        wanted = {"size": len(rows), "query": {"terms": {"id": [row["id"] for row in rows]}}}
        hits = in_tasks.asked(server, f"/{name}/_search", json.dumps(wanted))["hits"]["hits"] if rows else []
        there = {hit["_source"]["id"] for hit in hits}
        return [row for row in rows if row["id"] not in there]

    save = in_tasks.into(args.search, name, documents.without_id, missing)

    def batch(payments: DataFrame, number: int) -> None:
        payments.foreachPartition(save)

    documents.run(args, batch)


if __name__ == "__main__":
    main()
