"""What the two words for Spark's checkpoints under `pipeline.progress` mean."""

from __future__ import annotations

CHECKPOINT, ASYNC = "checkpoint", "async"
"""Logged before a batch begins; with AsyncProgressTracking late, and not for every batch."""
IN_CHECKPOINT = (CHECKPOINT, ASYNC)
"""The progress that is read from Spark's checkpoints."""
