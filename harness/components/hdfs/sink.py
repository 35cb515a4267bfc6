"""The sink `hdfs`: a folder of files in HDFS, read back."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from harness.components.files.sink import How, RemoteFiles
from harness.fields import values as v
from harness.kinds import About


class Place(How):
    """Which folder, and how it is read."""

    hdfs: Annotated[v.Label, Field(description="the name of a folder below {hdfs.path}")]


KIND = RemoteFiles(
    About(
        name="hdfs",
        summary="a folder of Parquet files or of JSON lines in HDFS, as it is listed or by Spark's manifest",
        example="{hdfs: payments, reader: manifest, expected: select id from ledger, key: [id]}",
        options=Place,
    ),
    component="hdfs",
)
