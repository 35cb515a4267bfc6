"""Payments out of text files with DStreams, each batch appended to Postgres. BROKEN: Spark does the last batch again.

A restart takes up the newest checkpoint, which names the files of each batch, and does every batch from its time on
again: also the one that was done last.

    spark-submit files_appended_by_batch.py --folder /data/in --checkpoint /data/checkpoints/payments

Fixed version: files_written_once.py
"""

# /// onceproof
# args: [--folder, "{files.input.path}", --checkpoint, "{checkpoint}"]
# progress: dstreams
# setup:
#   postgres: |
#     create table payments (
#       id bigint, account text, amount numeric(12, 2), currency text, event_time timestamp
#     )
# sink:
#   postgres: payments
#   expected: select id, account, amount, currency, event_time from ledger
#   key: [id]
# input: {source: files, records_per_file: 50}
# ///

from __future__ import annotations

import batches_of_time as common
from pyspark.streaming import StreamingContext


def main() -> None:
    args = common.arguments(__doc__, "folder")

    def build(ssc: StreamingContext) -> None:
        common.folder(args, ssc).foreachRDD(common.appended())

    common.run(args, build)


if __name__ == "__main__":
    main()
