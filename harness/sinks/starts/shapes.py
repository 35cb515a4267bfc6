"""What the pipelines of `onceproof new` do with payments from Kafka, whatever the sink."""

from __future__ import annotations

from dataclasses import dataclass

from harness.sinks.starts import NUMBER, TEXT, TIME, Table


@dataclass(frozen=True, kw_only=True)
class PipelineShape:
    """What it does, in one line; `what` it writes and `why` it may be written twice, in words; `rows`, the code that
    makes them of the DataFrame `payments`; the `effect` that says the same in SQL, line by line."""

    summary: str
    what: str
    why: str
    table: Table
    rows: str
    effect: tuple[str, ...]
    mode: str = "append"


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
        effect=("select id, account, amount from ledger",),
    ),
    "window": PipelineShape(
        summary="totals of windows of ten seconds, by event time",
        what="Payments in windows of ten seconds",
        why="the totals are Spark's state, which belongs to the batch, and come to the same",
        table=Table(
            name="windows",
            columns={"starts": TIME, "payments": NUMBER, "amount": "decimal(18, 2)"},
            key="starts",
        ),
        rows="""windows = payments.groupBy(f.window("event_time", "10 seconds"))
    totals = windows.agg(f.count("*").alias("payments"), f.sum("amount").cast("decimal(18, 2)").alias("amount"))
    rows = totals.select(f.col("window.start").alias("starts"), "payments", "amount")""",
        effect=(
            "select time_bucket(interval '10 seconds', event_time) as starts,",
            "  count(*) as payments, sum(amount) as amount",
            "from ledger group by 1",
        ),
        mode="update",
    ),
}
