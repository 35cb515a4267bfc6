"""How a pipeline into MariaDB begins."""

from __future__ import annotations

from harness.sinks.starts import Parts, Table
from harness.sinks.starts.shapes import Start

BEFORE = '''\
{hint}PUT = """insert into {table} ({columns}) values ({places})
    on duplicate key update {update}"""
'''
BATCH = """\

    login = {
        "host": os.environ["MYSQL_HOST"],
        "port": int(os.environ["MYSQL_TCP_PORT"]),
        "user": os.environ["MYSQL_USER"],
        "password": os.environ["MYSQL_PWD"],
        "database": os.environ["MYSQL_DATABASE"],
        "charset": "utf8mb4",
    }

    def save(part: Iterator[Row]) -> None:  # on an executor, one transaction a partition
        connection = pymysql.connect(**login)
        with connection, connection.cursor() as cursor:
            cursor.executemany(PUT, [tuple(row) for row in part])
            connection.commit()

    def batch(rows: DataFrame, number: int) -> None:
        rows.foreachPartition(save)
"""


def upsert(table: Table) -> Parts:
    """Rows under their key, one transaction a partition."""
    columns = table.sql({"string": "varchar(64)", "timestamp_ntz": "datetime(6)"}, key=" primary key")
    before = BEFORE.format(
        hint=table.hint("without the second line and without the primary key"),
        table=table.name,
        columns=", ".join(table.columns),
        places=", ".join(["%s"] * len(table.columns)),
        update=", ".join(f"{name} = values({name})" for name in table.values),
    )
    return Parts(
        where="MariaDB, at the address in MYSQL_HOST, MYSQL_TCP_PORT and so on",
        header=(f'setup: {{mariadb: "create table {table.name} ({columns})"}}',),
        sink=(f"mariadb: {table.name}",),
        library=("import os", "from collections.abc import Iterator"),
        imports=("import pymysql",),
        before=before,
        batch=BATCH,
    )


START = Start(upsert)
