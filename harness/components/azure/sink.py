"""The sink `azure`: Parquet or JSON files below a prefix, read back as those in a folder are."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from harness.components.files.sink import How, RemoteFiles
from harness.fields import values as v
from harness.kinds import About


class Place(How):
    """Which blobs, and how they are read."""

    azure: Annotated[v.Label, Field(description="the name of a folder below {azure.path}")]


KIND = RemoteFiles(
    About(
        name="azure",
        summary="Parquet files or JSON lines in Azure's blob storage, as they are listed or by Spark's manifest",
        example="{azure: payments, reader: manifest, expected: select id from ledger, key: [id]}",
        options=Place,
    ),
    component="azure",
)
