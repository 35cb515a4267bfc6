"""How a pipeline into a system begins that only code of the user's own reads: SQLite stands for it."""

from __future__ import annotations

from harness.sinks.starts import NUMBER, TEXT, TIME, Parts, Table
from harness.sinks.starts.shapes import Start

TYPES = {TEXT: "text", NUMBER: "integer", TIME: "text", "decimal(18, 2)": "text"}
ARROW = {
    TEXT: "pa.string()",
    NUMBER: "pa.int64()",
    TIME: 'pa.timestamp("us")',
    "decimal(18, 2)": "pa.decimal128(18, 2)",
}
BATCH = """\

    database = sqlite3.connect(args.into, check_same_thread=False)
{hint}    database.execute("create table if not exists {name} ({columns})")

    def batch(rows: DataFrame, number: int) -> None:
        with database:
            values = [[str(value) for value in row] for row in rows.collect()]
            database.executemany("insert or replace into {name} values ({marks})", values)
"""
READER = '''\
"""Reads {name} back: what `sink: {{python: read_$name:{name}}}` calls, in a new process for each reading.

SQLite stands for the system that you write to. If a run needs something there, make it in a function `prepare` beside
this one, and remove it in a function `remove`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa

SCHEMA = pa.schema(
    [
{fields}    ]
)
THERE = "select count(*) from sqlite_master where name = '{name}'"


def {name}(namespace: SimpleNamespace) -> Iterator[pa.Table]:
    """All rows, in parts; nothing at all while there is no such table. `namespace` has the run's name and folder."""
    path = Path(namespace.path) / "{name}.db"
    if not path.is_file():
        return
    with closing(sqlite3.connect(path)) as database:
        if not database.execute(THERE).fetchone()[0]:
            return
        yield SCHEMA.empty_table()
        found = database.execute("select {columns} from {name}")
        while rows := found.fetchmany(1000):
            columns = [pa.array(column) for column in zip(*rows, strict=True)]
            yield pa.table(columns, names=SCHEMA.names).cast(SCHEMA)
'''


def reader(table: Table) -> Parts:
    """Rows over those of the same key, and the function that reads them back."""
    fields = "".join(f'        ("{name}", {ARROW[kind]}),\n' for name, kind in table.columns.items())
    made = table.sql(TYPES, key=" primary key")
    marks = ", ".join("?" * len(table.columns))
    return Parts(
        where="a system that a function of your own reads back",
        options={"--into": f"{{python.path}}/{table.name}.db"},
        examples=f" --into /data/{table.name}.db",
        sink=(f"python: read_$name:{table.name}", "view: complete"),
        library=("import sqlite3",),
        batch=BATCH.format(hint=table.hint("without the key", "    "), name=table.name, columns=made, marks=marks),
        beside={
            "read_$name.py": READER.format(name=table.name, fields=fields, columns=", ".join(table.columns)),
        },
    )


START = Start(reader)
