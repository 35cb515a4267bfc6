"""Payments out of text files with DStreams: (batch time, partition) goes into the transaction of the rows in Postgres.

The checkpoint names the files of each batch, so a batch that is done again has the same partitions, and the attempt
that comes second finds the line in `written`.

    spark-submit files_written_once.py --folder /data/in --checkpoint /data/checkpoints/payments

Broken version: files_appended_by_batch.py
"""

# /// onceproof
# args: [--folder, "{files.input.path}", --checkpoint, "{checkpoint}"]
# progress: dstreams
# setup:
#   postgres: |
#     create table payments (
#       id bigint, account text, amount numeric(12, 2), currency text, event_time timestamp
#     );
#     create table written (batch_time bigint, partition int, primary key (batch_time, partition))
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
        common.folder(args, ssc).foreachRDD(common.written_once())

    common.run(args, build)


if __name__ == "__main__":
    main()
