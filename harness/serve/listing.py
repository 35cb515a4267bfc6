"""The runs of a store, each read once as long as its files stay as they are, and the page that lists them."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlencode

from harness.errors import HarnessError
from harness.report import render
from harness.report.many import gather
from harness.report.many.seen import Seen
from harness.run_folder.store import LATEST
from harness.scenario import Kind, Word
from harness.serve.search import KEYS, Query, found

PER_PAGE = 200
PAGES = ("*/index.html", f"*/{LATEST}/index.html")
WATCHED = ("run.json", "verdict.json", "digests.json")
Stamp = tuple[tuple[int, int] | None, ...]


@dataclass
class Listing:
    """The store at `root`. Safe to ask from several threads."""

    root: Path
    _kept: dict[Path, tuple[Stamp, Seen | str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def runs(self) -> tuple[list[Seen], list[tuple[str, str]]]:
        """Return what is there now, and what could not be read, with why."""
        with self._lock:
            kept = {folder: self._read(folder) for folder in gather.run_folders(self.root)}
            self._kept = kept
        seen = [found for _, found in kept.values() if isinstance(found, Seen)]
        return seen, [(str(folder), found) for folder, (_, found) in kept.items() if isinstance(found, str)]

    def _read(self, folder: Path) -> tuple[Stamp, Seen | str]:
        now = tuple(_stamp(folder / name) for name in WATCHED)
        if folder in self._kept and self._kept[folder][0] == now:
            return self._kept[folder]
        try:
            return now, Seen.of(gather.whole(folder))
        except HarnessError as failure:
            return now, gather.why(folder, failure)

    def page(self, query: Query) -> str:
        """Return the list as HTML."""
        every, damaged = self.runs()
        chosen = found(every, query)
        first = (query.page - 1) * PER_PAGE
        return render.filled(
            "store.html.j2",
            query=query,
            words=Word,
            kinds=Kind,
            rows=[(seen, render.link(self.root, seen.folder)) for seen in chosen[first : first + PER_PAGE]],
            found=len(chosen),
            every=len(every),
            damaged=damaged[:PER_PAGE],
            left=max(0, len(damaged) - PER_PAGE),
            suites=self._suites(),
            newer=_address(query, query.page - 1) if query.page > 1 else None,
            older=_address(query, query.page + 1) if len(chosen) > first + PER_PAGE else None,
        )

    def _suites(self) -> list[tuple[str, str]]:
        """Return pages of many runs right below the root, and those of nights, which have their own folder there, by
        the names of their folders."""
        pages = [path for pattern in PAGES for path in sorted(self.root.glob(pattern)) if self._own(path)]
        return [(path.parent.relative_to(self.root).as_posix(), self._link(path)) for path in pages]

    def _own(self, path: Path) -> bool:
        """Return whether it is a plain file, and reached through no link."""
        below = [path, *path.parents[: len(path.relative_to(self.root).parts) - 1]]
        return path.is_file() and not any(each.is_symlink() for each in below)

    def _link(self, path: Path) -> str:
        return "/" + quote(os.fsencode(path.relative_to(self.root)))


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _address(query: Query, page: int) -> str:
    parts = {key: getattr(query, key) for key in KEYS if key != "page" and getattr(query, key)}
    return "/?" + urlencode(parts | {"page": page}, errors="replace")
