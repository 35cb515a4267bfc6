"""What a run folder keeps beside the verdict, as texts for its page: a snapshot an injection, and the baseline runs.

    snapshots/<step>-injection/, snapshots/<step>-restart/    `sink/<i>.json`
    baseline/<any name>/                                   the run folder of a baseline run

The text of a damaged file says that it is damaged; a page is written for any folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.report.causes.sentences import short
from harness.report.escape import plural
from harness.report.exposures import few
from harness.report.failure_text import numbers
from harness.snapshot import INJECTION, OFFSETS, RESTART, Offsets, QueryState, Snapshot

MOST = 20
"""Snapshots and baseline runs that are shown."""
PARTITIONS = 20
NOTHING = "-"


@dataclass(frozen=True, kw_only=True)
class SnapshotText:
    """One injection: what stood where then, and before the next attempt began. `lines` are (what, at the injection,
    before restart); without a restart the last one is `-`. `open_rows` says what became of transactions that were
    open."""

    step: int
    lines: list[tuple[str, str, str]]
    title: str = ""
    open_rows: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class BaselineText:
    """One baseline run."""

    name: str
    seconds: str
    cached: str
    caught_up: str


def snapshots(folder: Path, readings: Mapping[tuple[int, str], Snapshot]) -> list[SnapshotText]:
    """Return the snapshots of a run, by step."""
    steps = sorted({step for step, moment in readings if moment == INJECTION})
    return [_snapshot(folder / "snapshots", step, readings) for step in steps[:MOST]]


def baseline_runs(folder: Path) -> list[BaselineText]:
    """Return the baseline runs of a run, by name."""
    return [_baseline_run(each) for each in sorted(_folders(folder / "baseline"))[:MOST]]


def _folders(root: Path) -> Iterator[Path]:
    # A link could lead out of the run folder; a hidden folder is one that was never finished.
    if root.is_dir() and not root.is_symlink():
        found = (path for path in root.iterdir() if not path.name.startswith("."))
        yield from (path for path in found if path.is_dir() and not path.is_symlink())


def _snapshot(root: Path, step: int, readings: Mapping[tuple[int, str], Snapshot]) -> SnapshotText:
    folders = [root / f"{step}-{moment}" for moment in (INJECTION, RESTART)]
    then, later = found = [readings.get((step, moment)) for moment in (INJECTION, RESTART)]
    struck_at, restart = [_texts(each, folder) for each, folder in zip(found, folders, strict=True)]
    lines = [
        (name, struck_at.get(name, NOTHING), restart.get(name, NOTHING))
        for name in dict.fromkeys([*struck_at, *restart])
    ]
    if then is None or later is None:
        return SnapshotText(step=step, lines=lines)
    sinks = [{path.stem: _object(path) for path in _files(folder / "sink")} for folder in folders]
    texts = (_rolled_back(then, later, place, [each.get(place, {}) for each in sinks]) for place in then.writing)
    return SnapshotText(step=step, lines=lines, open_rows=few([text for text in texts if text]))


def _rolled_back(then: Snapshot, later: Snapshot, place: str, sinks: Sequence[Mapping[str, Any]]) -> str:
    """That transactions were open in a sink at the injection, and no row of theirs was there later; empty if nothing
    shows that. `sinks` is what is known of it then and later."""
    many, rows = len(then.writing[place]), sinks[0].get("rows")
    unread = any(each.get("unreadable") or each.get("rows") != rows for each in sinks)
    if not many or later.writing.get(place) or later.error or unread or not isinstance(rows, int):
        return ""
    name, end = short(str(sinks[0].get("name") or "the sink")), f"rolled back, and {plural(rows, 'row')} stayed."
    held = _held(then, place, rows)
    if held is None:
        was = "it was" if many == 1 else "they were"
        return f"At the injection, {plural(many, 'transaction')} had written into {name}; {was} {end}"
    more = max(0, later.handed.get(place, (0, None))[0] - then.handed.get(place, (0, None))[0])
    late = f" with {more:,} inserted later" if more else ""
    held_open = f"At the injection, {plural(many, 'open transaction')} held {plural(held, 'row')} of {name}"
    return f"{held_open};{late} they were {end}"


def _held(then: Snapshot, place: str, rows: int) -> int | None:
    """Return how many inserted rows the sink did not show. None where the row breakpoint's count does not tell: it also
    counts what was rolled back earlier, and rows that replaced others."""
    counted, before = then.handed.get(place, (0, None))
    if before is None or then.attempt != 1:
        return None
    return counted - rows if before <= rows < counted else None


def _texts(found: Snapshot | None, folder: Path) -> dict[str, str]:
    """Return one snapshot as texts by their name; empty if there is none."""
    return {} if found is None else _facts(found, _names(folder / "sink")) | _sinks(folder / "sink")


def _facts(snapshot: Snapshot, names: Mapping[str, str]) -> dict[str, str]:
    out = {"Begun at": f"{snapshot.at_s:.2f} s", "Attempt": str(snapshot.attempt)}
    for query in snapshot.queries[:MOST]:
        out[f"Query {query.checkpoint}"] = _query(query)
    if snapshot.position is not None:
        out["Saved (next offsets)"] = _offsets(snapshot.position)
    out["Acknowledged (next offsets)"] = _offsets(snapshot.sent)
    out["Open transactions"] = _writing(snapshot.writing, names)
    for place, (rows, before) in snapshot.handed.items():
        began = "" if before is None else f", {before:,} before the batch"
        name = f" of {names.get(place, place)}" if len(snapshot.handed) > 1 else ""
        out[f"Rows counted by the row breakpoint{name}"] = f"{rows:,}{began}"
    return out


def _query(query: QueryState) -> str:
    text = f"planned {numbers(query.offsets)}, committed {numbers(query.commits)}"
    return text if query.ours else f"{text}; it does not read the source"


def _offsets(offsets: Offsets) -> str:
    """Return next offsets, `partition/offset`."""
    return ", ".join(few([f"{partition}/{offsets[partition]}" for partition in sorted(offsets)], PARTITIONS)) or "none"


BESIDE = {"": "tables beside the sinks", OFFSETS: "the table of offsets"}


def _writing(writing: Mapping[str, tuple[str, ...]], names: Mapping[str, str]) -> str:
    """Return how many in which sink, and what they do. A sink is kept by its place, which `names` has the name of."""
    texts = [
        f"{plural(len(statements), 'transaction')} in {BESIDE.get(sink, names.get(sink, sink))}: "
        f"{'; '.join(text[:120] for text in few(statements, 3))}"
        for sink, statements in writing.items()
        if statements
    ]
    return "; ".join(few(texts)) or "none"


def _names(folder: Path) -> dict[str, str]:
    """Return by place, what each sink is called."""
    found = {path.stem: _object(path).get("name") for path in _files(folder)}
    return {place: name for place, name in found.items() if isinstance(name, str) and name}


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir() or folder.is_symlink():
        return []
    paths = [path for path in folder.glob("*.json") if path.stem.isascii() and path.stem.isdigit()]
    return sorted(paths, key=lambda path: int(path.stem))[:MOST]


def _sinks(folder: Path) -> dict[str, str]:
    """Return how many rows each sink had. By place, since two sinks may have one name."""
    out = {}
    for path in _files(folder):
        about = _object(path)
        rows = about.get("rows", "not readable")
        text = f"not readable: {about['unreadable']}" if about.get("unreadable") else str(rows)
        out[f"Rows in sink {int(path.stem) + 1}, {about.get('name', 'without a name')}"] = text
    return out


def _baseline_run(folder: Path) -> BaselineText:
    run = _object(folder / "run.json")
    outcome = run.get("outcome")
    if not isinstance(outcome, dict):
        outcome = {}
    seconds = outcome.get("seconds", run.get("seconds"))
    ended = "no: it ended in an error" if outcome.get("error") else _yes_or_no(outcome.get("caught_up"))
    return BaselineText(
        name=folder.name,
        seconds=f"{seconds:.1f}" if isinstance(seconds, (int, float)) else NOTHING,
        cached=_yes_or_no(run.get("cached", outcome.get("cached"))),
        caught_up=ended,
    )


def _yes_or_no(value: Any) -> str:
    if not isinstance(value, bool):
        return "not said"
    return "yes" if value else "no"


def _object(path: Path) -> dict[str, Any]:
    """Return a JSON object from a file; empty if there is none to read."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
