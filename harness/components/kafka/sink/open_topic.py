"""The topic of a sink, where it can be reached."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from harness.components.kafka.run_topic import Topic
from harness.components.kafka.sink import reading
from harness.components.kafka.sink.rows import columns_of
from harness.sinks.base import Reading, Writer, statements
from harness.sinks.json_columns import Wanted
from harness.sinks.table import SinkColumn, SinkTable


@dataclass(frozen=True, kw_only=True)
class OpenTopic:
    """The topic of one sink of a run. `identity` are the columns of which a record may be dropped that repeats them,
    `server` is the label of the topic's part."""

    own: Topic
    wanted: tuple[Wanted, ...]
    identity: tuple[str, ...]
    server: str

    @property
    def keeps_rows(self) -> bool:
        """A topic is only appended to."""
        return True

    def columns(self) -> tuple[SinkColumn, ...]:
        """Return the columns that the scenario names, since a topic has none."""
        return columns_of(self.wanted)

    def reading(self, *, wait_ms: int = 0) -> AbstractContextManager[Reading]:
        """Return its records. Nothing keeps a reader of committed records out."""
        return reading.reading(self.own, self.wanted, self.identity)

    def mark(self) -> str:
        """Return where its partitions end."""
        return reading.mark(self.own)

    def busy(self) -> str:
        """Return a transaction that is open in it."""
        return next(iter(statements(reading.writing(self.own))), "")

    def now(self) -> int | None:
        """Nothing is tried on copies, so nothing needs it."""
        return None

    def tried(self, table: SinkTable, *, after: int | None) -> SinkTable:
        """A record that repeats an identity never shows: that needs no trial."""
        if table.unreadable or not self.identity:
            return table
        words = f"a record that repeats the {', '.join(self.identity)} of one before it is dropped"
        return replace(table, folds=True, folding=words)

    def writing(self, *, wait_ms: int) -> tuple[list[Writer], list[Writer]]:
        """Return who has written into it and not committed: the topic is all that there is in this part of the run."""
        found = reading.writing(self.own)
        return found, found
