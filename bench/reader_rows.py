"""Peak memory and time to read a million rows by a reader of one's own, and what an empty reading costs.

PYTHONPATH=. .venv/bin/python bench/reader_rows.py [--rows N]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from time import monotonic

from bench.reading import peak_mb, timed_read
from harness.components.python.namespaces import Namespaces
from harness.scenario import Pipeline, Scenario, Sink
from harness.session.session import Session
from harness.sinks.reading import mark, opened
from harness.stacks.needed_parts import parts

READER = """
import pyarrow as pa


def rows(namespace):
    yield pa.table({"id": pa.array([], pa.int64()), "account": pa.array([], pa.string())})
    for at in range(0, int(namespace.options["rows"]), 10_000):
        yield pa.table({"id": range(at, at + 10_000), "account": [f"acct-{each % 50:04}" for each in range(10_000)]})
"""


def read_one(folder: Path, namespaces: Namespaces, rows: int) -> None:
    sink = Sink(kind="python", target="readback:rows", options={"options": f'{{"rows": "{rows}"}}', "within": 600.0})
    parts_of = parts(Scenario(name="", pipeline=Pipeline(entry="pay.py"), sinks=(sink,), path=str(folder / "it.yaml")))
    own = {each.label: each for each in namespaces.provide(f"r{rows}", {"": parts_of["python"]}).values()}
    there = opened(sink, own)
    assert there is not None
    count = timed_read(there, "python")
    began = monotonic()
    mark(sink, own)
    print(f"{count:,} rows compared in {monotonic() - began:.2f} s; peak {peak_mb()} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="onceproof-bench-") as name, Session() as session:
        (Path(name) / "readback.py").write_text(READER)
        namespaces = Namespaces(session, session.folder / "runs")
        namespaces.start()
        for rows in (0, given.rows):
            read_one(Path(name), namespaces, rows)


if __name__ == "__main__":
    main()
