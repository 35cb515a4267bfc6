"""Peak memory and time to read an index of a million documents back as a sink, in a new process.

PYTHONPATH=. .venv/bin/python bench/opensearch_rows.py [--rows N]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.reading import timed_read
from harness.component import COMPONENTS, SetsUp
from harness.components.opensearch.address import OpenSearchThere
from harness.components.opensearch.process import OpenSearchServer
from harness.components.opensearch.run_indexes import Indexes
from harness.machine import java
from harness.resources import Resources
from harness.scenario import Sink
from harness.session.session import Session
from harness.sinks.reading import opened

COLUMNS = "id bigint, account string, amount decimal(12,2)"
SETUP = """
payments:
  mappings:
    properties:
      id:
        type: long
      account:
        type: keyword
      amount:
        type: scaled_float
        scaling_factor: 100
"""
REQUEST = 5_000


def make(own: Resources, rows: int) -> None:
    kind = COMPONENTS["opensearch"]
    assert isinstance(kind, SetsUp)
    kind.set_up(own, SETUP)
    there: Indexes = own.at
    for begin in range(0, rows, REQUEST):
        ids = range(begin, min(rows, begin + REQUEST))
        lines = (
            f'{{"index":{{}}}}\n{{"id":{at},"account":"acct-{at % 50:04}","amount":{at / 100:.2f}}}\n' for at in ids
        )
        answer = there.server._pool.request(
            "POST", f"{there.server.url}/{there.named('payments')}/_bulk", body="".join(lines).encode(),
            headers={"Content-Type": "application/json"},
        )  # fmt: skip
        assert answer.status == 200 and not answer.json()["errors"]


def read_one(address: str, prefix: str) -> None:
    own = Resources(label="opensearch", at=Indexes(server=OpenSearchThere(address).server, prefix=prefix))
    there = opened(Sink(kind="opensearch", target="payments", options={"columns": COLUMNS}), {"opensearch": own})
    assert there is not None
    timed_read(there, "opensearch")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--look", nargs=2, metavar=("ADDRESS", "PREFIX"), help="read it here, and report")
    args = parser.parse_args()
    if args.look:
        return read_one(*args.look)
    with tempfile.TemporaryDirectory() as logs, Session() as session:
        server = OpenSearchServer(session, java.find(), logs=Path(logs))
        server.start()
        (own,) = server.provide("bench", {"": {}}).values()
        make(own, args.rows)
        subprocess.run([sys.executable, __file__, "--look", server.lent(), own.at.prefix], check=True)
        server.stop()
        server.close()


if __name__ == "__main__":
    main()
