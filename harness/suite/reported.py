"""`onceproof report`: the pages of stored runs again, and one page of all of them.

A DIR that is a run folder gets its page again. One of any other kind is searched for run folders and summaries (CI's
artefacts of several machines, say), of which one page is written; nothing is written into it, and nothing is copied.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from harness.errors import HarnessError, UsageError
from harness.report.escape import visible
from harness.report.many.gather import Gathered, gather
from harness.report.many.page import Many
from harness.report.summary import Run
from harness.run_folder import digests, store

MERGED = Path("reports/merged")


def report(folders: Sequence[Path], to_sarif: Path | None = None, out: Path | None = None) -> int:
    """Write the page of each stored run, and of all of them a SARIF file and a page of many runs, where asked. One that
    is not as the run left it is named and gets none; the others do. The exit code."""
    many = [folder for folder in folders if is_reports_folder(folder)]
    runs, failures = _pages([folder for folder in folders if folder not in many], alone=len(folders) == 1)
    unread = [str(failure) for failure in failures]
    if many or (out is not None and runs):
        found = merged(folders if out else many, out or MERGED)
        runs = [*{run.folder: run for run in (*runs, *found.runs)}.values()]
        damaged = [f"{name}: {why}" for name, why in found.damaged]
        failures += map(HarnessError, damaged)
        unread += damaged
        # No more is known of them, and silence would be a pass.
        bare = [seen for seen in found.seen if seen.folder is None and seen.wrong]
        unread += [f"{seen.scenario}: {seen.word}; its run folder is not here" for seen in bare]
    if to_sarif is not None:
        from harness.report.ci import sarif

        sarif.write(to_sarif, runs, unread=unread)
        print(to_sarif)
    if failures and len(folders) == 1 and not many:
        raise failures[0]
    return max((failure.exit_code for failure in failures), default=0)


def _pages(folders: Sequence[Path], *, alone: bool) -> tuple[list[Run], list[HarnessError]]:
    """Return the runs whose pages were written, and why those of others were not; said here if there are others."""
    from harness.report import render

    runs: list[Run] = []
    failures: list[HarnessError] = []
    for folder in folders:
        try:
            print(render.write(digests.opened(folder, unjudged=True).path))
            runs.append(Run.read(folder))
        except HarnessError as failure:
            failures.append(failure)
            if not alone:
                print(f"Error: {failure}", file=sys.stderr)
    return runs, failures


def is_reports_folder(folder: Path) -> bool:
    """Return whether it is a folder, and none of a run."""
    if not folder.is_dir():
        return False
    try:
        store.RunFolder.find(folder)
    except UsageError:
        return True
    return False


def merged(folders: Sequence[Path], out: Path) -> Gathered:
    """Write the page of all runs below `folders` into `out`; what was not read is said. Raises UsageError if there is
    nothing below, HarnessError when the disk refuses."""
    from harness.report import render

    found = gather(folders)
    with store.disk("make the folder of the page", out):
        out.mkdir(parents=True, exist_ok=True)
    path = out / "index.html"
    many = Many(seen=found.seen, damaged=found.damaged, points=found.points)
    store.write(path, render.many_page(out, many, programs=False))
    for name, why in found.damaged:
        print(f"Error: {visible(name)}: {visible(why)}", file=sys.stderr)
    print(path)
    return found
