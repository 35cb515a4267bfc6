"""Where a batch may be struck: the places of Spark's protocols that a checkpoint shows."""

from __future__ import annotations

from enum import StrEnum

COMMITTING = "committing"
"""In a listing of a checkpoint, the batch whose sink's own commit was being written."""


class CrashPoint(StrEnum):
    """A place in the micro-batch protocol, in the order in which a batch passes them.
    `BATCH_PLANNING`: batch N-1 is committed, `offsets/N` is being written and not visible; of a checkpoint on a server
    whose requests can be held.
    `BATCH_PLANNED`: `offsets/N` is there, the batch has not begun to write.
    `SINK_COMMITTING`: the tasks of a commit of batch N are done, and that commit of its sink is being written and not
    visible; of sinks that commit by renaming a file.
    `SINK_COMMITTED`: the sink of batch N is committed, `commits/N` is being written and not visible.
    `BATCH_COMMITTED`: `commits/N` is there, the next batch is not planned.
    Of DStreams, `BLOCK_RECEIVED`: a receiver has stored a block that no batch has yet, and batch N is the next one. A
    batch is planned once its blocks are allocated; then `BATCH_CHECKPOINTED`: `checkpoint-T` is there,
    the batch is pending in it; committed once a checkpoint does not have it pending: the newest such batch is done
    again all the same.
    """

    BATCH_PLANNING = "batch-planning"
    BLOCK_RECEIVED = "block-received"
    BATCH_PLANNED = "batch-planned"
    BATCH_CHECKPOINTED = "batch-checkpointed"
    SINK_COMMITTING = "sink-committing"
    SINK_COMMITTED = "sink-committed"
    BATCH_COMMITTED = "batch-committed"
