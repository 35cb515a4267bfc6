"""`onceproof new`: a scenario and a pipeline to start from. Both work as they are written."""

from __future__ import annotations

import re
from pathlib import Path

from harness.errors import UsageError

NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")

SCENARIO = """\
name: __NAME__ when its driver dies between the sink's commit and the offsets' commit
why: that batch runs a second time, and only a sink that does not mind gets it right
pipeline: pipelines/__NAME__.py         # its header block says how it is started and what its sink should hold
guarantee: exactly-once
input: {workload: transactions, records: 600, keys: 50, partitions: 3}     # or {replay: data/your.jsonl}
schedule:
  - {when: {point: sink-committed, batch: 3}, do: kill driver}
expect: held                            # of a broken twin you expect: {violated: [duplicated]}
timeout: 120s
"""

PIPELINE = '''\
"""Payments from Kafka into Postgres, each under its own id: a batch that runs twice changes nothing.

    WAREHOUSE="host=localhost dbname=shop" spark-submit __NAME__.py localhost:9092 payments /data/checkpoints/__NAME__
"""

# /// onceproof
# args: ["{kafka.bootstrap}", "{topic}", "{checkpoint}"]
# env: {WAREHOUSE: "{postgres.dsn}"}
# setup: {postgres: "create table payments (id bigint primary key, account text, amount numeric(18, 2))"}
# sink: {postgres: payments, effect: "select id, account, amount from ledger", key: [id]}
# ///

import os
import sys

import psycopg2
from psycopg2.extras import execute_values
from pyspark.sql import DataFrame, SparkSession

PAYMENT = "id long, account string, amount decimal(18, 2)"
# Try it without the second line and without the primary key: the same scenario then finds duplicates.
INSERT = """insert into payments (id, account, amount) values %s
    on conflict (id) do update set account = excluded.account, amount = excluded.amount"""


def main() -> None:
    bootstrap, topic, checkpoint = sys.argv[1:]
    warehouse = os.environ["WAREHOUSE"]

    def save(rows):  # on an executor, one transaction a partition
        connection = psycopg2.connect(warehouse)
        with connection, connection.cursor() as cursor:
            execute_values(cursor, INSERT, [tuple(row) for row in rows])
        connection.close()

    def batch(payments: DataFrame, number: int) -> None:
        payments.foreachPartition(save)

    spark = SparkSession.builder.appName("__NAME__").getOrCreate()
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 60)
        .load()
    )
    payments = records.selectExpr(f"from_json(cast(value as string), '{PAYMENT}') as p").select("p.*")
    payments.writeStream.foreachBatch(batch).option("checkpointLocation", checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main()
'''


def scaffold(name: str, folder: Path) -> list[Path]:
    """Write both files under `folder`; returns their paths. Raises UsageError for a bad name or a file in the way."""
    if not NAME.fullmatch(name):
        raise UsageError(f"asked for the name {name!r}; use small letters, digits and '_', beginning with a letter")
    files = {
        folder / "scenarios" / f"{name}.yaml": SCENARIO,
        folder / "pipelines" / f"{name}.py": PIPELINE,
    }
    for path in files:
        if path.exists():
            raise UsageError(f"asked to write {path}; it is there already. Take another name, or remove it")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("__NAME__", name), encoding="utf-8")
    return list(files)
