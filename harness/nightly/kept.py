"""Which run folders a night keeps: the newest held ones, and failed ones for as long as the disk bound allows; those of
earlier nights count too. Pure but for `Keeper` and `size`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import time

from harness.errors import HarnessError
from harness.nightly.state import Line, State
from harness.run_folder.lines import whole
from harness.run_folder.store import RunFolder, slug
from harness.scenario import Word

HELD_KEPT = 10
HARMLESS = (Word.HELD.value, Word.UNTESTED.value)
"""Words of runs of which the newest few are kept."""


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A run folder that is there: its bytes, and whether it is of a run that has to be examined."""

    folder: str
    size: int
    failed: bool


def thinned(kept: Sequence[Kept], bound: int) -> list[Kept]:
    """Return those to remove, of `kept` in the order of their runs: held ones but the newest, then the oldest held,
    then the oldest failed, until the rest has at most `bound` bytes. The last one that failed stays whatever it
    takes."""
    held = [each for each in kept if not each.failed]
    failed = [each for each in kept if each.failed]
    gone = held[:-HELD_KEPT]
    left = sum(each.size for each in kept) - sum(each.size for each in gone)
    for each in (*held[len(gone) :], *failed[:-1]):
        if left <= bound:
            break
        gone.append(each)
        left -= each.size
    return gone


@dataclass
class Keeper:
    """Thins the run folders of the nights under `reports` to `bound` bytes as runs end; those of others stay.
    `print_line` gets a line for each run."""

    reports: Path
    bound: int
    print_line: Callable[[str], None]
    _began: float = field(default_factory=time)
    _ended: dict[Path, Kept] = field(default_factory=dict)
    _nights: Nights = field(init=False)

    def __post_init__(self) -> None:
        self._nights = Nights.read(self.reports)

    def kept(self, line: Line) -> None:
        """A run is over: tell of it, and remove what has to go."""
        words = f" ({', '.join(line.kinds)})" if line.kinds else ""
        again = f", again {line.again}" if line.again else ""
        known = f", {line.known}" if line.known else ""
        self.print_line(f"{line.plan}{again}: {line.verdict}{words}{known}: {line.name}")
        if line.folder:
            self._take(Path(line.folder).resolve(), line.verdict)
        self._earlier()
        there = sorted((each for each in self._ended.items() if each[0].is_dir()), key=_age)
        for each in thinned([kept for _, kept in there], self.bound):
            # What is damaged stays: it is not known whether it is a run's.
            with suppress(HarnessError):
                RunFolder.open(Path(each.folder)).remove()
                del self._ended[Path(each.folder)]

    def _earlier(self) -> None:
        """Those of earlier nights, and of harnesses that were killed. What began since may still be at work."""
        for path in self.reports.glob("*/*/run.json"):
            folder = path.parent.resolve()
            if folder in self._ended or path.parent.is_symlink() or not self._nights.has(folder):
                continue
            if path.stat().st_mtime < self._began:
                self._take(folder, _word(folder))

    def _take(self, folder: Path, word: str) -> None:
        self._ended[folder] = Kept(folder=str(folder), size=size(folder), failed=word not in HARMLESS)


@dataclass(frozen=True)
class Nights:
    """What the nights of a folder have left there. `runs` are names of run folders, `scenarios` of those above them."""

    runs: frozenset[tuple[str, str]]
    scenarios: frozenset[str]

    @classmethod
    def read(cls, reports: Path) -> Nights:
        """By the files of the nights; one that is damaged names nothing."""
        lines = list(_lines(reports))
        folders = [Path(line.folder) for line in lines if line.folder]
        runs = frozenset((folder.parent.name, folder.name) for folder in folders)
        return cls(runs, frozenset(slug(line.name) for line in lines))

    def has(self, folder: Path) -> bool:
        """Return whether it is of a night. No line names what was cut off, but the plan was played again, and that has
        one."""
        cut = not (folder / "verdict.json").is_file() and folder.parent.name in self.scenarios
        return cut or (folder.parent.name, folder.name) in self.runs


def _lines(reports: Path) -> Iterator[Line]:
    for path in sorted(reports.glob("night-*.jsonl")):
        with suppress(HarnessError):
            if text := whole(path):
                yield from State.read(path, text).lines


def _word(folder: Path) -> str:
    """Return what came of a run; of one that was cut off nothing."""
    try:
        return str(json.loads((folder / "verdict.json").read_text(encoding="utf-8"))["word"])
    except (OSError, ValueError, KeyError, TypeError):
        return Word.UNTESTED.value


def _age(each: tuple[Path, Kept]) -> tuple[float, str]:
    return each[0].stat().st_mtime, each[1].folder


def size(folder: Path) -> int:
    """Return the bytes of a folder; of what goes away meanwhile, nothing."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_size
        except FileNotFoundError:
            continue
    return total
