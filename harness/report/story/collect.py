"""What a run folder holds of one record or row: how it was sent and answered; where it lies; which batches held it;
which attempts worked on them; what `expected` and the sinks hold of it; the findings that name it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from harness import history
from harness.checkers.cells import Row
from harness.checkers.closed_windows import Placed
from harness.checkers.compare import key_of
from harness.errors import UsageError
from harness.judge.read_folder import Run, read_run
from harness.ledger import Ledger
from harness.report.escape import visible
from harness.report.story.record_key import FORMS, RecordKey, parsed
from harness.report.story.views import View, views
from harness.report.timeline.from_history import Happened, Work, happened
from harness.run_folder import ledger as recorded
from harness.run_folder.store import RunFolder
from harness.scenario import Finding, Sink, Verdict
from harness.sinks.names import sink_names
from harness.sinks.table import SinkTable, load

MOST_RECORDS = 20
"""Records that are shown for one key; the others are counted."""
Place = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Held:
    """One batch that held a record, and what the history has of each attempt's work on it."""

    query: str
    batch: int
    committed: bool
    attempts: tuple[int, ...]
    works: tuple[Work, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Record:
    """One record. `sent` are the seconds between which it was counted as sent; what is None is not known."""

    place: Place | None
    seq: int | None = None
    timestamp_ms: int | None = None
    value: bytes | None = None
    answer: str = ""
    error: str | None = None
    answered: Place | None = None
    sent: tuple[float | None, float] | None = None
    batches: tuple[Held, ...] = ()
    windows: tuple[tuple[str, Placed | str], ...] = ()
    """By sink with a watermark, what became of it there, or why that is not known."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """The rows of one key in one sink. `held` is None if the sink could not be read; `unread` says why. `unknown`: why
    it is not known what the sink should hold."""

    sink: str
    key: Mapping[str, str | None]
    columns: tuple[str, ...]
    expected: tuple[Row, ...] = ()
    held: tuple[Row, ...] | None = None
    held_columns: tuple[str, ...] = ()
    unread: str = ""
    unknown: str = ""
    folded: bool = False
    """`expected` folds several records into one row."""
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Story:
    """All that is known of one key. `traced`: the records are known; they are not if the key is no ledger column."""

    key: str
    verdict: Verdict | None
    records: tuple[Record, ...] = ()
    more: int = 0
    traced: bool = True
    rows: tuple[Rows, ...] = ()


def collected(folder: RunFolder, text: str) -> Story:
    """Return the story of KEY `text`. Raises UsageError if the run holds nothing of it, HarnessError for damage."""
    wanted, run = parsed(text), read_run(folder.path)
    verdict = folder.verdict()
    steps = verdict.steps if verdict else run.steps
    past = happened(list(history.read(folder.history)) if folder.history.is_file() else [], steps)
    book = _Book(folder, run, past)
    with views(run) as seen:
        found = _places(wanted, run, seen, book)
        rows = tuple(_rows(run, seen, verdict, found.keys))
    known = any(each.expected or each.held or each.findings or each.unknown for each in rows)
    if not found.places and not known and not found.unsent:
        raise UsageError(_nothing(text, run))
    records = [
        replace(book.record(place), windows=tuple(_windows(run, seen, place))) for place in found.places[:MOST_RECORDS]
    ]
    return Story(
        key=text,
        verdict=verdict,
        records=(*records, *(book.unplaced(seq) for seq in found.unsent)),
        more=max(0, len(found.places) - MOST_RECORDS),
        traced=found.traced,
        rows=tuple(
            each for each in rows if each.expected or each.held or each.findings or each.unknown or found.places
        ),
    )


@dataclass(frozen=True, kw_only=True)
class _Found:
    places: list[Place]
    keys: dict[int, tuple[str | None, ...]]
    traced: bool = True
    unsent: tuple[int, ...] = ()


def _nothing(text: str, run: Run) -> str:
    keys = [", ".join(sink.key) or "all columns" for sink in run.scenario.sinks]
    name = visible(text, 80)
    saw = f"the run in {run.folder} has no such record and no such row"
    return f"asked for {name}; {saw}. Its keys: {'; '.join(keys)}. {FORMS}"


def _places(wanted: RecordKey, run: Run, seen: Sequence[View], book: _Book) -> _Found:
    """Return the records that are meant, and by sink the key that they have there."""
    if wanted.seq is not None or wanted.place is not None:
        places = book.of_seq(wanted.seq) if wanted.seq is not None else book.at(wanted.place)
        unsent = (wanted.seq,) if wanted.seq is not None and not places and book.meant(wanted.seq) else ()
        carried = {
            index: next((cells for cells, _ in _origins(sink, seen[index].ledger, places=set(places))), None)
            for index, sink in enumerate(run.scenario.sinks)
        }
        keys = {index: cells for index, cells in carried.items() if cells is not None}
        return _Found(places=places, keys=keys, unsent=unsent)
    keys = {}
    found: dict[Place, None] = {}
    traced = True
    for index, sink in enumerate(run.scenario.sinks):
        ledger = seen[index].ledger
        if key := wanted.key(names := _names(sink, ledger)):
            keys[index] = key
            traced = traced and set(names) <= set(ledger.columns())
            found |= {place: None for _, place in _origins(sink, ledger, key=key)}
    return _Found(places=sorted(found), keys=keys, traced=traced)


def _names(sink: Sink, ledger: Ledger) -> tuple[str, ...]:
    return sink.key or (ledger.shape(sink.expected)[0] if sink.expected else ())


def _origins(
    sink: Sink, ledger: Ledger, *, key: tuple[str | None, ...] | None = None, places: set[Place] | None = None
) -> Iterator[tuple[Row, Place]]:
    """Yield the records that carry a key, or the keys of records; none where the key is no column of the ledger."""
    names = _names(sink, ledger)
    if not names or not set(names) <= set(ledger.columns()):
        return
    try:
        for cells, partition, offset, _ in ledger.origins(names):
            if (key is not None and tuple(cells) == key) or (places is not None and (partition, offset) in places):
                yield cells, (partition, offset)
    except UsageError:
        # The ledger's column of that name is of a type that has no canonical text.
        return


def _windows(run: Run, seen: Sequence[View], place: Place) -> Iterator[tuple[str, Placed | str]]:
    for view, sink, name in zip(seen, run.scenario.sinks, sink_names(run.scenario.sinks), strict=True):
        if sink.watermark is not None:
            yield name, view.placed.get(place, view.unclear)


def _rows(
    run: Run, seen: Sequence[View], verdict: Verdict | None, keys: Mapping[int, tuple[str | None, ...]]
) -> Iterator[Rows]:
    names = sink_names(run.scenario.sinks)
    for index, key in keys.items():
        sink, ledger, unknown = run.scenario.sinks[index], seen[index].ledger, seen[index].unclear
        own = _names(sink, ledger)
        expected = ledger.table(sink.expected) if sink.expected and not unknown else None
        table = load(run.folder, index)
        columns = tuple(column.name for column in table.columns) if table else ()
        yield Rows(
            sink=names[index],
            key=dict(zip(own, key, strict=True)),
            columns=expected.columns if expected else (),
            expected=tuple(_having(expected.rows, expected.columns, own, key)) if expected else (),
            held=None if table is None or table.unreadable else tuple(_having(table.rows, columns, own, key)),
            held_columns=columns,
            unread=_unread(table),
            unknown=unknown,
            folded=bool(sink.expected) and ledger.aggregates(sink.expected or ""),
            findings=tuple(
                finding
                for finding in (verdict.findings if verdict else ())
                if finding.position == index and tuple(finding.key.get(name) for name in own) == key
            ),
        )


def _unread(table: SinkTable | None) -> str:
    return "it was never read" if table is None else table.unreadable


def _having(
    rows: Sequence[Row], columns: Sequence[str], names: Sequence[str], key: tuple[str | None, ...]
) -> Iterator[Row]:
    if set(names) <= set(columns):
        places = [list(columns).index(name) for name in names]
        yield from (row for row in rows if key_of(row, places) == key)


class _Book:
    """The ledger's two halves, asked by place and by number."""

    def __init__(self, folder: RunFolder, run: Run, past: Happened) -> None:
        self._run, self._past = run, past
        self._source = recorded.read_source(run.source) if run.source.is_file() else recorded.SOURCE.empty_table()
        self._attempts = _attempts(folder.attempts)

    def at(self, place: Place | None) -> list[Place]:
        """Return the place itself, if a record lies there."""
        return [place] if place is not None and self._row(place) else []

    def of_seq(self, seq: int) -> list[Place]:
        """Return where the record of that number lies: by what the source says, or by the answer to its send."""
        found = self._source.filter(pc.equal(self._source["seq"], seq))
        places = list(zip(found["partition"].to_pylist(), found["offset"].to_pylist(), strict=True))
        answered = self._answer(seq).get("offset")
        if not places and answered is not None:
            places = self.at((self._answer(seq)["partition"], answered))
        return places

    def meant(self, seq: int) -> bool:
        """Return whether a record of that number was to be sent."""
        return bool(self._answer(seq))

    def record(self, place: Place) -> Record:
        """Return everything about the record at that place."""
        row = self._row(place)
        seq = row.get("seq")
        answer = self._answer(seq) if seq is not None else self._answered_at(place)
        return self._record(row, answer, place)

    def unplaced(self, seq: int) -> Record:
        """Return everything about a record that is not in the source."""
        return self._record({"seq": seq}, self._answer(seq), None)

    def _record(self, row: Mapping[str, Any], answer: Mapping[str, Any], place: Place | None) -> Record:
        seq = row.get("seq") if row.get("seq") is not None else answer.get("seq")
        answered = (answer["partition"], answer["offset"]) if answer.get("offset") is not None else None
        return Record(
            place=place,
            seq=seq,
            timestamp_ms=row.get("timestamp_ms"),
            value=row.get("value"),
            answer=str(answer.get("state", "")),
            error=answer.get("error"),
            answered=answered,
            sent=self._sent(seq),
            batches=tuple(self._batches(place)) if place is not None else (),
        )

    def _row(self, place: Place) -> dict[str, Any]:
        mine = pc.and_(pc.equal(self._source["partition"], place[0]), pc.equal(self._source["offset"], place[1]))
        rows: list[dict[str, Any]] = self._source.filter(mine).slice(0, 1).to_pylist()
        return rows[0] if rows else {}

    def _answer(self, seq: int) -> dict[str, Any]:
        return _first(self._attempts, pc.equal(self._attempts["seq"], seq))

    def _answered_at(self, place: Place) -> dict[str, Any]:
        same = pc.and_(pc.equal(self._attempts["partition"], place[0]), pc.equal(self._attempts["offset"], place[1]))
        return _first(self._attempts, same)

    def _sent(self, seq: int | None) -> tuple[float | None, float] | None:
        """Between which counts of the producer it was sent: it sends in the order of the numbers."""
        if seq is None:
            return None
        rank = pc.sum(pc.less_equal(self._attempts["seq"], seq)).as_py() or 0
        before: float | None = None
        for seconds, count in self._past.sent:
            if count >= rank > 0:
                return before, seconds
            before = seconds
        return None

    def _batches(self, place: Place) -> Iterator[Held]:
        partition, offset = place
        for query in self._run.progressed.queries:
            for batch in query.batches:
                first, end = batch.ranges.get(partition, (0, 0))
                if query.ours and first <= offset < end:
                    works = [
                        work for work in self._past.works if (work.query, work.batch) == (query.checkpoint, batch.batch)
                    ]
                    seen = tuple(sorted({*batch.attempts, *(work.attempt for work in works)}))
                    yield Held(
                        query=query.checkpoint,
                        batch=batch.batch,
                        committed=batch.committed,
                        attempts=seen,
                        works=tuple(works),
                    )


def _attempts(path: Path) -> pa.Table:
    """Return the first half; nothing where a run ended before it had one."""
    if path.is_file():
        return recorded.read(path).table
    names = {"seq": pa.int64(), "partition": pa.int32(), "offset": pa.int64(), "state": pa.string()}
    return pa.table({name: pa.array([], kind) for name, kind in names.items()})


def _first(table: pa.Table, test: Any) -> dict[str, Any]:
    rows: list[dict[str, Any]] = table.filter(test).slice(0, 1).to_pylist()
    return rows[0] if rows else {}
