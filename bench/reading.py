"""What the benches of sinks measure: the time and the peak memory of one reading."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

from harness.sinks.base import OpenSink


def timed_read(there: OpenSink, name: str) -> int:
    """Read a sink to its end, print how long it took and what memory, and return the count of its rows."""
    began, before = monotonic(), peak_mb()
    with there.reading() as found:
        count = sum(len(part) for part in found.parts)
    print(f"{name}: {count:,} rows in {monotonic() - began:.2f} s; peak {peak_mb()} MB, {before} MB before")
    return count


def peak_mb() -> int:
    """Of this process: what `getrusage` says is its parent's, if that was larger."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) // 1024
