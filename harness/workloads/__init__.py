"""The input: generated records, or a file of the user's, replayed. One module each; `harness.workloads.base` says what
it has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.kinds import Registry
from harness.scenario import Input
from harness.workloads.base import Column, ReadsFiles, Record, Workload, WorkloadKind

__all__ = ["WORKLOADS", "Column", "Record", "Workload", "make", "read_files"]

WORKLOADS: Registry[WorkloadKind] = Registry("workload", "harness.workloads", WorkloadKind)


def make(input: Input, *, seed: int, root: Path) -> Workload:
    """Return the workload that `input` asks for; `root` is the project's folder. Raises UsageError for one that is
    unknown, or cannot be made."""
    kind = WORKLOADS[input.workload]
    kind.about.normalised(input.options)
    return kind.make(input, seed=seed, root=root)


def read_files(input: Input, *, root: Path) -> Sequence[Path]:
    """Return the files that its records come out of. Raises UsageError if one is missing."""
    kind = WORKLOADS[input.workload]
    return kind.files(input, root=root) if isinstance(kind, ReadsFiles) else ()
