"""Iceberg tables of a Hadoop catalog: a folder that driver and executors see. There is no server; each part of a run is
one warehouse.

sink   a table, read back without Spark
"""

from __future__ import annotations

from harness.fields.shape import Shape
from harness.kinds import About
from harness.sinks.table_component import TableFormat

KIND = TableFormat(
    about=About(
        name="iceberg",
        summary="Iceberg tables in the folder of a Hadoop catalog, and the jars that a program puts under spark.jars",
        example='conf: {spark.jars: "{iceberg.jars}", spark.sql.catalog.lake.warehouse: "{iceberg.path}"}',
        options=Shape,
    ),
    reader="pyiceberg",
)
