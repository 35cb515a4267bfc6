"""Payments from Kafka into a search index and into a table. Holds: the payment's id names it in both.

The batch may be written to either any number of times. In the index the offset is the version too: what comes again, or
comes late, is refused. Between the two writes a reader can see a payment in the index and not yet in the table. What
libpq's PG* variables name is the database.

    spark-submit index_and_table_by_id.py --bootstrap localhost:9092 --topic payments --search http://localhost:9200 \
        --index payments --checkpoint /data/checkpoints/payments

Broken version: index_and_table.py
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
#   postgres: |
#     create table payments (
#       id bigint primary key, account text, amount numeric(12, 2), currency text, event_time timestamp
#     )
# together: true
# sink:
#   - opensearch: payments
#     columns: |
#       id bigint, account string, amount decimal(12, 2), currency string, event_time timestamp_ntz,
#       document string of field _id, version bigint of field _version
#     expected: |
#       select id, account, amount, currency, event_time, cast(id as varchar) as document, _offset + 1 as version
#       from ledger
#     key: [id]
#   - postgres: payments
#     expected: select id, account, amount, currency, event_time from ledger
#     key: [id]
# ///

from __future__ import annotations

from contextlib import closing

import documents
import psycopg2
from psycopg2.extras import execute_values
from pyspark.sql import DataFrame

from harness import failpoint

SAVE = """
    insert into payments (id, account, amount, currency, event_time) values %s on conflict (id) do nothing
"""


def main() -> None:
    args = documents.arguments(__doc__)
    index = documents.Index(args.search, args.index)

    def batch(payments: DataFrame, number: int) -> None:
        rows = payments.collect()
        index.send(rows, documents.by_id)
        failpoint.reach("indexed", batch=number)
        with closing(psycopg2.connect("")) as database, database, database.cursor() as cursor:
            execute_values(cursor, SAVE, [row[:5] for row in rows])

    documents.run(args, batch)


if __name__ == "__main__":
    main()
