"""What a night has done so far: a file of lines, appended to and never changed, so that a killed night goes on.

The first line says what the list of plans is made of; each other one is a run that is over, or the end of the night. A
last line without its end was being written when the harness was killed: it is cut off, and that run is done again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.run_folder.store import disk

VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Head:
    """What the list of plans is made of. `digest` is that of all scenario files that were given, `struck` what earlier
    nights struck, as rows of target, place, fault and count."""

    seed: int
    shard: int
    shards: int
    digest: str
    struck: tuple[tuple[str, str, str, int], ...] = ()
    version: int = VERSION


@dataclass(frozen=True, kw_only=True)
class Line:
    """One run that is over. `plan` names it (`known 3`, `own 0`, `drawn 17`), `again` counts its runs after the first
    one, `aimed` are the cells of its plan, `struck` rows of sink, point and fault where something was at stake that
    counts. `spent_s` is the time of the night until its end, `folder` the run's, empty if there was none."""

    plan: str
    name: str
    target: str
    verdict: str
    failed: bool
    half: str = ""
    again: int = 0
    kinds: tuple[str, ...] = ()
    aimed: tuple[tuple[str, str, str], ...] = ()
    struck: tuple[tuple[str, str, str], ...] = ()
    seconds: float = 0.0
    spent_s: float = 0.0
    folder: str = ""
    known: str = ""


@dataclass
class State:
    """The file, and what it holds."""

    path: Path
    head: Head
    lines: list[Line] = field(default_factory=list)
    ended: bool = False

    @classmethod
    def opened(cls, path: Path, head: Head) -> State:
        """The state of the night that `head` begins, or goes on with: then what earlier nights struck is as it was
        told at its beginning. Raises UsageError for another night's, one that is over, and damage."""
        if not path.is_file() or not (text := _whole(path)):
            state = cls(path, head)
            state._append({"head": asdict(head)})
            return state
        try:
            parts = [json.loads(line) for line in text.splitlines()]
            there = Head(**{**parts[0]["head"], "struck": _rows(parts[0]["head"]["struck"])})
            lines = [_line(part["run"]) for part in parts[1:] if "run" in part]
        except (ValueError, KeyError, TypeError) as failure:
            raise UsageError(f"asked to go on with the night of {path}; it is damaged ({failure!r}). Move it") from None
        if (there.seed, there.shard, there.shards, there.digest, there.version) != (
            head.seed, head.shard, head.shards, head.digest, head.version
        ):  # fmt: skip
            saw = "it was begun with another seed, shard, version, or with scenarios that have changed since"
            raise UsageError(f"asked to go on with the night of {path}; {saw}. Move the file, or take another --seed")
        if any("ended" in part for part in parts):
            raise UsageError(f"asked for the night of {path}; it is over. Take another --seed, or move the file")
        return cls(path, there, lines)

    def add(self, line: Line) -> None:
        """Keep a run that is over."""
        self.lines.append(line)
        self._append({"run": asdict(line)})

    def end(self) -> None:
        """The night is over."""
        self.ended = True
        self._append({"ended": True})

    @property
    def spent_s(self) -> float:
        """The time that the night has had so far."""
        return self.lines[-1].spent_s if self.lines else 0.0

    @property
    def longest_s(self) -> float:
        """The longest run so far."""
        return max((line.seconds for line in self.lines), default=0.0)

    def runs(self, plan: str) -> list[Line]:
        """Those of one plan, the first one first."""
        return [line for line in self.lines if line.plan == plan]

    def _append(self, part: dict[str, Any]) -> None:
        append(self.path, part)


def append(path: Path, part: dict[str, Any]) -> None:
    """One more line, on the disk before this returns. Raises HarnessError."""
    with disk("write", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as out:
            out.write(json.dumps(part) + "\n")
            out.flush()
            os.fsync(out.fileno())


def _whole(path: Path) -> str:
    """The lines that were written to their end; what comes after is cut off."""
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        with path.open("r+b") as out:
            out.truncate(len(whole))
    return whole.decode("utf-8")


def _line(part: dict[str, Any]) -> Line:
    rows = {name: _rows(part[name]) for name in ("aimed", "struck")}
    return Line(**{**part, **rows, "kinds": tuple(part["kinds"])})


def _rows(rows: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
    return tuple(tuple(row) for row in rows)
