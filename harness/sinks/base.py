"""What a sink is made of: a place that the pipeline writes to, and how it is read back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from harness.checkers.cells import Row
from harness.checkers.schema_check import Column
from harness.context import RowBreakpoint
from harness.errors import UsageError
from harness.kinds import About, Refusals
from harness.resources import Parts, Resources
from harness.scenario import Sink

if TYPE_CHECKING:
    from harness.sinks.table import SinkColumn, SinkTable


class Missing(UsageError):
    """A sink that is not there, or not yet."""


class Unmade(UsageError):
    """A sink that is there and asks for something that is not, such as a function: a pipeline may make that at its
    start."""


class Reading(NamedTuple):
    """What is read of a sink at one time: columns, canonical rows in parts, and, asked last, whether it lets no two
    rows have one key. `version` is what a sink that keeps versions calls the one that was read. `dropped`, asked when
    all parts are read, has the rows that were left out as repetitions; None where none are, or they were not kept."""

    columns: tuple[SinkColumn, ...]
    parts: Iterator[list[Row]]
    unique: Callable[[], bool]
    version: str = ""
    dropped: Callable[[], list[Row] | None] = lambda: None


@dataclass(frozen=True)
class Writer:
    """A transaction that is open and has written into a table. No backend: it is prepared."""

    backend: int | None
    table: int
    statement: str


def statements(writers: Iterable[Writer]) -> tuple[str, ...]:
    """Return what they do, each once."""
    return tuple(dict.fromkeys(writer.statement for writer in writers))


class OpenSink(Protocol):
    """One sink of a run. Each of these raises StackError if its server does not answer, Missing if it is not there.
    Each raises UsageError if it is wrong or cannot be compared."""

    def columns(self) -> tuple[SinkColumn, ...]:
        """Return its columns, without the rows."""

    def reading(self, *, wait_ms: int = 0) -> AbstractContextManager[Reading]:
        """Return its columns and rows, all as of one time, in bounded memory. With `wait_ms`, also raises UsageError
        where readers are kept out for longer."""

    def mark(self) -> str:
        """Return a cheap fingerprint, to see whether it still changes; one that is not there yet has one too."""

    def busy(self) -> str:
        """Return what its server still works on for a pipeline, shortened; empty if nothing."""


class SinkKind(Protocol):
    """A kind of sink: a key under `sink`, which is one of its model's."""

    @property
    def about(self) -> About:
        """Who it is."""

    @property
    def component(self) -> str:
        """What it is in; empty if it needs none."""

    @property
    def unread(self) -> str:
        """Why it cannot be read back; empty if it can."""

    def refusals(self, options: Mapping[str, Any]) -> Refusals:
        """Return what is wrong with its own keys of the file."""

    def open(self, sink: Sink, own: Mapping[str, Resources]) -> OpenSink:
        """Return the sink of one run; `own` is what the run was given, by label. Raises NotGiven where it was given
        none."""


@runtime_checkable
class Queries(Protocol):
    """A kind whose target may be a query."""

    def query(self, target: str) -> str | None:
        """Return the query; None if the target is none."""


@runtime_checkable
class MakesPart(Protocol):
    """A kind whose sink is a part of its component by itself, which its target names."""

    def requested_parts(self, sink: Sink) -> Parts:
        """Return the part that a run needs, by its label, and what is asked of it."""


@runtime_checkable
class CallsCode(Protocol):
    """A kind whose sinks the user's own code reads. `folders` are searched for it, in order."""

    def wrong_in(self, target: str, folders: Sequence[Path]) -> str:
        """Return why the code of this target cannot be called; empty if nothing shows before the call."""

    def files(self, target: str, folders: Sequence[Path]) -> Sequence[Path]:
        """Return the files that decide how it is read, as far as they are known. Raises UsageError if one is
        missing."""

    def request(self, sink: Sink, folders: Sequence[Path]) -> Mapping[str, Any]:
        """Return what the sink's part of its component has to provide; the requests of several sinks are merged."""


@runtime_checkable
class DropsRows(Protocol):
    """A kind that can leave out rows which repeat others, where its options say so."""

    def folds(self, options: Mapping[str, Any]) -> bool:
        """Return whether they do."""


@runtime_checkable
class NamesColumns(Protocol):
    """A kind whose columns the scenario can name, each with its type."""

    def declared_columns(self, options: Mapping[str, Any]) -> Sequence[Column]:
        """As they are compared; none where only the sink itself knows them."""


@runtime_checkable
class CountsRows(Protocol):
    """A kind whose rows can be counted as they are written: such a sink, once it is open, `HoldsWriter`."""

    def countable(self, target: str) -> bool:
        """Return whether they can, of this sink."""


@dataclass(frozen=True)
class CommitLog:
    """Where a sink's commits are files: in `folder`, which lies below `root` and need not be there yet. `becomes` gives
    the name that a temporary file is renamed to; None for a file that is none."""

    root: Path
    folder: Path
    becomes: Callable[[Path], str | None]


@runtime_checkable
class CommitsByRename(Protocol):
    """A kind whose commits show as they are written: their tasks are done, and a file that names what they wrote is
    renamed."""

    def commit_log(self, sink: Sink, own: Mapping[str, Resources]) -> CommitLog:
        """Of one run. Raises NotGiven where it was given none."""


@runtime_checkable
class KeepsRows(Protocol):
    """A sink that may never lose or change a row that is committed: one that cannot be read exactly now never can."""

    @property
    def keeps_rows(self) -> bool:
        """Return whether it does."""


@runtime_checkable
class HoldsWriter(Protocol):
    """A sink that can count its rows and hold their writer."""

    def is_table(self) -> bool:
        """Return whether it is there, as a table whose rows can be counted. Raises StackError."""

    def row_breakpoint(self) -> RowBreakpoint:
        """Count from now on. Raises SetupError."""


@runtime_checkable
class ShowsWriters(Protocol):
    """A sink that knows who has written into it and not committed."""

    @property
    def server(self) -> str:
        """Where it is, unlike any other kind's: a server may have several sinks."""

    def writing(self, *, wait_ms: int) -> tuple[list[Writer], list[Writer]]:
        """Return who has written into what it reads, and who into anything of the run. Raises HarnessError."""


@runtime_checkable
class MayFold(Protocol):
    """A sink that may hide a row that is there twice, and can be tried."""

    @property
    def server(self) -> str:
        """Where it is, unlike any other kind's: a server may have several sinks."""

    def tried(self, table: SinkTable, *, after: int | None) -> SinkTable:
        """Return the table with `folds` and `folding` filled in. `after` is what `now` said before the pipeline
        started, of one that `MarksTime`."""


@runtime_checkable
class MarksTime(MayFold, Protocol):
    """One that is tried on what the run has written."""

    def now(self) -> int | None:
        """Return a mark in time: what the run writes comes after it. None if there is no answer."""
