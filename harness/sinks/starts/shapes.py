"""What the pipelines of `onceproof new` do with payments from Kafka, whatever the sink."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from harness.sinks.starts import NUMBER, TEXT, TIME, Parts, Table


@dataclass(frozen=True, kw_only=True)
class PipelineShape:
    """What it does, in one line; `what` it writes and `why` it may be written twice, in words; `rows`, the code that
    makes them of the DataFrame `payments`, and the `conf` that it needs; the `expected` that says the same in SQL, line
    by line; more lines of the `sink`, and more of the `input`."""

    summary: str
    what: str
    why: str
    table: Table
    rows: str
    expected: tuple[str, ...]
    mode: str = "append"
    conf: Mapping[str, str] = field(default_factory=dict)
    sink: tuple[str, ...] = ()
    input: str = ""


_TOTALS = """\
    totals = windows.agg(f.count("*").alias("payments"), f.sum("amount").cast("decimal(18, 2)").alias("amount"))"""
SHAPES = {
    "map-only": PipelineShape(
        summary="each payment is a row",
        what="Payments",
        why="each payment has its own id, and is written over by itself",
        table=Table(
            name="payments",
            columns={"id": NUMBER, "account": TEXT, "amount": "decimal(18, 2)"},
            key="id",
        ),
        rows='rows = payments.selectExpr("id", "account", "cast(amount as decimal(18, 2)) as amount")',
        expected=("select id, account, amount from ledger",),
    ),
    "window": PipelineShape(
        summary="totals of windows of ten seconds, by event time",
        what="Payments in windows of ten seconds",
        why="the totals are Spark's state, which belongs to the batch, and come to the same",
        table=Table(
            name="windows",
            columns={"starts": TIME, "payments": NUMBER, "amount": "decimal(18, 2)"},
            key="starts",
            once=False,
        ),
        rows=f"""windows = payments.groupBy(f.window("event_time", "10 seconds"))
{_TOTALS}
    rows = totals.select(f.col("window.start").alias("starts"), "payments", "amount")""",
        expected=(
            "select time_bucket(interval '10 seconds', event_time) as starts,",
            "  count(*) as payments, sum(amount) as amount",
            "from ledger group by 1",
        ),
        mode="update",
    ),
}
_UPDATED = SHAPES["window"]
APPENDED = {
    **SHAPES,
    "window": replace(
        _UPDATED,
        what="Payments in windows of ten seconds, each once it is closed,",
        why="the batch begins with the same state and watermark, and closes the same windows",
        table=replace(_UPDATED.table, once=True),
        rows=f"""# Spark takes no timestamp_ntz for a watermark.
    times = payments.withColumn("event_time", f.col("event_time").cast("timestamp"))
    windows = times.withWatermark("event_time", "10 seconds").groupBy(f.window("event_time", "10 seconds"))
{_TOTALS}
    rows = totals.select(f.col("window.start").cast("timestamp_ntz").alias("starts"), "payments", "amount")""",
        expected=(*_UPDATED.expected[:-1], "from ledger where not (_late or _open) group by 1"),
        mode="append",
        conf={"spark.sql.session.timeZone": '"UTC"'},
        sink=(
            "watermark:",
            "  of: event_time",
            "  closes: time_bucket(interval '10 seconds', event_time) + interval '10 seconds'",
            "  delay: 10s",
        ),
        input=", last_after: 1h",
    ),
}
"""The same for a sink that writes no row over by its key: a window is written by one batch, which closes it."""


@dataclass(frozen=True)
class Start:
    """How a pipeline of the user's begins, for one kind of sink: `parts` is what that adds for the rows of a table,
    `shapes` what can be written into it. `broken` is what the scenario finds (`duplicated`), where a few lines cannot
    make the sink exactly-once."""

    parts: Callable[[Table], Parts]
    shapes: Mapping[str, PipelineShape] = field(default_factory=lambda: SHAPES)
    broken: tuple[str, ...] = ()
