"""Delta tables with each feature that a reader must know, written by a local Spark; `wanted.json` says their rows.
Each file of `planted/` is a table as well.

python delta_tables.py FOLDER JARS
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

PLAIN = "id bigint, account string, amount decimal(12, 2), at timestamp_ntz, number double, seen timestamp"
PLANTED = "id bigint, account string, amount decimal(38, 9)"
NAMES = "id, account, amount, at, number, seen"
ROWS = """
    values (1, 'Ü', 1.50, timestamp_ntz'2026-01-31 10:00:00.123456', double('NaN'), timestamp'2026-01-31 10:00:00Z'),
           (2, null, null, null, -0.0D, null), (3, '', 7, null, null, timestamp'0001-01-01 00:00:00Z')
"""
FIRST: list[str | None] = ["1", "Ü", "1.5", "2026-01-31T10:00:00.123456", "nan", "2026-01-31T10:00:00.000000Z"]
SECOND: list[str | None] = ["2", None, None, None, "-0.0", None]
THIRD: list[str | None] = ["3", "", "7", None, None, "0001-01-01T00:00:00.000000Z"]
# deltalake reads these by its own engine, and so without a timestamp.
FEATURES = {
    "vectors": "'delta.enableDeletionVectors' = 'true'",
    "mapped": "'delta.columnMapping.mode' = 'name'",
    "second_checkpoint": "'delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '1'",
}


def main() -> None:
    folder, jars = sys.argv[1:]
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jars)
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    wanted: dict[str, list[list[str | None]]] = {}
    for name, properties in FEATURES.items():
        table = f"delta.`{folder}/{name}`"
        # In one file, so that a deletion leaves a part of it.
        rows = f"select /*+ coalesce(1) */ * except (seen) from ({ROWS}) as r({NAMES})"
        spark.sql(f"create table {table} using delta tblproperties ({properties}) as {rows}")
        spark.sql(f"delete from {table} where id = 2")
        wanted[name] = [FIRST[:-1], THIRD[:-1]]
    table = f"delta.`{folder}/mapped`"
    spark.sql(f"alter table {table} rename column account to `the account`")
    spark.sql(f"alter table {table} drop column number")
    wanted["mapped"] = [row[:-1] for row in wanted["mapped"]]
    table = f"delta.`{folder}/merged`"
    spark.sql(f"create table {table} ({PLAIN}) using delta")
    for _ in range(2):
        spark.sql(
            f"merge into {table} as there using (select * from ({ROWS}) as r({NAMES})) as"
            " new on there.id = new.id when matched then update set * when not matched then insert *"
        )
    wanted["merged"] = [FIRST, SECOND, THIRD]
    for planted in Path(folder, "planted").glob("*.json"):
        spark.read.schema(PLANTED).json(str(planted)).write.format("delta").save(f"{folder}/{planted.stem}")
    Path(folder, "wanted.json").write_text(json.dumps(wanted), encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    main()
