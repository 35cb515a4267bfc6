"""The source `azure`: blobs of records put below a prefix."""

from __future__ import annotations

from harness.components.files.remote_source import RemoteFiles

KIND = RemoteFiles("azure", "blobs of records put into Azure's blob storage, below {azure.input.path}")
