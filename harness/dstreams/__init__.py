"""What a program of Spark Streaming (DStreams) leaves under its checkpoint.

Which batch took what, which batches are done, and which of them a restart does again.

java_stream  Java's serialized objects, read as data
written      the files: `checkpoint-T`, `receivedBlockMetadata/log-*`
batch_times  the batches of one checkpoint, as these files tell them
"""
