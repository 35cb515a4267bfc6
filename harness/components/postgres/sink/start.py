"""How a pipeline into Postgres begins."""

from __future__ import annotations

from harness.sinks.starts import Parts, Table
from harness.sinks.starts.shapes import Start

BEFORE = '''\
{hint}PUT = """insert into {table} ({columns}) values %s
    on conflict ({key}) do update set {update}"""
'''
BATCH = """\

    warehouse = os.environ["WAREHOUSE"]

    def save(part: Iterator[Row]) -> None:  # on an executor, one transaction a partition
        connection = psycopg2.connect(warehouse)
        with connection, connection.cursor() as cursor:
            execute_values(cursor, PUT, [tuple(row) for row in part])
        connection.close()

    def batch(rows: DataFrame, number: int) -> None:
        rows.foreachPartition(save)
"""


def upsert(table: Table) -> Parts:
    """Rows under their key, one transaction a partition."""
    update = ", ".join(f"{name} = excluded.{name}" for name in table.values)
    columns = table.sql({"string": "text", "timestamp_ntz": "timestamp"}, key=" primary key")
    return Parts(
        where="Postgres, at the address in WAREHOUSE",
        header=(
            'env: {WAREHOUSE: "{postgres.dsn}"}',
            f'setup: {{postgres: "create table {table.name} ({columns})"}}',
        ),
        sink=(f"postgres: {table.name}",),
        library=("import os", "from collections.abc import Iterator"),
        imports=("import psycopg2", "from psycopg2.extras import execute_values"),
        before=BEFORE.format(
            hint=table.hint("without the second line and without the primary key"),
            table=table.name,
            columns=", ".join(table.columns),
            key=table.key,
            update=update,
        ),
        batch=BATCH,
    )


START = Start(upsert)
