"""Payments into Postgres by a stored procedure, each under its place in Kafka. Holds: the key decides.

The record's partition and offset are its identity: no other record has them, and they are the same however often the
record is read. They are the table's primary key. A second call with the same record waits for the first one to end and
then inserts nothing, whether it comes from a batch that is written again or from a task that runs beside the first one.

The procedure is that of the broken version, without the look before the insert.

    spark-submit kept_by_offset.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/payments

Broken version: checked.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table payments (
#       part int, off bigint, id bigint, account text, amount numeric(12, 2), primary key (part, off)
#     );
#     create procedure keep(given jsonb) language plpgsql as $$
#     declare
#       payment record;
#     begin
#       for payment in select * from jsonb_populate_recordset(null::payments, given) loop
#         insert into payments (part, off, id, account, amount)
#         values (payment.part, payment.off, payment.id, payment.account, payment.amount)
#         on conflict (part, off) do nothing;
#       end loop;
#       perform pg_sleep(5);
#     end $$
# sink:
#   postgres: payments
#   expected: select _partition as part, _offset as off, id, account, amount from ledger
#   key: [id]
# ///

from __future__ import annotations

import records


def main() -> None:
    args = records.arguments(__doc__)
    records.write(args, records.in_postgres("call keep(%s)"))


if __name__ == "__main__":
    main()
