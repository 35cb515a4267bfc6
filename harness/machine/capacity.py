"""How much of this machine is ours: cores by affinity, and cores and memory by our control group (cgroup v2)."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

GROUP = Path("/sys/fs/cgroup")


def cores(group: Path = GROUP) -> int:
    """How many cores may be busy at once with what we start; at least one."""
    here = len(os.sched_getaffinity(0))
    quota, _, period = _read(group / "cpu.max").partition(" ")
    return max(1, min(here, int(quota) // int(period))) if quota.isdigit() and period.isdigit() else here


def memory(group: Path = GROUP) -> int:
    """Bytes that can be had without swapping."""
    free = psutil.virtual_memory().available
    limit, used = (_read(group / f"memory.{name}") for name in ("max", "current"))
    return max(0, min(free, int(limit) - int(used))) if limit.isdigit() and used.isdigit() else free


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""
