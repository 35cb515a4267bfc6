"""The source `s3`: objects of records put below a prefix."""

from __future__ import annotations

from harness.components.files.remote_source import RemoteCut, RemoteFiles
from harness.kinds import About

KIND = RemoteFiles(
    About(
        name="s3",
        summary="objects of records put into an object store, below {s3.input.path}",
        example="{source: s3, records_per_file: 20}",
        options=RemoteCut,
    ),
    component="s3",
)
