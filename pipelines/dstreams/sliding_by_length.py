"""Sliding windows over text files with DStreams, each given by its length alone, into Postgres.

`window(length)` slides by the batch's interval and not by its length: of a window two batches long each record is in
two. What an account has in a window is counted through a temporary table; the batch in which it ends is the key.

    spark-submit sliding_by_length.py --folder /data/in --checkpoint /data/checkpoints/windows
"""

# /// onceproof
# args: [--folder, "{files.input.path}", --checkpoint, "{checkpoint}"]
# progress: dstreams
# conf: {spark.sql.shuffle.partitions: 1}
# setup:
#   postgres: |
#     create table began (once boolean primary key default true, batch_time bigint);
#     create table windows (batch bigint, key text, n bigint, primary key (batch, key))
# sink:
#   postgres: windows
#   expected: |
#     select batch, account as key, count(*) as n
#     from (select _batch as batch, account from ledger union all select _batch + 1, account from ledger)
#     where batch is not null group by 1, 2
#   key: [batch, key]
# input: {source: files, records_per_file: 50}
# ///

from __future__ import annotations

import json
from typing import Any

import batches_of_time as common
from pyspark.streaming import StreamingContext

SQL = """
    insert into windows (batch, key, n) values %s
    on conflict (batch, key) do update set n = excluded.n
"""


def one(line: str) -> tuple[str, int]:
    """A payment as a pair of its account and 1."""
    return json.loads(line)["account"], 1


def main() -> None:
    args = common.arguments(__doc__, "folder")

    def build(ssc: StreamingContext) -> None:
        window: Any = common.folder(args, ssc).window(2 * args.interval)
        window.map(one).foreachRDD(common.saved(SQL, args.interval))

    common.run(args, build)


if __name__ == "__main__":
    main()
