"""What the words for Spark's checkpoints under `pipeline.progress` mean."""

from __future__ import annotations

CHECKPOINT, ASYNC, DSTREAMS = "checkpoint", "async", "dstreams"
"""Logged before a batch begins; with AsyncProgressTracking late, and not for every batch; that of a
program of Spark Streaming (DStreams), which has no offset log."""
IN_CHECKPOINT = (CHECKPOINT, ASYNC, DSTREAMS)
"""The progress that is read from Spark's checkpoints."""
