"""How a pipeline from one topic into another begins."""

from __future__ import annotations

from harness.sinks.starts import Parts, Table
from harness.sinks.starts.shapes import APPENDED, Start

BATCH = """\
    rows = rows.select(f.col("{key}").cast("string").alias("key"), f.to_json(f.struct("*")).alias("value"))
"""
WRITER = ('.format("kafka")', '.option("kafka.bootstrap.servers", args.bootstrap)', '.option("topic", args.to)')


def spark_sink(table: Table) -> Parts:
    """Spark's own Kafka sink, which writes at least once."""
    return Parts(
        where="another topic, by Spark's own Kafka sink",
        why=f"The sink writes at least once: a reader of the topic has to drop each {table.key} that it has seen.",
        options={"--to": f"{{kafka.{table.name}.topic}}"},
        examples=" --to checked",
        sink=(f"kafka: {table.name}", f"columns: {table.sql({})}"),
        batch=BATCH.format(key=table.key),
        writer=WRITER,
    )


START = Start(spark_sink, shapes=APPENDED, broken=("duplicated",))
