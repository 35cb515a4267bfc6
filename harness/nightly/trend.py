"""The nights so far: `trend.jsonl`, a line each. A night that was cut short and went on has more than one; the last one
counts."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.nightly import bound
from harness.nightly.bound import Bound, bounds
from harness.nightly.draw import Cell
from harness.nightly.night import Night
from harness.report.many.seen import EXPECTED
from harness.report.many.trend import NAME
from harness.run_folder.lines import append, whole


@dataclass
class Trend:
    """The file, and its nights by seed, shard and digest."""

    path: Path
    nights: dict[tuple[int, str, str], dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, reports: Path) -> Trend:
        """Return the nights under `reports`. Raises UsageError for a line that is none of a night."""
        out = cls(reports / NAME)
        for number, text in enumerate(whole(out.path).splitlines(), 1):
            try:
                found = json.loads(text)
                for name, words in (("cells", 3), ("uniform", 4)):
                    for row in found[name]:
                        _checked(row, words)
                out.nights[int(found["seed"]), str(found["shard"]), str(found["digest"])] = found
            except (ValueError, KeyError, TypeError, IndexError):
                raise UsageError(f"{out.path}:{number}:1: is no line of a night: remove it") from None
        return out

    def struck(self) -> Counter[Cell]:
        """Return how often the nights have struck each cell."""
        out: Counter[Cell] = Counter()
        for found in self.nights.values():
            out.update({(row[0], row[1], row[2]): int(row[3]) for row in found["cells"]})
        return out

    def add(self, night: Night, today: date, *, cut: bool) -> list[Bound]:
        """Return one line more; what the uniform half says, with the earlier nights of the same list."""
        head, first = night.state.head, [line for line in night.state.lines if not line.again]
        mine = bounds(night.state.lines)
        line = {
            "date": today.isoformat(),
            "seed": head.seed,
            "shard": f"{head.shard}/{head.shards}",
            "digest": head.digest,
            "cut": cut,
            "seconds": round(night.spent_s, 1),
            "plans": len(first),
            "verdicts": dict(Counter(line.verdict for line in first)),
            # One a plan, as the page counts them.
            "failed": sorted(f"{line.target}: {line.verdict}" for line in first if line.wrong),
            "known": sorted({line.known for line in first if line.failed and line.known not in ("", EXPECTED)}),
            "found": sorted({line.target for line in first if line.failed and line.known == EXPECTED}),
            "hunted": [[each.pipeline, each.plan, each.own, each.every] for each in night.hunted()],
            "uniform": [[*each.cell, each.held, each.clean] for each in mine],
            "cells": [[*cell, times] for cell, times in sorted(night.cells().items())],
            "exit": night.code(),
        }
        append(self.path, line)
        earlier = self._earlier(but=(head.seed, str(line["shard"]), head.digest))
        return bounds(night.state.lines, earlier)

    def _earlier(self, *, but: tuple[int, str, str]) -> dict[bound.Cell, Bound]:
        """Return what other nights of the same scenarios, programs and version found, cell by cell."""
        out: dict[bound.Cell, Bound] = {}
        for key, found in self.nights.items():
            for row in found["uniform"] if key[-1] == but[-1] and key != but else ():
                cell = (row[0], row[1], row[2], row[3])
                before = out.get(cell, Bound(cell=cell, held=0))
                out[cell] = Bound(cell=cell, held=before.held + int(row[4]), clean=before.clean and bool(row[5]))
        return out


def _checked(row: Any, words: int) -> None:
    """A cell, and a number. Raises TypeError, IndexError or ValueError for what is none."""
    if not isinstance(row, list) or not all(isinstance(part, str) for part in row[:words]):
        raise TypeError(row)
    int(row[words])
