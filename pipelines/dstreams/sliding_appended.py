"""Sliding windows over text files with DStreams, appended to Postgres. BROKEN: the last window is written again.

A window is two batches long and slides by one, so each record is in two of them. `--of` says what a window comes to:
count (countByWindow), values (countByValueAndWindow), sum (reduceByWindow), inverse (the same with an inverse),
window (the rows of `window`, counted by account through a temporary table).

    spark-submit sliding_appended.py --folder /data/in --checkpoint /data/checkpoints/windows --of count

Fixed version: sliding_kept.py
"""

# /// onceproof
# args: [--folder, "{files.input.path}", --checkpoint, "{checkpoint}", --of, count]
# progress: dstreams
# conf: {spark.sql.shuffle.partitions: 1}
# setup:
#   postgres: |
#     create table began (once boolean primary key default true, batch_time bigint);
#     create table windows (batch bigint, key text, n bigint)
# sink:
#   postgres: windows
#   expected: |
#     select batch, 'all' as key, count(*) as n
#     from (select _batch as batch from ledger union all select _batch + 1 from ledger)
#     where batch is not null group by 1
#   key: [batch, key]
# input: {source: files, records_per_file: 50}
# ///

from __future__ import annotations

import batches_of_time as common
from pyspark.streaming import StreamingContext

SQL = "insert into windows (batch, key, n) values %s"


def main() -> None:
    args = common.arguments(__doc__, "folder", "of")

    def build(ssc: StreamingContext) -> None:
        common.windows(args, common.folder(args, ssc)).foreachRDD(common.saved(SQL, args.interval))

    common.run(args, build)


if __name__ == "__main__":
    main()
