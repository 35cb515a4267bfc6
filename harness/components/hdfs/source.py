"""The source `hdfs`: files of records dropped into a folder in HDFS."""

from __future__ import annotations

from harness.components.files.remote_source import RemoteCut, RemoteFiles
from harness.kinds import About

KIND = RemoteFiles(
    About(
        name="hdfs",
        summary="files of records dropped into a folder of the run's own in HDFS, {hdfs.input.path}",
        example="{source: hdfs, records_per_file: 20}",
        options=RemoteCut,
    ),
    component="hdfs",
)
