"""Payments from Kafka into a folder of Arrow files, one for each batch. BROKEN: its name is a uuid.

When the driver dies after the file is there and before Spark has written `commits/N`, the restarted query runs batch N
again, and writes the same payments into a file of another name.

    spark-submit arrow_appended.py --bootstrap localhost:9092 --topic payments --into /data/payments \
        --checkpoint /data/checkpoints/payments

Fixed version: arrow_by_batch.py
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --into, "{python.path}/payments",
#   --checkpoint, "{checkpoint}"]
# sink:
#   python: read_arrow:rows
#   options: {folder: payments}
#   expected: select id, account, amount, currency, event_time from ledger
#   key: [id]
#   view: complete
# ///

from __future__ import annotations

import uuid
from pathlib import Path

import batches
import pyarrow as pa
import pyarrow.feather as feather


def main() -> None:
    args = batches.arguments(__doc__)
    folder = Path(args.into)
    folder.mkdir(exist_ok=True)

    def save(batch: pa.Table, number: int) -> None:
        """Write one batch; its file appears whole."""
        half = folder / "half"
        feather.write_feather(batch, half)
        batches.half_written(number)
        half.replace(folder / f"{uuid.uuid4()}.arrow")

    batches.run(args, save)


if __name__ == "__main__":
    main()
