"""One page a run, one index a suite: HTML that opens from a disk, without script, network or trust in its data.

Data reaches a page only as text: autoescape is on everywhere, and a second fence (`finalize`) makes every text
visible (no control, bidi or invisible character, no lone surrogate) and cuts it. No attribute holds data.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from harness import __version__
from harness.errors import UsageError
from harness.report import budget, page, snapshots, table
from harness.report.causes import table_file
from harness.report.causes.groups import groups
from harness.report.escape import tail, visible
from harness.report.summary import Run
from harness.report.timeline.counts import read_counts
from harness.run_folder import journal, store
from harness.run_folder.snapshot import Progressed
from harness.scenario import Kind, Verdict, plain

if TYPE_CHECKING:
    from jinja2 import Environment

LONGEST = 2000
MOST_LOGS = 6


def write(folder: Path) -> Path:
    """Write `report.html` into the run folder, from what lies in it and nothing else.

    Raises UsageError if it is no run folder, HarnessError when the disk refuses."""
    found = store.RunFolder.open(folder)
    told = parts(found)
    store.write(found.report_html, run_page(told))
    table = found.path / table_file.NAME
    if told.verdict.findings:
        store.write(table, table_file.table_file(groups(told.verdict.findings)))
    elif table.is_file():
        table.unlink()
    return found.report_html


def run_page(told: page.Parts) -> str:
    """The page as text, of `budget.MOST_BYTES` at most."""
    for each in budget.EVERY:
        template = _environment(each.text).get_template("report.html.j2")
        text = template.render(page=page.build(told, each), table_file=table_file.NAME)
        if len(text.encode()) <= budget.MOST_BYTES:
            break
    return text


def index(reports: Path, runs: Sequence[Run]) -> Path:
    """Write `reports/latest/index.html`: one row a run, worst first, each with a link to its page."""
    folder = store.latest(reports)
    path = folder / "index.html"
    store.write(path, index_page(folder, runs))
    return path


def index_page(folder: Path, runs: Sequence[Run]) -> str:
    """The index as text; links are relative to `folder`."""
    ordered = sorted(runs, key=lambda run: run.verdict.as_expected)
    rows = [
        {"cells": table.cells(run), "word": run.verdict.word.value, "link": _link(folder, run.folder)}
        for run in ordered
    ]
    template = _environment(LONGEST).get_template("index.html.j2")
    return template.render(tally=table.tally(runs), heads=table.HEADS, rows=rows, made_by=__version__)


def parts(found: store.RunFolder) -> page.Parts:
    """What a page is made of, from a run folder. Raises UsageError for a damaged one."""
    stored = found.read()
    verdict, plan = Run.read(found.path).verdict, stored.get("plan", {}).get("scenario")
    return page.Parts(
        # Not the whole path: the page travels, and says nothing of the machine that it was made on.
        folder=str(Path(*found.path.parts[-3:])),
        run=stored["run"],
        verdict=verdict,
        plan=plain(store.scenario_of(plan)) if plan else {},
        scenario_file=stored.get("scenario", ""),
        journal=_events(found.journal),
        logs=[] if verdict.as_expected else _logs(found, verdict),
        snapshots=snapshots.snapshots(found.path),
        controls=snapshots.controls(found.path),
        progressed=_progressed(stored.get("checkpoint")),
        counts=read_counts(found.source),
    )


def _progressed(checkpoint: Any) -> Progressed | None:
    """What checkpoint.json says; None if it is not there, or of another version."""
    try:
        return None if checkpoint is None else store.noun(Progressed, checkpoint, "checkpoint.json")
    except UsageError:
        return None


def _events(path: Path) -> list[Mapping[str, Any]]:
    events: list[Any] = list(journal.read(path)) if path.is_file() else []
    # The last line of a crashed run can be torn into something that is JSON and yet no event.
    return [event for event in events if isinstance(event, dict)]


def _logs(found: store.RunFolder, verdict: Verdict) -> list[page.LogText]:
    """The newest logs' ends, for whoever asks why: of a run without findings, or that stalled."""
    told = any(finding.kind is not Kind.STALLED for finding in verdict.findings)
    if told or not found.logs.is_dir():
        return []
    logs = [path for path in found.logs.rglob("*") if path.is_file() and not path.is_symlink()]
    newest = sorted(logs, key=lambda path: path.stat().st_mtime, reverse=True)[:MOST_LOGS]
    return [page.LogText(name=str(path.relative_to(found.path)), lines=tail(path)) for path in newest]


def _link(folder: Path, run: Path | None) -> str | None:
    if run is None or not (run / "report.html").is_file():
        return None
    return quote(os.path.relpath((run / "report.html").resolve(), folder.resolve()))


@cache
def _environment(longest: int) -> Environment:
    # Late, because the harness is imported by many commands that write no page.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        finalize=partial(_finalize, longest),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )


def _finalize(longest: int, value: Any) -> Any:
    return visible(str(value), longest)
