"""Forty habits of programs that write batches of payments into Postgres from the driver. `bench/forty.py` plays them.

spark-submit forty.py --bootstrap HOST:PORT --topic NAME --checkpoint FOLDER --mode MODE
"""

from __future__ import annotations

import argparse
import os
import shutil
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from decimal import Decimal
from time import monotonic
from typing import Any

import psycopg2
from psycopg2.extras import execute_values
from pyspark.sql import DataFrame, SparkSession

from harness import failpoint

Payment = tuple[int, str, Decimal]
Save = Callable[[Sequence[Payment], int], None]
DSN = os.environ.get("DATABASE_URL", "")
SCHEMA = "id bigint, account string, amount decimal(12, 2)"
INSERT = "insert into payments (id, account, amount) values %s"
KEYED = f"{INSERT} on conflict (id) do update set account = excluded.account, amount = excluded.amount"
NEWER = "delete from payments a using payments b where a.ctid < b.ctid and a.id = b.id"
IDLE_S, PUBLISH_S, TICK_S, RETRY_S = 3.0, 1.0, 0.5, 60.0


@contextmanager
def transaction() -> Iterator[Any]:
    """A cursor; what it did is committed at the end."""
    with closing(psycopg2.connect(DSN)) as database, database, database.cursor() as cursor:
        yield cursor


def run(*statements: str) -> None:
    """Run statements in one transaction."""
    with transaction() as cursor:
        for statement in statements:
            cursor.execute(statement)


def put(sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Put rows in one transaction and one statement."""
    with transaction() as cursor:
        execute_values(cursor, sql, rows, page_size=10_000)


def every(seconds: float, do: Callable[[], None]) -> None:
    """Do it again and again, beside the query."""

    def loop() -> None:
        while True:
            threading.Event().wait(seconds)
            do()

    threading.Thread(target=loop, daemon=True).start()


def sums(rows: Sequence[Payment]) -> dict[str, Decimal]:
    """The amounts of each account, added up."""
    out: defaultdict[str, Decimal] = defaultdict(Decimal)
    for _, account, amount in rows:
        out[account] += amount
    return out


def appended() -> Save:
    return lambda rows, number: put(INSERT, rows)


def keyed() -> Save:
    return lambda rows, number: put(KEYED, rows)


def buffered() -> Save:
    """Three batches in the driver's memory, and what is left once no batch comes."""
    kept, lock, last = list[Payment](), threading.Lock(), [monotonic()]

    def flush() -> None:
        if kept:
            put(KEYED, kept)
            kept.clear()

    def idle() -> None:
        with lock:
            if monotonic() - last[0] > IDLE_S:
                flush()

    def save(rows: Sequence[Payment], number: int) -> None:
        with lock:
            kept.extend(rows)
            last[0] = monotonic()
            if number % 3 == 2:
                flush()

    every(TICK_S, idle)
    return save


def flushed() -> Save:
    """The same, and no batch ends before the buffer is written."""
    kept = list[Payment]()

    def save(rows: Sequence[Payment], number: int) -> None:
        kept.extend(rows)
        put(KEYED, kept)
        kept.clear()

    return save


def _staged(*, clear: bool) -> Save:
    def save(rows: Sequence[Payment], number: int) -> None:
        if clear:
            run("truncate staging")
        put("insert into staging (id, account, amount) values %s", rows)
        failpoint.reach("staged", batch=number)
        run("insert into payments select * from staging", "truncate staging")

    return save


def staged() -> Save:
    return _staged(clear=False)


def cleared() -> Save:
    return _staged(clear=True)


TOTALS = "insert into totals (account, amount) values %s on conflict (account) do update set amount = "


def accumulated() -> Save:
    """Totals in the driver's memory: they begin at zero with each driver."""
    totals: defaultdict[str, Decimal] = defaultdict(Decimal)

    def save(rows: Sequence[Payment], number: int) -> None:
        for account, amount in sums(rows).items():
            totals[account] += amount
        put(f"{TOTALS} excluded.amount", [*totals.items()])

    return save


def added() -> Save:
    return lambda rows, number: put(f"{TOTALS} totals.amount + excluded.amount", [*sums(rows).items()])


def recounted() -> Save:
    """Payments by their id, and totals counted from them in the same transaction."""

    def save(rows: Sequence[Payment], number: int) -> None:
        with transaction() as cursor:
            execute_values(cursor, KEYED, rows)
            cursor.execute(
                "insert into totals select account, sum(amount) from payments group by account"
                " on conflict (account) do update set amount = excluded.amount"
            )

    return save


def by_batch() -> Save:
    """A part of each total for each batch; a view adds them up."""
    part = "insert into parts (account, batch, amount) values %s on conflict (account, batch) do update set amount = "
    return lambda rows, number: put(
        f"{part} excluded.amount", [(account, number, amount) for account, amount in sums(rows).items()]
    )


def highest() -> Save:
    return lambda rows, number: put(
        f"{TOTALS} greatest(totals.amount, excluded.amount)",
        [*{account: max(r[2] for r in rows if r[1] == account) for account in sums(rows)}.items()],
    )


def accounts() -> Save:
    put_once = "insert into accounts (account) values %s on conflict do nothing"
    return lambda rows, number: put(put_once, [(account,) for account in sums(rows)])


def _published(*, keep: bool) -> Save:
    """Rows wait in a table for their second phase, which a thread commits a moment later."""
    move = f"insert into payments select id, account, amount from pending{{}} {KEYED[KEYED.index('on conflict') :]}"
    run(move.format(""), "truncate pending") if keep else run("truncate pending")
    due, lock = dict[int, float](), threading.Lock()

    def publish() -> None:
        with lock:
            for number in [each for each, since in due.items() if monotonic() - since > PUBLISH_S]:
                run(move.format(f" where batch = {number}"), f"delete from pending where batch = {number}")
                del due[number]

    def save(rows: Sequence[Payment], number: int) -> None:
        with lock:
            run(f"delete from pending where batch = {number}")
            put("insert into pending (id, account, amount, batch) values %s", [(*row, number) for row in rows])
            due[number] = monotonic()

    every(TICK_S, publish)
    return save


def second_phase() -> Save:
    return _published(keep=False)


def second_phase_kept() -> Save:
    return _published(keep=True)


def reconciled() -> Save:
    every(1.0, lambda: run(NEWER))
    return appended()


def reconciled_at_start() -> Save:
    run(NEWER)
    return appended()


def viewed() -> Save:
    return lambda rows, number: put(KEYED.replace("payments", "base"), rows)


def viewed_by_clock() -> Save:
    return lambda rows, number: put(INSERT.replace("payments", "base"), rows)


def swallowed() -> Save:
    def save(rows: Sequence[Payment], number: int) -> None:
        try:
            put(KEYED, rows)
        except psycopg2.Error as failure:
            print("the batch was not written:", failure, flush=True)

    return save


def retried() -> Save:
    def save(rows: Sequence[Payment], number: int) -> None:
        until = monotonic() + RETRY_S
        while True:
            try:
                return put(KEYED, rows)
            except psycopg2.Error:
                if monotonic() > until:
                    raise
                threading.Event().wait(TICK_S)

    return save


def doubles() -> Save:
    """The fifth batch is written twice, whatever happens."""

    def save(rows: Sequence[Payment], number: int) -> None:
        with transaction() as cursor:
            cursor.execute("delete from payments where id = any(%s)", ([row[0] for row in rows],))
            for _ in range(2 if number == 4 else 1):
                execute_values(cursor, INSERT, rows)

    return save


def repeats() -> Save:
    """The fifth batch brings the one before it again, whatever happens."""
    before = list[Payment]()

    def save(rows: Sequence[Payment], number: int) -> None:
        put(INSERT, [*rows, *(before if number == 4 else [])])
        before[:] = rows

    return save


def seen_in_memory() -> Save:
    seen = set[int]()

    def save(rows: Sequence[Payment], number: int) -> None:
        put(INSERT, [row for row in rows if row[0] not in seen])
        seen.update(row[0] for row in rows)

    return save


def seen_in_table() -> Save:
    def save(rows: Sequence[Payment], number: int) -> None:
        with transaction() as cursor:
            cursor.execute("select id from payments where id = any(%s)", ([row[0] for row in rows],))
            there = {row[0] for row in cursor.fetchall()}
            execute_values(cursor, INSERT, [row for row in rows if row[0] not in there])

    return save


def _numbered(*, order: str) -> Save:
    """Each batch's number in a table: in the rows' transaction (`with`), or in another one before or after it."""
    note = "insert into batches values (%s) on conflict do nothing"

    def save(rows: Sequence[Payment], number: int) -> None:
        with transaction() as cursor:
            cursor.execute("select 1 from batches where batch = %s", (number,))
            if cursor.fetchone():
                return
            if order == "with":
                cursor.execute(note, (number,))
                execute_values(cursor, INSERT, rows)
                return
        if order == "before":
            run(note.replace("%s", str(number)))
        else:
            put(INSERT, rows)
        failpoint.reach("between", batch=number)
        if order == "before":
            put(INSERT, rows)
        else:
            run(note.replace("%s", str(number)))

    return save


def numbered() -> Save:
    return _numbered(order="with")


def numbered_before() -> Save:
    return _numbered(order="before")


def numbered_after() -> Save:
    return _numbered(order="after")


def replaced() -> Save:
    def save(rows: Sequence[Payment], number: int) -> None:
        with transaction() as cursor:
            cursor.execute("delete from kept where batch = %s", (number,))
            execute_values(
                cursor, "insert into kept (id, account, amount, batch) values %s", [(*row, number) for row in rows]
            )

    return save


def replaced_apart() -> Save:
    def save(rows: Sequence[Payment], number: int) -> None:
        run(f"delete from kept where batch = {number}")
        failpoint.reach("deleted", batch=number)
        put("insert into kept (id, account, amount, batch) values %s", [(*row, number) for row in rows])

    return save


def row_by_row() -> Save:
    """Each row in a separate transaction."""

    def save(rows: Sequence[Payment], number: int) -> None:
        with closing(psycopg2.connect(DSN)) as database, database.cursor() as cursor:
            database.autocommit = True
            for row in rows:
                cursor.execute(INSERT.replace("%s", "(%s, %s, %s)"), row)

    return save


def two_tables() -> Save:
    """One by key, then the other as it comes."""

    def save(rows: Sequence[Payment], number: int) -> None:
        put(KEYED, rows)
        failpoint.reach("between", batch=number)
        put(INSERT.replace("payments", "log"), rows)

    return save


def main() -> None:
    """Play one of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("bootstrap", "topic", "checkpoint", "mode"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--forgets", action="store_true", help="begin with an empty checkpoint")
    parser.add_argument("--persists", action="store_true", help="start a query that failed again")
    given = parser.parse_args()
    if given.forgets:
        shutil.rmtree(given.checkpoint, ignore_errors=True)
    save: Save = globals()[given.mode]()
    spark = SparkSession.builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    records = spark.readStream.format("kafka").option("kafka.bootstrap.servers", given.bootstrap)
    records = records.option("subscribe", given.topic).option("startingOffsets", "earliest")
    stream = records.option("maxOffsetsPerTrigger", 100).load()
    parsed = stream.selectExpr(f"from_json(cast(value as string), '{SCHEMA}') as payment").select("payment.*")

    def batch(frame: DataFrame, number: int) -> None:
        if rows := [(row["id"], row["account"], row["amount"]) for row in frame.collect()]:
            save(rows, number)

    while True:
        query = parsed.writeStream.foreachBatch(batch).option("checkpointLocation", given.checkpoint).start()
        try:
            query.awaitTermination()
        except Exception:
            if not given.persists:
                raise
            threading.Event().wait(TICK_S)


if __name__ == "__main__":
    main()
