"""Payments into Postgres by a stored procedure that looks before it inserts. BROKEN: two calls look at the same time.

The usual advice for an idempotent sink: look the record up by its key, insert it if it is not there. One call after
the other that is right, also when a batch is written again after a crash. But a call does not see what another one has
not committed yet. When an executor dies, the server still finishes the call that it was in, and meanwhile the task that
Spark runs again calls the procedure with the same records: both find nothing, and both insert.

The procedure waits before it ends, in place of what else a procedure does. That makes the window five seconds wide;
without, it is as long as the transaction.

    spark-submit checked.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/payments

Fixed version: kept_by_offset.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   postgres: |
#     create table payments (part int, off bigint, id bigint, account text, amount numeric(12, 2));
#     create procedure keep(given jsonb) language plpgsql as $$
#     declare
#       payment record;
#     begin
#       for payment in select * from jsonb_populate_recordset(null::payments, given) loop
#         if not exists (select from payments p where p.id = payment.id) then
#           insert into payments (part, off, id, account, amount)
#           values (payment.part, payment.off, payment.id, payment.account, payment.amount);
#         end if;
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
