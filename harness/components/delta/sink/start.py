"""How a pipeline into a Delta table begins."""

from __future__ import annotations

from harness.sinks.starts import Parts, Table
from harness.sinks.starts.shapes import Start

BEFORE = '''\
MAKE = """
    create table if not exists delta.`{{table}}` ({columns})
    using delta
"""
{hint}MERGE = """
    merge into delta.`{{table}}` as there using batch on there.{key} = batch.{key}
    when matched then update set *
    when not matched then insert *
"""
'''
APPENDED = 'with `rows.write.format("delta").mode("append").save(args.table)`'
BATCH = """\

    spark.sql(MAKE.format(table=args.table))

    def batch(rows: DataFrame, number: int) -> None:
        rows.createOrReplaceTempView("batch")
        rows.sparkSession.sql(MERGE.format(table=args.table))
"""
CONF = {
    "spark.sql.extensions": '"io.delta.sql.DeltaSparkSessionExtension"',
    "spark.sql.catalog.spark_catalog": '"org.apache.spark.sql.delta.catalog.DeltaCatalog"',
    # For a small table: by default it reads Delta's log in 50 tasks.
    "spark.databricks.delta.snapshotPartitions": '"2"',
}


def merge(table: Table) -> Parts:
    """Rows merged by their key."""
    return Parts(
        where="a Delta table",
        options={"--table": f"{{delta.path}}/{table.name}"},
        examples=f" --table /data/tables/{table.name}",
        header=('conf: {spark.jars: "{delta.jars}"}',),
        sink=(f"delta: {table.name}",),
        conf=CONF,
        before=BEFORE.format(columns=table.sql({}), key=table.key, hint=table.hint(APPENDED)),
        batch=BATCH,
    )


START = Start(merge)
