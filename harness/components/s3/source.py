"""The source `s3`: objects of records put below a prefix."""

from __future__ import annotations

from harness.components.files.remote_source import RemoteFiles

KIND = RemoteFiles("s3", "objects of records put into an object store, below {s3.input.path}")
