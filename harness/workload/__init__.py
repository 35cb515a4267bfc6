"""The input: generated records, or a file of the user's replayed."""

from __future__ import annotations

from pathlib import Path

from harness.errors import UsageError
from harness.scenario import Input
from harness.workload.access_logs import AccessLogs
from harness.workload.base import Column, Record, Workload
from harness.workload.replay import Replay, located
from harness.workload.transactions import Transactions

__all__ = ["Column", "Record", "Workload", "make"]

_GENERATED: dict[str, type[Transactions] | type[AccessLogs]] = {"transactions": Transactions, "access_logs": AccessLogs}


def make(input: Input, *, seed: int, root: Path) -> Workload:
    """The workload that `input` asks for. A replayed file is looked for under `root`, the project's folder.

    Raises UsageError for an unknown workload, numbers that make no sense, and a file that is missing or broken."""
    if input.replay is not None:
        return Replay(located(input.replay, root), records=input.records, key=input.key)
    kind = _GENERATED.get(input.workload)
    if kind is None:
        known = ", ".join([*_GENERATED, "replay (with `replay: FILE`)"])
        raise UsageError(f"asked for the workload {input.workload!r}; there are {known}. Name one of them")
    if input.records < 1 or input.keys < 1 or input.skew < 0:
        seen = f"records {input.records}, keys {input.keys}, skew {input.skew:g}"
        raise UsageError(f"asked for {seen}; records and keys begin at 1, skew at 0. Change them in the scenario")
    return kind(input.records, keys=input.keys, skew=input.skew, seed=seed)
