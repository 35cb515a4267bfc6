"""The source `record_log`: numbered records, for a reader of the program's own, such as a Python data source.

Spark writes down what such a reader calls its offset: any JSON that it likes. The scenario says where in it the number
of the next record stands; then a batch is the records between two such numbers. Nothing else about the reader is known
here, nor has to be: one that goes back, or passes records over, says so in its own offsets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from harness.checkpoint import Offsets
from harness.errors import HarnessError
from harness.fields import values as v
from harness.fields.shape import Shape
from harness.kinds import About, Refusal, Refusals
from harness.resources import Resources, part
from harness.scenario import Input
from harness.sources.base import OpenSource
from harness.sources.lines import NO_LINE, OwnSender, is_line
from harness.workloads.base import Record

if TYPE_CHECKING:
    # Scenario files are read without what serves, or writes a ledger.
    from harness.components.record_log.server import RecordLog
    from harness.run_folder.ledger import Answer

LABEL = "record_log"
OFFSET = "offset"


class Numbered(Shape):
    """Where the number is in what the reader calls its offset."""

    offset: Annotated[
        v.Line,
        Field(OFFSET, description="the key in the reader's offset, `a.b` for one within another, with the next number"),
    ]
    inclusive: Annotated[
        v.Flag, Field(False, description="true: it is the number of the last record, not of the next one")
    ]


@dataclass(frozen=True)
class OpenLog(OwnSender):
    """The log of one run; it is its own sender."""

    server: RecordLog
    offset: str = OFFSET
    inclusive: bool = False

    def offsets(self, line: str, log: Path) -> Offsets | None:
        """Return the number in a reader's offset; None where it has no such key, and so is another source's. Raises
        HarnessError for what is no number of a record."""
        try:
            found: Any = json.loads(line)
        except ValueError:
            return None
        for key in self.offset.split("."):
            if not isinstance(found, dict) or key not in found:
                return None
            found = found[key]
        number = found + self.inclusive if isinstance(found, int) and not isinstance(found, bool) else -1
        # Records are in the log before a reader can know of them.
        if not 0 <= number <= len(self.server):
            last = " of the last record" if self.inclusive else " of the next record"
            request = f"asked for the number{last} at `{self.offset}` of the reader's offset"
            raise HarnessError(f"{request}; saw {line.strip()[:200]}, and there are {len(self.server)} records")
        return {0: number}

    def begins(self, checkpoint: Path) -> Offsets:
        """A reader that begins elsewhere passes over what is before."""
        return {0: 0}

    def numbered(self) -> int:
        """Return how many there are."""
        return len(self.server)

    def send(self, records: Sequence[Record]) -> list[Answer]:
        """A record that would be no line is refused."""
        from harness.run_folder.ledger import Answer, State

        good = [record for record in records if is_line(record.value)]
        first = self.server.append([record.value for record in good])
        numbers = {record.seq: first + at for at, record in enumerate(good)}
        return [
            Answer(record.seq, State.ACKNOWLEDGED, 0, numbers[record.seq])
            if record.seq in numbers
            else Answer(record.seq, State.FAILED, error=NO_LINE)
            for record in records
        ]


class RecordLogSource:
    """Read by a reader of the program's own."""

    about = About(
        name="record_log",
        summary="records numbered from 0, served at {record_log.url}, for a Python data source or a receiver of one's "
        "own",
        example="{source: record_log, offset: position}",
        options=Numbered,
    )

    receiver = True

    def requested_parts(self, given: Input) -> Mapping[str, Mapping[str, Any]]:
        """Return a log."""
        return {LABEL: {}}

    def refusals(self, options: Mapping[str, Any], records: int | None) -> Refusals:
        """Each part of `offset` is a key."""
        if not all(str(options.get("offset", OFFSET)).split(".")):
            yield Refusal("offset", "has to have a key before and after each dot")

    def unread_by_time(self, options: Mapping[str, Any]) -> Refusals:
        """Spark keeps no offset of a receiver."""
        for key, default in ((OFFSET, OFFSET), ("inclusive", False)):
            if options.get(key, default) != default:
                yield Refusal(key, "is for a reader whose offset Spark keeps; a receiver numbers its blocks")

    def open(self, given: Input, own: Mapping[str, Resources]) -> OpenSource:
        """Return the log."""
        options = given.source_options
        return OpenLog(part(own, LABEL).at, str(options.get("offset", OFFSET)), bool(options.get("inclusive", False)))


KIND = RecordLogSource()
