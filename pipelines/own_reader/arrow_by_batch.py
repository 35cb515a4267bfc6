"""Payments from Kafka into a folder of Arrow files, one for each batch, named by its number.

A batch that comes again takes the place of its own file. One that is cut leaves a file that no reader takes.

    spark-submit arrow_by_batch.py --bootstrap localhost:9092 --topic payments --into /data/payments \
        --checkpoint /data/checkpoints/payments

Broken version: arrow_appended.py
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
        half.replace(folder / f"{number:06}.arrow")

    batches.run(args, save)


if __name__ == "__main__":
    main()
