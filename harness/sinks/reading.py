"""Reads back what the sinks of a run hold, and keeps it in the run folder.

`own` is what the run was given, by label, as `harness.resources.RunResources.parts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from harness.checkers.cells import Row
from harness.errors import UsageError
from harness.resources import NotGiven, Resources
from harness.scenario import Sink
from harness.sinks import SINKS
from harness.sinks.base import MarksTime, MayFold, Missing, OpenSink, Reading
from harness.sinks.table import FINGERPRINTS, SinkColumn, SinkTable, fingerprint, save, save_parts


def opened(sink: Sink, own: Mapping[str, Resources]) -> OpenSink | None:
    """Return the sink of a run; None for one that cannot be read back, or that the run was given no server for."""
    kind = SINKS[sink.kind]
    if kind.unread:
        return None
    with suppress(NotGiven):
        return kind.open(sink, own)
    return None


def read(sink: Sink, own: Mapping[str, Resources]) -> SinkTable:
    """Return all rows of a sink. One that is not there, or holds what cannot be compared, comes back `unreadable`, with
    the reason. Raises StackError if its server does not answer."""
    about = _about(sink)
    if about.unreadable:
        return about
    try:
        with SINKS[sink.kind].open(sink, own).reading() as found:
            rows = [row for part in found.parts for row in part]
            known = replace(about, columns=found.columns, version=found.version, dropped=found.dropped())
            return replace(known, rows=rows, unique=found.unique())
    except UsageError as failure:
        return replace(about, unreadable=str(failure), absent=isinstance(failure, Missing))


def store(
    folder: Path, index: int, sink: Sink, own: Mapping[str, Resources], *, after: Mapping[str, int] | None = None
) -> None:
    """Read all rows of a sink and write them into `folder` as `save` does, a part at a time; with `after`, also what
    `tried` says. One that is not there, or holds what cannot be compared, is kept as unreadable. Raises HarnessError
    if its server or the disk does not answer."""
    about = _about(sink)
    try:
        if not about.unreadable:
            with SINKS[sink.kind].open(sink, own).reading() as found:
                known = replace(about, columns=found.columns, version=found.version)
                save_parts(folder, index, known, found.parts, end=lambda table: _last(sink, table, found, own, after))
            return
    except UsageError as failure:
        about = replace(about, unreadable=str(failure), absent=isinstance(failure, Missing))
    save(folder, index, about if after is None else tried(sink, about, own, after=after))


def _last(
    sink: Sink, table: SinkTable, found: Reading, own: Mapping[str, Resources], after: Mapping[str, int] | None
) -> SinkTable:
    table = replace(table, unique=found.unique(), dropped=found.dropped())
    return table if after is None else tried(sink, table, own, after=after)


def columns(sink: Sink, own: Mapping[str, Resources]) -> tuple[SinkColumn, ...] | None:
    """Return the columns of a sink without its rows; None if it is not there yet, or cannot be read back.

    Raises StackError, or UsageError for a wrong query or a column that cannot be compared."""
    if SINKS[sink.kind].unread:
        return None
    try:
        return SINKS[sink.kind].open(sink, own).columns()
    except Missing:
        return None


def keep(folder: Path, index: int, sink: Sink, own: Mapping[str, Resources], *, rows_max: int, wait_ms: int) -> int:
    """Read a sink as it stands and write it into `folder` as `save` does, in bounded memory: beyond `rows_max` rows
    only their fingerprints. Returns how many rows there are. One that cannot be read, also because readers were kept
    out for `wait_ms`, is kept as unreadable. Raises HarnessError if its server or the disk does not answer."""
    about = _about(sink)
    if about.unreadable:
        save(folder, index, about)
        return 0
    try:
        with SINKS[sink.kind].open(sink, own).reading(wait_ms=wait_ms) as found:
            about = replace(about, columns=found.columns, version=found.version)
            held: list[Row] = []
            for part in found.parts:
                held += part
                if len(held) > rows_max:
                    return _keep_prints(folder, index, about, sink.key, chain([held], found.parts))
            about = replace(about, dropped=found.dropped())
        save(folder, index, replace(about, rows=held))
        return len(held)
    except UsageError as failure:
        absent = isinstance(failure, Missing)
        save(folder, index, replace(about, columns=(), version="", unreadable=str(failure), absent=absent))
        return 0


def _keep_prints(folder: Path, index: int, about: SinkTable, key: tuple[str, ...], parts: Iterator[list[Row]]) -> int:
    places = [at for at, column in enumerate(about.columns) if column.name in key]
    columns = (*(about.columns[at] for at in places), SinkColumn(name="fingerprint", type="text", family="text"))
    prints = ([(*(row[at] for at in places), fingerprint(row)) for row in part] for part in parts)
    return save_parts(folder, index, replace(about, columns=columns, form=FINGERPRINTS), prints)


def _about(sink: Sink) -> SinkTable:
    """Return what is known of it before it is read."""
    return SinkTable(name=sink.name, kind=sink.kind, target=sink.target, unreadable=SINKS[sink.kind].unread)


def mark(sink: Sink, own: Mapping[str, Resources]) -> str:
    """Return a cheap fingerprint of a sink, to see whether it still changes. Raises StackError, or UsageError for a
    wrong query."""
    kind = SINKS[sink.kind]
    return kind.about.name if kind.unread else kind.open(sink, own).mark()


def busy(sink: Sink, own: Mapping[str, Resources]) -> str:
    """Return what the sink's server still works on for a pipeline, shortened; empty if nothing. Raises StackError."""
    kind = SINKS[sink.kind]
    return "" if kind.unread else kind.open(sink, own).busy()


def since(sinks: Sequence[Sink], own: Mapping[str, Resources]) -> dict[str, int]:
    """Return by server that holds a sink, a mark in time: what the run writes comes after it. Left out: one that does
    not answer."""
    found: list[Any] = [opened(sink, own) for sink in sinks]
    there: dict[str, MarksTime] = {each.server: each for each in found if isinstance(each, MarksTime)}
    marks = {server: each.now() for server, each in there.items()}
    return {server: now for server, now in marks.items() if now is not None}


def tried(sink: Sink, table: SinkTable, own: Mapping[str, Resources], *, after: Mapping[str, int]) -> SinkTable:
    """Return the same table with `folds` and `folding` filled in, if it is what a query shows. `after` is what `since`
    said before the pipeline started."""
    found = opened(sink, own)
    return found.tried(table, after=after.get(found.server)) if isinstance(found, MayFold) else table
