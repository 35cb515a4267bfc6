"""Peak memory and time to read files of a million rows back as a sink, each reading in a new process.

PYTHONPATH=. .venv/bin/python bench/files_rows.py [--rows N] [--files N]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.reading import timed_read
from harness.resources import Resources
from harness.scenario import Sink
from harness.session.part_folders import Folder
from harness.sinks.reading import opened

SINKS: dict[str, dict[str, str | int | float]] = {
    "parquet": {},
    "json": {"format": "json", "columns": "id bigint, account string, amount decimal(12,2)"},
}
READERS = ("listing", "manifest")


def make(root: Path, rows: int, files: int) -> None:
    each = rows // files
    for number in range(files):
        ids = range(number * each, number * each + each)
        accounts, amounts = [f"acct-{at % 50:04}" for at in ids], [Decimal(at) / 100 for at in ids]
        for form in SINKS:
            (root / form).mkdir(exist_ok=True)
        columns: dict[str, Any] = {"id": pa.array(ids, pa.int64()), "account": accounts}
        table = pa.table(columns | {"amount": pa.array(amounts, pa.decimal128(12, 2))})
        pq.write_table(table, root / "parquet" / f"{number}.parquet")
        with (root / "json" / f"{number}.json").open("w") as out:
            for at, account, amount in zip(ids, accounts, amounts, strict=True):
                out.write(f'{{"id":{at},"account":"{account}","amount":{amount}}}\n')
        for form in SINKS:
            commit(root / form, number, root / form / f"{number}.{form}")


def commit(folder: Path, batch: int, file: Path) -> None:
    """As Spark's file sink does it."""
    log = folder / "_spark_metadata"
    log.mkdir(exist_ok=True)
    entry = {"path": file.as_uri(), "size": file.stat().st_size, "isDir": False, "action": "add"}
    (log / str(batch)).write_text(f"v1\n{json.dumps(entry)}")


def read_one(root: Path, form: str, reader: str) -> None:
    sink = Sink(kind="files", target=form, options={**SINKS[form], "reader": reader})
    there = opened(sink, {"files": Resources(label="files", at=Folder(root))})
    assert there is not None
    timed_read(there, f"{form} by {reader}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=4)
    parser.add_argument("--look", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.look:
        read_one(Path(given.look[0]), *given.look[1:])
        return
    with tempfile.TemporaryDirectory(prefix="onceproof-bench-") as folder:
        make(Path(folder), given.rows, given.files)
        for form, reader in product(SINKS, READERS):
            subprocess.run([sys.executable, __file__, "--look", folder, form, reader], check=True)


if __name__ == "__main__":
    main()
