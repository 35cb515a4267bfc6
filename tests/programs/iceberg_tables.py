"""Iceberg tables with what a reader must know, written by a local Spark; `wanted.json` says their rows. Each file of
`planted/` is a table as well.

python iceberg_tables.py FOLDER JARS
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

NAMES = "id, account, amount, at, seen, number"
ROWS = """
    values (1, 'Ü', 1.50, timestamp_ntz'2026-01-31 10:00:00.123456', timestamp'2026-01-31 10:00:00Z', double('NaN')),
           (2, null, null, null, null, -0.0D), (3, '', 7, null, timestamp'0001-01-01 00:00:00Z', null)
"""
FIRST: list[str | None] = ["1", "Ü", "1.5", "2026-01-31T10:00:00.123456", "2026-01-31T10:00:00.000000Z", "nan"]
SECOND: list[str | None] = ["2", None, None, None, None, "-0.0"]
THIRD: list[str | None] = ["3", "", "7", None, "0001-01-01T00:00:00.000000Z", None]
PLANTED = "id bigint, account string, amount decimal(38, 9)"
MODES = {"copied": "copy-on-write", "on_read": "merge-on-read"}


def main() -> None:
    folder, jars = sys.argv[1:]
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jars)
        .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        .config("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.lake.type", "hadoop")
        .config("spark.sql.catalog.lake.warehouse", folder)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    wanted: dict[str, list[list[str | None]]] = {}
    for name, mode in MODES.items():
        table = f"lake.shop.{name}"
        properties = f"'write.delete.mode' = '{mode}', 'write.merge.mode' = '{mode}'"
        # In one file, so that a deletion leaves a part of it.
        rows = f"select /*+ coalesce(1) */ * from ({ROWS}) as r({NAMES})"
        spark.sql(f"create table {table} using iceberg tblproperties ({properties}) as {rows}")
        spark.sql(f"delete from {table} where id = 2")
        wanted[f"shop.{name}"] = [FIRST, THIRD]
    spark.sql(
        f"merge into lake.shop.on_read as there using (select * from ({ROWS}) as r({NAMES})) as new"
        " on there.id = new.id when matched then update set * when not matched then insert *"
    )
    wanted["shop.on_read"] = [FIRST, SECOND, THIRD]
    spark.sql("alter table lake.shop.copied rename column account to other")
    spark.sql("alter table lake.shop.copied drop column number")
    spark.sql("alter table lake.shop.copied add column number int")
    wanted["shop.copied"] = [[*row[:-1], None] for row in wanted["shop.copied"]]
    for planted in Path(folder, "planted").glob("*.json"):
        spark.read.schema(PLANTED).json(str(planted)).writeTo(f"lake.shop.{planted.stem}").using("iceberg").create()
    Path(folder, "wanted.json").write_text(json.dumps(wanted), encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    main()
