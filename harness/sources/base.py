"""What a source is made of: it takes the records of a run, is read back as committed, and
knows its own offsets in Spark's checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from harness.checkpoint import Offsets
from harness.kinds import About, Refusals
from harness.resources import Resources
from harness.scenario import Input
from harness.workloads.base import Record

if TYPE_CHECKING:
    # Scenario files are read without what reads tables.
    from harness.run_folder.ledger import Answer


class Sender(Protocol):
    """An open connection by which a source takes records."""

    def placed(self, record: Record) -> Record:
        """Return the record with the partition that it will be sent to, the same in every run of one seed."""

    def send(self, records: Sequence[Record]) -> list[Answer]:
        """Send them; the answer to each, in order. Where none came, it is unknown, and the record is never sent later.
        Takes bounded time, also where a server is silent."""

    def close(self) -> None:
        """Disconnect. Safe to call twice."""


@runtime_checkable
class TellsUnmet(Protocol):
    """A sender that was asked for more than to send records: to change what it has sent, say."""

    @property
    def unmet(self) -> str:
        """Once it is closed: why the input was not as it was asked for; empty if it was."""


class OpenSource(Protocol):
    """The source of one run."""

    def offsets(self, line: str, log: Path) -> Offsets | None:
        """Return the offsets of this source in a line of Spark's offset log; None if the line is about something else.
        Spark keeps a separate log for each source, in the folder `log`."""

    def sender(self) -> Sender:
        """By which records are sent, connected. Raises StackError."""

    def ends(self) -> Offsets:
        """Return the next offset of each partition. Raises StackError."""

    def read_back(self, path: Path, *, within_s: float) -> Offsets:
        """Write all that is committed to `path` (source.parquet); the next offset of each partition. Call it when no
        producer sends any more. Raises WaitError, StackError, HarnessError."""


@runtime_checkable
class BeginsWithInput(Protocol):
    """A source that shows a query only once there is something to read: it is fed before the query has begun."""

    @property
    def begins_with_input(self) -> bool:
        """Whether it is so."""


@runtime_checkable
class RefusesOptions(Protocol):
    """A kind of source whose options may not fit together."""

    def refusals(self, options: Mapping[str, Any], records: int | None) -> Refusals:
        """Return what cannot be; `records` are to be sent, if the file says how many."""


@runtime_checkable
class TellsBeginning(Protocol):
    """A source of which Spark keeps no separate log, so nothing says where it began."""

    def begins(self, checkpoint: Path) -> Offsets:
        """Return where it begins in that checkpoint, which may be that of a query that reads something else."""


@runtime_checkable
class ForDStreams(Protocol):
    """A kind of source that programs of DStreams can read, and whose part in their checkpoints is known. `receiver`: it
    is read by one, which stores blocks."""

    receiver: bool

    def unread_by_time(self, options: Mapping[str, Any]) -> Refusals:
        """Return which of the source's own keys go with no such program."""


@runtime_checkable
class TellsReceived(Protocol):
    """A source whose records a receiver of DStreams stores in blocks."""

    def received(self) -> Sequence[tuple[float, int, int]]:
        """Return each connection of a receiver, in order: since when (ms since 1970), and what of partition 0 was sent
        on it: from, and up to. Raises HarnessError where it is not known which of them is whose."""


@runtime_checkable
class TellsNumbers(Protocol):
    """A source of numbered records, of which a receiver of DStreams gives with each block the number of the first."""

    def numbered(self) -> int:
        """Return how many records there are: the number that the next one will have."""


@runtime_checkable
class TellsFiles(Protocol):
    """A source of files, each of which is one partition."""

    def in_file(self, uri: str) -> tuple[int, int] | None:
        """Return which partition a file is, and how many records it has; None for one of another folder."""


class SourceKind(Protocol):
    """A kind of source."""

    @property
    def about(self) -> About:
        """Who it is."""

    def requested_parts(self, given: Input) -> Mapping[str, Mapping[str, Any]]:
        """Return the parts that it needs, by label, and what of each."""

    def open(self, given: Input, own: Mapping[str, Resources]) -> OpenSource:
        """Return the source of a run, which was given these parts. Raises NotGiven."""
