"""Peak memory and time to read a table of a million rows back as a sink, each kind in a new process.

PYTHONPATH=. .venv/bin/python bench/sink_rows.py [KIND...] [--rows N]
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import deltalake
import psycopg2
import pyarrow as pa
from kafka import KafkaProducer
from pyiceberg.catalog.sql import SqlCatalog

from bench.reading import timed_read
from harness.components.kafka.process import Kafka
from harness.components.kafka.topics import Topics
from harness.components.mariadb.process import MariaDBServer
from harness.components.postgres.process import Postgres
from harness.machine import jars, java
from harness.resources import Resources
from harness.scenario import Sink
from harness.session.part_folders import Folder
from harness.session.session import Session
from harness.sinks.reading import opened

PART = 100_000
COLUMNS = "id bigint, account string, amount decimal(12,2)"
Made = tuple[Sink, dict[str, Resources]]


def arrow(begin: int, end: int) -> pa.Table:
    """The payments of these ids."""
    ids = pa.array(range(begin, end), pa.int64())
    accounts = pa.array([f"acct-{at % 50:04}" for at in range(begin, end)])
    amounts = pa.array([f"{at / 100:.2f}" for at in range(begin, end)]).cast(pa.decimal128(12, 2))
    return pa.table({"id": ids, "account": accounts, "amount": amounts})


def parts(rows: int) -> Iterator[pa.Table]:
    """All of them, a part at a time."""
    return (arrow(begin, min(rows, begin + PART)) for begin in range(0, rows, PART))


@contextmanager
def running(server: Any, parts: dict[str, Any]) -> Iterator[dict[str, Resources]]:
    """A server, and a run's parts there."""
    server.start()
    try:
        yield {each.label: each for each in server.provide("bench", parts).values()}
    finally:
        server.stop()
        server.close()


@contextmanager
def postgres(rows: int, folder: Path) -> Iterator[Made]:
    with Session() as session, running(Postgres(session, logs=folder), {"": {}}) as own:
        with closing(psycopg2.connect(own["postgres"].at.dsn)) as connection, connection, connection.cursor() as cursor:
            cursor.execute(
                "create table payments as select id::bigint, 'acct-' || id % 50 as account, "
                f"(id / 100.0)::numeric(12, 2) as amount from generate_series(1, {rows}) as id"
            )
        yield Sink(kind="postgres", target="payments"), own


@contextmanager
def mariadb(rows: int, folder: Path) -> Iterator[Made]:
    with Session() as session, running(MariaDBServer(session, java.find(), logs=folder), {"": {}}) as own:
        with closing(own["mariadb"].at.connect(name="a bench")) as connection, connection.cursor() as cursor:
            cursor.execute(
                "create table payments as select seq as id, concat('acct-', seq % 50) as account, "
                f"cast(seq / 100 as decimal(12, 2)) as amount from seq_1_to_{rows}"
            )
            connection.commit()
        yield Sink(kind="mariadb", target="payments"), own


@contextmanager
def kafka(rows: int, folder: Path, **read: str) -> Iterator[Made]:
    broker = Kafka(session := Session(), java.find(), jars.resolve(), logs=folder)
    with session, running(broker, {"out": {"partitions": 3}}) as own:
        there = own["kafka.out"].at
        producer = KafkaProducer(bootstrap_servers=there.bootstrap, linger_ms=50, batch_size=1 << 18)
        for at in range(rows):
            body = f'{{"id": {at}, "account": "acct-{at % 50:04}", "amount": {at / 100:.2f}}}'
            producer.send(there.topic, body.encode(), partition=at % 3)
        producer.close()
        # What has asked the broker here cannot go along to the process that reads.
        there = replace(there, topics=Topics(there.bootstrap))
        options = {"columns": COLUMNS, **read}
        yield Sink(kind="kafka", target="out", options=options), {"kafka.out": replace(own["kafka.out"], at=there)}


@contextmanager
def delta(rows: int, folder: Path) -> Iterator[Made]:
    for part in parts(rows):
        deltalake.write_deltalake(folder / "payments", part, mode="append")
    yield Sink(kind="delta", target="payments"), {"delta": Resources(label="delta", at=Folder(folder))}


@contextmanager
def iceberg(rows: int, folder: Path) -> Iterator[Made]:
    catalog = SqlCatalog("bench", uri="sqlite:///:memory:", warehouse=str(folder))
    catalog.create_namespace("shop")
    table, name = folder / "shop" / "payments", "shop.payments"
    catalog.create_table(name, arrow(0, 1).schema, location=str(table))
    for number, part in enumerate(parts(rows), 1):
        catalog.load_table(name).append(part)
        written = catalog.load_table(name).metadata_location.removeprefix("file://")
        # As a Hadoop catalog numbers them.
        shutil.copy(written, table / "metadata" / f"v{number}.metadata.json")
    catalog.close()
    yield Sink(kind="iceberg", target=name), {"iceberg": Resources(label="iceberg", at=Folder(folder))}


KINDS: dict[str, Callable[[int, Path], Any]] = {
    "postgres": postgres,
    "mariadb": mariadb,
    "kafka": kafka,
    "kafka-once": partial(kafka, drop_duplicates="id"),
    "delta": delta,
    "iceberg": iceberg,
}


def read_one(kind: str, sink: Sink, own: dict[str, Resources], rows: int) -> None:
    """Read the sink in this new process: its memory is that of the reading, and what is there before."""
    there = opened(sink, own)
    assert there is not None
    assert timed_read(there, kind) == rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", choices=[[], *KINDS], metavar="KIND")
    parser.add_argument("--rows", type=int, default=1_000_000)
    args = parser.parse_args()
    for kind in args.kinds or KINDS:
        with tempfile.TemporaryDirectory() as folder, KINDS[kind](args.rows, Path(folder)) as made:
            how = "fork" if kind in ("postgres", "mariadb") else "spawn"
            reader = multiprocessing.get_context(how).Process(target=read_one, args=(kind, *made, args.rows))
            reader.start()
            reader.join()
            assert reader.exitcode == 0, kind


if __name__ == "__main__":
    main()
