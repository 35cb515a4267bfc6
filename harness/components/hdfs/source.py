"""The source `hdfs`: files of records dropped into a folder in HDFS."""

from __future__ import annotations

from harness.components.files.remote_source import RemoteFiles

KIND = RemoteFiles("hdfs", "files of records dropped into a folder of the run's own in HDFS, {hdfs.input.path}")
