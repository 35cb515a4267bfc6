"""A record's story as lines for a terminal; data is made visible and cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from harness.checkers.cells import Row
from harness.checkers.closed_windows import Placed
from harness.report.causes.headline import labels
from harness.report.causes.sentences import batches
from harness.report.escape import cell, plural, visible
from harness.report.failure_text import title
from harness.report.story.collect import Held, Record, Rows, Story
from harness.report.timeline.from_history import Work
from harness.scenario import Finding, Verdict

MOST_ROWS = 6
LEFT = 10


def lines(story: Story) -> list[str]:
    """Return the whole story as lines."""
    out = []
    for number, record in enumerate(story.records, 1):
        out += [*_record(record, number, len(story.records)), ""]
    if story.more:
        out += [f"and {plural(story.more, 'more record')} of this key", ""]
    if not story.records:
        why = "no record of the source has this key" if story.traced else "the key is no column of the ledger"
        out += [f"records: not known, {why}", ""]
    for rows in story.rows:
        out += [*_rows(rows, story.verdict), ""]
    word = story.verdict.word.value if story.verdict else "none: the run ended before it"
    return [*out, f"verdict of the run: {word}"]


def _line(name: str, text: str) -> str:
    return f"  {name.ljust(LEFT)} {text}"


def _record(record: Record, number: int, many: int) -> Iterator[str]:
    where = "not in the source" if record.place is None else f"partition {record.place[0]}, offset {record.place[1]}"
    which = f" {number} of {many}" if many > 1 else ""
    yield f"record{which}: {where}"
    yield _line("sent", _sent(record))
    yield _line("answer", _answer(record))
    if record.value is not None:
        yield _line("value", visible(record.value[:2000].decode("utf-8", "backslashreplace"), 300))
    if record.place is not None and not record.batches:
        yield _line("batch", "none of Spark's batches is known to have held it")
    for held in record.batches:
        yield from _held(held)
    for sink, window in record.windows:
        yield _line("window", f"{visible(sink, 100)}: {_window(window)}")


def _sent(record: Record) -> str:
    out = [] if record.seq is None else [f"as number {record.seq:,} of the input"]
    if record.sent is not None:
        before, by = record.sent
        out.append(f"by {by:.2f} s" if before is None else f"between {before:.2f} and {by:.2f} s of the run")
    if record.timestamp_ms is not None:
        out.append(f"its timestamp is {_instant(record.timestamp_ms)}")
    return "; ".join(out) or "nothing is recorded of it"


def _instant(milliseconds: int) -> str:
    try:
        return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms"


def _answer(record: Record) -> str:
    if not record.answer:
        return "no send of ours is recorded for it"
    where = f" at partition {record.answered[0]}, offset {record.answered[1]}" if record.answered else ""
    error = f": {visible(record.error, 300)}" if record.error else ""
    return f"{record.answer}{where}{error}"


def _held(held: Held) -> Iterator[str]:
    seen = ", ".join(map(str, held.attempts))
    who = f"seen in attempt{'' if len(held.attempts) == 1 else 's'} {seen}" if seen else "no attempt was seen at it"
    done = "committed in the end" if held.committed else "never committed"
    yield _line("batch", f"{held.batch} of {visible(held.query, 60)}: {who}; {done}")
    for work in held.works:
        yield _line("", f"  attempt {work.attempt}: {_worked(work)}")


def _worked(work: Work) -> str:
    known = (
        ("planned", work.planned),
        ("in the sink", work.in_sink),
        ("committed", work.committed),
        ("cut off by the driver's death", work.ended),
    )
    return ", ".join(f"{words} at {seconds:.2f} s" for words, seconds in known if seconds is not None)


def _window(window: Placed | str) -> str:
    if isinstance(window, str):
        return f"not known: {visible(window, 300)}" if window else "no batch was seen to write it"
    if window.late:
        return "does not count (`_late`): it had ended when the record came, and the watermark drops that"
    if window.open:
        return "does not count (`_open`): no watermark has closed it, and no batch wrote it"
    return "no batch was seen to write it" if window.batch is None else f"written by batch {window.batch}"


def _rows(rows: Rows, verdict: Verdict | None) -> Iterator[str]:
    key = ", ".join(f"{visible(name, 60)}={cell(value, 60)}" for name, value in rows.key.items())
    yield f"{visible(rows.sink, 100)}: {key}"
    if rows.folded:
        yield _line("expected", "folds several records into one row")
    should = f"not known: {visible(rows.unknown, 300)}" if rows.unknown else f"hold {plural(len(rows.expected), 'row')}"
    yield _line("should", should)
    yield from _each(rows.expected, rows.columns)
    if rows.held is None:
        yield _line("holds", f"not known: {visible(rows.unread, 300)}")
    else:
        yield _line("holds", plural(len(rows.held), "row"))
        yield from _each(rows.held, rows.held_columns)
    for finding in rows.findings:
        yield from _finding(finding, verdict)
    if not rows.findings:
        yield _line("finding", "none")


def _each(rows: Sequence[Row], columns: Sequence[str]) -> Iterator[str]:
    for row in rows[:MOST_ROWS]:
        cells = (f"{visible(name, 40)}={cell(value, 80)}" for name, value in zip(columns, row, strict=True))
        yield _line("", f"  {' '.join(cells)}")
    if len(rows) > MOST_ROWS:
        yield _line("", f"  and {plural(len(rows) - MOST_ROWS, 'more row')}")


def _finding(finding: Finding, verdict: Verdict | None) -> Iterator[str]:
    yield _line("finding", title(finding))
    if finding.batches:
        yield _line("made of", batches(finding.batches, finding.checkpoint))
    numbers = labels(verdict.steps) if verdict else {}
    for fault in finding.faults:
        step = f"fault {numbers[fault]}, " if fault in numbers else ""
        yield _line("cause", f"{step}{visible(fault, 200)}; baseline runs are without it")
    for fault in finding.fits:
        yield _line("cause", f"may be {visible(fault, 200)}; nothing tells which")
    if finding.without_faults:
        yield _line("cause", "no fault: every baseline run shows it too")
    if finding.note:
        yield _line("note", visible(finding.note, 400))
