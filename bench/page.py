"""The page of a large run: how long it takes, what memory it needs, how large it is.

    PYTHONPATH=. .venv/bin/python bench/page.py [--records 1000000] [--findings 100000] [--kept 1000] [--batches 2000]

The run folder is made by hand, with digests, and `onceproof report` writes its page in another process. The judge
keeps the first 1,000 findings of a kind in a sink and counts the others; `--kept 100000` asks what it would cost to
keep all. Exit code 1 if it takes more than 10 s by the clock, 500 MB or 300 KB: on a machine that does little else, so
the load and the CPU-seconds are printed too.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from os import getloadavg
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import monotonic

import pyarrow as pa

from harness.history import (
    AttemptStarted,
    BatchCommitted,
    BatchPlanned,
    Event,
    FaultInjected,
    Phase,
    Sent,
    SinkCommitted,
)
from harness.judge.examine import FINDINGS_MAX
from harness.run_folder import digests, ledger
from harness.run_folder.store import RunFolder
from tests import histories
from tests import sample_runs as sample

PARTITIONS = 3
MOST_S, MOST_MB, MOST_BYTES = 10.0, 500, 300_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, count in (("records", 1_000_000), ("findings", 100_000), ("kept", FINDINGS_MAX), ("batches", 2000)):
        parser.add_argument(f"--{name}", type=int, default=count)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = made(Path(scratch), given)
        began = monotonic()
        command = [sys.executable, "-m", "harness", "report", str(folder.path)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=600)
        took, used = monotonic() - began, getrusage(RUSAGE_CHILDREN)
        size = folder.report_html.stat().st_size
        table = (folder.path / "findings.csv").stat().st_size
        peak, cpu = used.ru_maxrss // 1024, used.ru_utime + used.ru_stime
        kept = f"{given.findings:,} findings, {given.kept:,} of them kept"
        print(f"{given.records:,} records, {kept}, {given.batches:,} batches, at a load of {getloadavg()[0]:.1f}:")
        print(f"{took:.1f} s ({cpu:.1f} CPU-s), peak {peak} MB, page {size:,} bytes, findings.csv {table:,} bytes")
        return int(took > MOST_S or peak > MOST_MB or size > MOST_BYTES)


def made(scratch: Path, given: argparse.Namespace) -> RunFolder:
    """The folder of a run in which the findings' records were written twice."""
    records, findings, batches = given.records, given.findings, given.batches
    counts = {"records": records, "expected_rows": records, "sink_rows": records + findings, "duplicated": findings}
    kept = sample.verdict(findings=tuple(map(sample.duplicated, range(given.kept))), counts=counts)
    folder = sample.stored(scratch, kept)
    ledger.write_source(folder.source, source(records))
    each = -(-records // PARTITIONS // batches)
    ranges = [(n, dict.fromkeys(range(PARTITIONS), (n * each, (n + 1) * each))) for n in range(batches)]
    stored = [{"batch": n, "ranges": each_range, "committed": True, "attempts": [1]} for n, each_range in ranges]
    query = {"checkpoint": "checkpoint", "batches": stored, "first": {1: 0}}
    folder.save(1, checkpoint={"queries": [query], "batches": stored, "caught_up": True})
    history = histories.lines(*events(records, batches))
    folder.history.write_text(sample.written(history), encoding="utf-8")
    folder.save(2, run={"seconds": 1.0})
    digests.write(folder.path)
    return folder


def source(records: int) -> Iterator[pa.RecordBatch]:
    """The records, 100,000 at a time."""
    for first in range(0, records, 100_000):
        numbers = range(first, min(records, first + 100_000))
        columns = [
            [n % PARTITIONS for n in numbers],
            [n // PARTITIONS for n in numbers],
            [0 for _ in numbers],
            [None for _ in numbers],
            [b'{"id": %d}' % n for n in numbers],
            list(numbers),
        ]
        arrays = [pa.array(values, field.type) for values, field in zip(columns, ledger.SOURCE, strict=True)]
        yield pa.record_batch(arrays, schema=ledger.SOURCE)


def events(records: int, batches: int) -> Iterator[tuple[float, Event]]:
    """The history of one attempt that did every batch, each event with its time."""
    yield 0.0, AttemptStarted(attempt=1)
    for n in range(batches):
        at_s = 1.0 + n
        yield at_s, Sent(records=records * (n + 1) // batches, total=records)
        for place, kind in enumerate((BatchPlanned, SinkCommitted, BatchCommitted)):
            yield at_s + 0.3 * place, kind(query="checkpoint", batch=n, attempt=1)
    yield batches + 1.0, FaultInjected(outcome=sample.STEP)
    yield batches + 2.0, Phase(name="judging")


if __name__ == "__main__":
    sys.exit(main())
