"""The source `azure`: blobs of records put below a prefix."""

from __future__ import annotations

from harness.components.files.remote_source import RemoteCut, RemoteFiles
from harness.kinds import About

KIND = RemoteFiles(
    About(
        name="azure",
        summary="blobs of records put into Azure's blob storage, below {azure.input.path}",
        example="{source: azure, records_per_file: 20}",
        options=RemoteCut,
    ),
    component="azure",
)
