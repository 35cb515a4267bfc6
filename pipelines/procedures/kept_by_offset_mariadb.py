"""Payments into MariaDB by a stored procedure, each under its place in Kafka. Holds: the key decides.

As kept_by_offset.py: MariaDB's `do nothing` is an update that changes nothing. An `insert ignore` would also turn other
mistakes into warnings, such as a text that is cut short.

    spark-submit kept_by_offset_mariadb.py --bootstrap localhost:9092 --topic payments \\
        --checkpoint /data/checkpoints/payments

Broken version: checked_mariadb.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --checkpoint, "{checkpoint}"]
# setup:
#   mariadb: |
#     create table payments (
#       part int, off bigint, id bigint, account varchar(20), amount decimal(12, 2), primary key (part, off)
#     );
#     create procedure keep(given longtext)
#     begin
#       declare nth int default 0;
#       declare payment longtext;
#       start transaction;
#       while nth < json_length(given) do
#         set payment = json_extract(given, concat('$[', nth, ']'));
#         insert into payments (part, off, id, account, amount) values (
#           json_value(payment, '$.part'), json_value(payment, '$.off'), json_value(payment, '$.id'),
#           json_value(payment, '$.account'), json_value(payment, '$.amount')
#         ) on duplicate key update part = values(part);
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
