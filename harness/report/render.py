"""One page a run, one of many runs: HTML that opens from a disk, without script, network or trust in its data.

Data reaches a page only as text: autoescape is on everywhere, and a second fence (`finalize`) makes every text
visible (no control, bidi or invisible character, no lone surrogate) and cuts it. No attribute holds data.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from harness import __version__, history
from harness.history import Line
from harness.report import budget, claims, page, snapshots
from harness.report.causes import table_file
from harness.report.causes.groups import groups
from harness.report.escape import tail, visible
from harness.report.exposures import few
from harness.report.many import page as many_runs
from harness.report.many import trend
from harness.report.many.hunted import Hunted
from harness.report.many.matrix import MARKS
from harness.report.many.page import Many
from harness.report.many.seen import Seen
from harness.report.summary import Run, verdict_of
from harness.report.timeline.counts import read_counts
from harness.run_folder import store
from harness.scenario import Kind, Verdict, Word
from harness.snapshot import Progressed

if TYPE_CHECKING:
    from jinja2 import Environment

MOST_LOGS = 6
MOST_LOG_BYTES = 16 * 2**20
STARVED = b"Initial job has not accepted any resources"
"""Spark's scheduler says so every 15 s, until the first task of an application runs."""
LIST_TEXT = 600
PAGE = "report.html"
# The pages say the same of themselves.
CSP = "default-src 'none'; style-src 'unsafe-inline'"
WORDS = (Word.HELD, Word.VIOLATED, Word.UNTESTED, Word.INCONCLUSIVE, Word.ERROR)


def write(folder: Path) -> Path:
    """Write `report.html` into the run folder, from what is in it and nothing else.

    Raises UsageError if it is no run folder, HarnessError when the disk refuses."""
    found = store.RunFolder.open(folder)
    content = parts(found)
    store.write(found.report_html, run_page(content))
    table = found.path / table_file.NAME
    if content.verdict.findings:
        store.write(
            table, table_file.table_file(groups(content.verdict.findings), baseline_runs=bool(content.baseline_runs))
        )
    elif table.is_file():
        table.unlink()
    return found.report_html


def run_page(content: page.Parts) -> str:
    """Return the page as text, of `budget.MOST_BYTES` at most."""
    texts = ((each.text, {"page": page.build(content, each), "table_file": table_file.NAME}) for each in budget.EVERY)
    return _fitting("report.html.j2", texts)


def _fitting(template: str, texts: Iterable[tuple[int, Mapping[str, Any]]]) -> str:
    """Return the first page of `budget.MOST_BYTES` at most, or else the last one; `texts` are those of each, and how
    long one of them is at most."""
    for longest, each in texts:
        text = filled(template, longest, **each)
        if len(text.encode()) <= budget.MOST_BYTES:
            break
    return text


def index(reports: Path, runs: Sequence[Run]) -> Path:
    """`index_of` these runs."""
    return index_of(reports, [Seen.of(run) for run in runs])


def index_of(reports: Path, seen: Sequence[Seen], hunted: Sequence[Hunted] = ()) -> Path:
    """Write `reports/latest/index.html`: the page of these runs, with links to theirs and the trend of suites and
    nights; `hunted` is what a night was after. A night keeps its lines in its own `reports`, a suite finds those of
    nights under `reports/nightly`."""
    folder = store.latest(reports)
    damaged: list[tuple[str, str]] = []
    there = [each / trend.NAME for each in (folder, reports, reports / "nightly")]
    points = [point for path in there if path.is_file() for point in trend.read(path, damaged)]
    many = Many(seen=seen, damaged=damaged, points=points, hunted=hunted)
    index = folder / "index.html"
    store.write(index, many_page(folder, many))
    return index


def many_page(folder: Path, many: Many, *, programs: bool = True) -> str:
    """Return the page of many runs as text, of `budget.MOST_BYTES` at most; links are relative to `folder`. `programs`:
    a summary.json lies beside it."""
    links = {seen.folder: link(folder, seen.folder) for seen in many.seen}
    texts = (
        (each.text, {"page": many_runs.build(many, links.get, each), "words": WORDS, "programs": programs})
        for each in many_runs.EVERY
    )
    return _fitting("many.html.j2", texts)


def filled(template: str, longest: int = LIST_TEXT, **texts: Any) -> str:
    """Return a page as text. No text in it is longer than `longest`."""
    return _environment(longest).get_template(template).render(made_by=__version__, **texts)


def parts(found: store.RunFolder) -> page.Parts:
    """Return what a page is made of, from a run folder. Raises UsageError for a damaged one."""
    stored = found.read()
    verdict, plan = verdict_of(found, stored["run"]), stored.get("plan", {}).get("scenario")
    lines = _events(found.history)
    return page.Parts(
        folder=_place(found.path, stored["run"]),
        run=stored["run"],
        verdict=verdict,
        plan=store.scenario_of(plan) if plan else claims.UNPLANNED,
        scenario_file=stored.get("scenario", ""),
        history=lines,
        logs=() if verdict.as_expected else _logs(found, verdict),
        snapshots=snapshots.snapshots(found.path, history.readings(lines)),
        baseline_runs=snapshots.baseline_runs(found.path),
        progressed=history.progressed(lines) or Progressed(),
        counts=read_counts(found.source),
        starved=_starved(found) if verdict.word is Word.INCONCLUSIVE else {},
    )


def _place(folder: Path, run: Mapping[str, Any]) -> str:
    """Return where the run lies for who is where it was started; below a folder of another name, its last three names.
    Not the whole path: the page travels, and says nothing of the machine that it was made on."""
    reports, near = Path(str(run.get("reports") or "")), folder.parts[-3:]
    return str(Path(reports, *near[1:]) if reports.name == near[0] and not reports.is_absolute() else Path(*near))


def _events(path: Path) -> list[Line]:
    return list(history.read(path)) if path.is_file() else []


def _logs(found: store.RunFolder, verdict: Verdict) -> list[page.LogText]:
    """Return the logs' ends: of a run without findings, or that stalled."""
    has_findings = any(finding.kind is not Kind.STALLED for finding in verdict.findings)
    if has_findings or not found.logs.is_dir():
        return []
    logs = [path for path in found.logs.rglob("*") if path.is_file() and not path.is_symlink()]
    names = sorted((str(path.relative_to(found.path)) for path in logs), key=_last_attempt_first)[:MOST_LOGS]
    return [(name, tail(found.path / name)) for name in names]


def _last_attempt_first(name: str) -> tuple[list[str], list[int], str]:
    """Return by name, of one kind the highest number first. Not by time: a copy of the folder has other times."""
    return re.split("[0-9]+", name), [-int(digits) for digits in re.findall("[0-9]+", name)], name


def _starved(found: store.RunFolder) -> dict[int, int]:
    """Return how often the log of each attempt says that no executor took a task of its first job."""
    out = {}
    for path in found.logs.glob("driver-*.log") if found.logs.is_dir() else ():
        number = path.stem.removeprefix("driver-")
        if number.isascii() and number.isdigit() and path.is_file() and not path.is_symlink():
            with path.open("rb") as log:
                out[int(number)] = log.read(MOST_LOG_BYTES).count(STARVED)
    return out


def link(folder: Path, run: Path | None) -> str | None:
    """Return the address of a run's page, relative to `folder`; None where there is none, or a link in its place."""
    if run is None or (run / PAGE).is_symlink() or not (run / PAGE).is_file():
        return None
    return quote(os.fsencode(os.path.relpath((run / PAGE).resolve(), folder.resolve())))


@cache
def _environment(longest: int) -> Environment:
    # Late, because the harness is imported by many commands that write no page.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    out = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        finalize=partial(_finalize, longest),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    out.filters |= {"few": few, "mark": MARKS.__getitem__, "visible": visible}
    return out


def _finalize(longest: int, value: Any) -> Any:
    """What a macro of ours made is markup, and its data has been here; data never is."""
    return value if hasattr(value, "__html__") else visible(str(value), longest)
