"""Payments into MariaDB by a stored procedure that looks before it inserts. BROKEN: two calls look at the same time.

As checked.py. A transaction round the look and the insert does not help: neither call sees what the other one has not
committed. (Written as `if not exists (select ...)` the look held in the one run that there was: the calls seemed to
wait for each other. Nothing in the text promises that.)

The procedure waits before it commits, in place of what else a procedure does. That makes the window five seconds wide.

    spark-submit checked_mariadb.py --bootstrap localhost:9092 --topic payments --checkpoint /data/checkpoints/payments

Fixed version: kept_by_offset_mariadb.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   mariadb: |
#     create table payments (part int, off bigint, id bigint, account varchar(20), amount decimal(12, 2));
#     create procedure keep(given longtext)
#     begin
#       declare nth int default 0;
#       declare found int;
#       declare payment longtext;
#       start transaction;
#       while nth < json_length(given) do
#         set payment = json_extract(given, concat('$[', nth, ']'));
#         select count(*) into found from payments where id = json_value(payment, '$.id');
#         if found = 0 then
#           insert into payments (part, off, id, account, amount) values (
#             json_value(payment, '$.part'), json_value(payment, '$.off'), json_value(payment, '$.id'),
#             json_value(payment, '$.account'), json_value(payment, '$.amount')
#           );
#         end if;
#         set nth = nth + 1;
#       end while;
#       do sleep(5);
#       commit;
#     end
# sink:
#   mariadb: payments
#   expected: select _partition as part, _offset as off, id, account, amount from ledger
#   key: [id]
# ///

from __future__ import annotations

import records


def main() -> None:
    args = records.arguments(__doc__)
    records.write(args, records.in_mariadb("call keep(%s)"))


if __name__ == "__main__":
    main()
