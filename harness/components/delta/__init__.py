"""Delta tables: folders that driver and executors see. There is no server; each part of a run is one folder.

sink   a table, read back without Spark
"""

from __future__ import annotations

from harness.component import Mark
from harness.fields.shape import Shape
from harness.kinds import About
from harness.sinks.table_component import TableFormat

KIND = TableFormat(
    about=About(
        name="delta",
        summary="Delta tables in a folder, and the jars that a program puts under spark.jars; each part is a folder",
        example='conf: {spark.jars: "{delta.jars}"}',
        options=Shape,
    ),
    reader="deltalake",
    marks=(Mark(text="{delta.path}/$name", option="path", format="delta", writes=True),),
)
