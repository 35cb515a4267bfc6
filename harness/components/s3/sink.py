"""The sink `s3`: Parquet or JSON files below a prefix, read back as those in a folder are."""

from __future__ import annotations

from harness.components.files.sink import RemoteFiles

KIND = RemoteFiles("s3", "Parquet files or JSON lines in an object store, as they are listed or by Spark's manifest")
