"""The sink `azure`: Parquet or JSON files below a prefix, read back as those in a folder are."""

from __future__ import annotations

from harness.components.files.sink import RemoteFiles

KIND = RemoteFiles(
    "azure", "Parquet files or JSON lines in Azure's blob storage, as they are listed or by Spark's manifest"
)
