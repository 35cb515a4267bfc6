"""What a source is made of: it takes the records of a run, and is read back as committed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from harness.checkpoint import Offsets
from harness.kinds import About
from harness.resources import Resources
from harness.run_folder.ledger import Attempts
from harness.scenario import Input
from harness.workloads.base import Workload


class Producer(Protocol):
    """Sends the records of a workload in order. `total` is how many there are."""

    total: int

    @property
    def sent(self) -> int:
        """Records taken, sent and answered one way or another."""

    @property
    def acknowledged(self) -> int:
        """Of these, the ones that the source has for certain."""

    @property
    def reached(self) -> Mapping[int, int]:
        """Next offsets by partition, as far as records were acknowledged. Never changes once it was given out."""

    @property
    def done(self) -> bool:
        """True once every record was sent and answered."""

    def send(self, n: int) -> int:
        """Take the next `n` records, or those that are left; returns how many, once the ledger holds their answers.
        Raises HarnessError if the ledger cannot be written."""

    def close(self) -> None:
        """Disconnect, and take no more records. Safe to call twice."""


class OpenSource(Protocol):
    """The source of one run."""

    @property
    def name(self) -> str:
        """What Spark's offset files call it."""

    def producer(self, workload: Workload, attempts: Attempts) -> Producer:
        """Who sends the workload, each answer into `attempts`. Raises StackError."""

    def ends(self) -> Offsets:
        """The next offset of each partition. Raises StackError."""

    def read_back(self, path: Path, *, within_s: float) -> Offsets:
        """Write all that is committed to `path` (source.parquet); the next offset of each partition. Call it when
        nobody sends any more. Raises WaitError, StackError, HarnessError."""


class SourceKind(Protocol):
    """A kind of source."""

    @property
    def about(self) -> About:
        """Who it is."""

    def asks(self, given: Input) -> Mapping[str, Mapping[str, Any]]:
        """The parts that it needs, by label, and what of each."""

    def open(self, given: Input, own: Mapping[str, Resources]) -> OpenSource:
        """The source of a run, which was given these parts. Raises NotGiven."""
