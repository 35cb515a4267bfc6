"""The sink `s3`: Parquet or JSON files below a prefix, read back as those in a folder are."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from harness.components.files.sink import How, RemoteFiles
from harness.fields import values as v
from harness.kinds import About


class Place(How):
    """Which objects, and how they are read."""

    s3: Annotated[v.Label, Field(description="the name of a folder below {s3.path}")]


KIND = RemoteFiles(
    About(
        name="s3",
        summary="Parquet files or JSON lines in an object store, as they are listed or by Spark's manifest",
        example="{s3: payments, reader: manifest, expected: select id from ledger, key: [id]}",
        options=Place,
    ),
    component="s3",
)
