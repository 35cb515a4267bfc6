"""How much of this machine is ours: cores by affinity, and cores and memory by our control group (cgroup v2) and those
above it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import psutil

ROOT, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def cores(root: Path = ROOT, own: Path = OWN) -> int:
    """Return how many cores may be busy at once with what we start; at least one."""
    found = len(os.sched_getaffinity(0))
    for group in _groups(root, own):
        quota, _, period = _read(group / "cpu.max").partition(" ")
        if quota.isdigit() and period.isdigit():
            found = min(found, int(quota) // int(period))
    return max(1, found)


def memory(root: Path = ROOT, own: Path = OWN) -> int:
    """Return bytes that can be had without swapping."""
    found = psutil.virtual_memory().available
    for group in _groups(root, own):
        limit, used = (_read(group / f"memory.{name}") for name in ("max", "current"))
        if limit.isdigit() and used.isdigit():
            # Pages of files that were not read lately are counted as used, and given back to who needs memory.
            cached = re.search(r"^inactive_file (\d+)$", _read(group / "memory.stat"), re.MULTILINE)
            found = min(found, int(limit) - int(used) + int(cached[1] if cached else 0))
    return max(0, found)


def _groups(root: Path, own: Path) -> Iterator[Path]:
    """Yield the control group of this process and those above it, of which each may set a limit."""
    line = re.search(r"^0::/(.*)$", _read(own), re.MULTILINE)
    group = root / (line[1] if line else "")
    yield from (each for each in (group, *group.parents) if each.is_relative_to(root))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""
