"""The sink `hdfs`: a folder of files in HDFS, read back."""

from __future__ import annotations

from harness.components.files.sink import RemoteFiles

KIND = RemoteFiles("hdfs", "a folder of Parquet files or of JSON lines in HDFS, as it is listed or by Spark's manifest")
