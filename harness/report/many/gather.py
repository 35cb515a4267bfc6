"""Everything below some folders: run folders, summaries of suites, lines of earlier nights, and what is damaged.

Hostile folders are expected (artefacts of other machines): no link is followed, nothing larger than `MOST_BYTES` is
read as a whole, and what cannot be read is named.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any

from harness.errors import HarnessError, UsageError, one_line
from harness.report import claims
from harness.report.many import trend
from harness.report.many.seen import Seen
from harness.report.summary import Run
from harness.run_folder import digests, store
from harness.run_folder.digests import DIGESTS
from harness.run_folder.store import LATEST, PARTS

SUMMARY = "summary.json"
SUITE, NIGHT = "suite", "night"
DEEPEST = 12
MOST_BYTES = 64 * 2**20
MOST_RUNS = 10_000
RUN = frozenset({*PARTS.values(), DIGESTS} - {"scenario.yaml"})
"""A folder with any of these is a run folder, whole or not."""


@dataclass
class Gathered:
    """What was found. `damaged` has what, and why it could not be read; `runs` those of `seen` that have a folder."""

    seen: list[Seen] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    damaged: list[tuple[str, str]] = field(default_factory=list)
    points: list[trend.Point] = field(default_factory=list)


@dataclass
class _Found:
    """Paths by what they are."""

    runs: list[Path] = field(default_factory=list)
    summaries: list[Path] = field(default_factory=list)
    trends: list[Path] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)


def gather(folders: Sequence[Path]) -> Gathered:
    """Return all that lies below `folders`, each run once. Raises UsageError if there is nothing."""
    found, out = _Found(), Gathered()
    for folder in folders:
        _walk(folder, found)
    out.damaged += found.refused
    # First, or a suite that still runs would name runs whose folders came after the search.
    summaries = [(path, *_entries(path, out.damaged)) for path in _unique(found.summaries)]
    known: set[tuple[str, str]] = set()
    marks: set[tuple[str, ...]] = set()
    for path in _unique(found.runs):
        known.add(_name(path))
        try:
            run = whole(path)
            mark = (*_name(path), store.digest(path / DIGESTS) if (path / DIGESTS).is_file() else str(path))
            # The same artefact, unpacked twice.
            if mark in marks:
                continue
            marks.add(mark)
        except HarnessError as failure:
            out.damaged.append((str(path), why(path, failure)))
            continue
        out.runs.append(run)
        out.seen.append(Seen.of(run))
    for path, what, entries in summaries:
        own = _add_summary(path, entries, out, known, night=what == NIGHT)
        # A night keeps its lines a folder above its page.
        above = (path.parent, path.parent.parent) if what == NIGHT else (path.parent,)
        if own and not any((folder / trend.NAME).is_file() for folder in above):
            out.points.append(trend.point(own, what))
    for path in _unique(found.trends):
        out.points += trend.read(path, out.damaged)
    if not (out.seen or out.damaged):
        places = ", ".join(map(str, folders))
        raise UsageError(
            f"asked for the runs in {places}; saw no run folder and no {SUMMARY} below. Name a folder such as "
            "reports/, or the folder that CI's artefacts were unpacked into"
        )
    return out


def whole(path: Path) -> Run:
    """Return a run of which every file with a digest is as the run left it. Raises HarnessError."""
    for name in RUN:
        part = path / name
        if part.is_symlink():
            raise UsageError(f"{part} is a link; the files of a run are plain. Put back a copy of the folder")
        if part.is_file() and part.stat().st_size > MOST_BYTES:
            raise UsageError(f"{part} is larger than {MOST_BYTES // 2**20} MiB. Put back a copy of the folder")
    return Run.read(digests.opened(path, unjudged=True).path)


def why(path: Path, failure: HarnessError) -> str:
    """Return why the run in `path` was not read, on one line, for a place that names it."""
    return one_line(failure).removeprefix(f"asked for the run in {' '.join(str(path.resolve()).split())}; ")


def run_folders(root: Path) -> list[Path]:
    """Return the run folders below `root`, whole or not, sorted; no link is followed."""
    found = _Found()
    _walk(root, found)
    return _unique(found.runs)


def _walk(root: Path, found: _Found) -> None:
    def refused(error: OSError) -> None:
        found.refused.append((str(error.filename), f"cannot be read: {error.strerror}"))

    for place, folders, files in os.walk(root, onerror=refused):
        here = Path(place)
        links = [name for name in folders if (here / name).is_symlink() and name != LATEST]
        found.refused += [(str(here / name), "is a link, and no link is followed") for name in links]
        if RUN & {*files, *folders}:
            found.runs.append(here)
            folders.clear()
            continue
        if len(here.relative_to(root).parts) >= DEEPEST:
            folders.clear()
        folders.sort()
        if SUMMARY in files:
            found.summaries.append(here / SUMMARY)
        if trend.NAME in files:
            found.trends.append(here / trend.NAME)


def _unique(paths: Sequence[Path]) -> list[Path]:
    """Return each once, also if it was named by two ways."""
    return sorted({path.resolve(): path for path in reversed(paths)}.values())


def _name(folder: PurePath) -> tuple[str, str]:
    """Return what a run folder is called on every machine: its scenario's slug, its time and run id."""
    return folder.parent.name, folder.name


def _add_summary(
    path: Path, entries: Sequence[Any], out: Gathered, known: set[tuple[str, str]], *, night: bool
) -> list[Seen]:
    """Return the runs of a suite or night; those of which no folder is here are added."""
    own: list[Seen] = []
    places = {_name(seen.folder): place for place, seen in enumerate(out.seen) if seen.folder is not None}
    for number, entry in enumerate(entries, 1):
        try:
            seen = Seen.read(entry, f"{path}, run {number}")
        except UsageError as failure:
            out.damaged.append((f"{path}, run {number}", str(failure)))
            continue
        folder = claims.mapping(entry).get("folder")
        name = _name(PurePath(folder)) if isinstance(folder, str) else None
        if name in places:
            # An older summary does not say when a run began.
            there = out.seen[places[name]]
            seen = out.seen[places[name]] = _of_a_night(there, seen) if night else there
        elif name is None or name not in known:
            out.seen.append(seen)
        own.append(seen)
        if name is not None:
            known.add(name)
    return own


def _of_a_night(run: Seen, by_night: Seen) -> Seen:
    """Return a run whose folder is here, with what its night alone knows. The verdict is that of the folder: a summary
    that has another one knows nothing of it."""
    if run.word is not by_night.word or {*run.kinds} != {*by_night.kinds}:
        return run
    return replace(run, drawn=by_night.drawn, again=by_night.again, known=run.known or by_night.known)


def _entries(path: Path, damaged: list[tuple[str, str]]) -> tuple[str, list[Any]]:
    """Return what a summary is of, and its runs."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MOST_BYTES:
            raise ValueError(f"is no plain file of {MOST_BYTES // 2**20} MiB at most")
        data = json.loads(path.read_bytes())
        runs = data["runs"] if isinstance(data, dict) else None
        if not isinstance(runs, list) or len(runs) > MOST_RUNS:
            raise ValueError(f"holds no list of {MOST_RUNS:,} runs at most")
    except (OSError, ValueError, KeyError, RecursionError) as failure:
        damaged.append((str(path), f"is damaged: {failure}"))
        return SUITE, []
    return NIGHT if data.get("what") == NIGHT else SUITE, runs
