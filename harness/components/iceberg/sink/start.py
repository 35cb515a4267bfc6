"""How a pipeline into an Iceberg table begins."""

from __future__ import annotations

from harness.sinks.starts import Parts, Table
from harness.sinks.starts.shapes import Start

BEFORE = '''\
MAKE = """
    create table if not exists lake.shop.{table} ({columns})
    using iceberg
"""
{hint}MERGE = """
    merge into lake.shop.{table} as there using batch on there.{key} = batch.{key}
    when matched then update set *
    when not matched then insert *
"""
'''
BATCH = """\

    spark.sql(MAKE)

    def batch(rows: DataFrame, number: int) -> None:
        rows.createOrReplaceTempView("batch")
        rows.sparkSession.sql(MERGE)
"""
CONF = {
    "spark.sql.extensions": '"org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"',
    "spark.sql.catalog.lake": '"org.apache.iceberg.spark.SparkCatalog"',
    "spark.sql.catalog.lake.type": '"hadoop"',
    "spark.sql.catalog.lake.warehouse": "args.warehouse",
}


def merge(table: Table) -> Parts:
    """Rows merged by their key."""
    appended = f'with `rows.writeTo("lake.shop.{table.name}").append()`'
    return Parts(
        where="an Iceberg table",
        options={"--warehouse": "{iceberg.path}"},
        examples=" --warehouse /data/lake",
        header=('conf: {spark.jars: "{iceberg.jars}"}',),
        sink=(f"iceberg: shop.{table.name}",),
        conf=CONF,
        before=BEFORE.format(table=table.name, columns=table.sql({}), key=table.key, hint=table.hint(appended)),
        batch=BATCH,
    )


START = Start(merge)
