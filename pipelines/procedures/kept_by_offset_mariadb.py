"""Payments into MariaDB by a stored procedure, each under its place in Kafka. Holds: the key decides.

As kept_by_offset.py, with `insert ignore`. That also turns other mistakes into warnings, such as a text that is cut
short; an `insert ... on duplicate key update part = part` does not.

    spark-submit kept_by_offset_mariadb.py --bootstrap localhost:9092 --topic payments \\
        --checkpoint /data/checkpoints/payments

Broken twin: checked_mariadb.py
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
#       start transaction;
#       insert ignore into payments (part, off, id, account, amount)
#       select part, off, id, account, amount from json_table(given, '$[*]' columns (
#         part int path '$.part', off bigint path '$.off', id bigint path '$.id',
#         account varchar(20) path '$.account', amount decimal(12, 2) path '$.amount'
#       )) as payment;
#       do sleep(2);
#       commit;
#     end
# sink:
#   mariadb: payments
#   effect: select _partition as part, _offset as off, id, account, amount from ledger
#   key: [id]
# ///

from __future__ import annotations

import records


def main() -> None:
    args = records.arguments(__doc__)
    records.write(args, records.in_mariadb("call keep(%s)"))


if __name__ == "__main__":
    main()
