"""The source `socket`: lines that are sent once, as Spark's socket source reads them.

All lines that were sent, on whichever connection, are one partition. Spark counts them from zero on each connection, so
what a number means depends on the connection. A checkpoint whose query connects a second time says nothing any more:
that is an error here, and Spark itself ends such a query ("Offsets committed out of order"). One that starts again
with each start goes with one connection: the first after its first batch, which Spark plans before it connects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from harness.checkpoint import Offsets
from harness.errors import HarnessError
from harness.fields.shape import Shape
from harness.kinds import About, Refusals
from harness.resources import Resources, part
from harness.scenario import Input
from harness.sources.base import OpenSource
from harness.sources.lines import NO_LINE, OwnSender, is_line
from harness.workloads.base import Record

if TYPE_CHECKING:
    # Scenario files are read without what sends, or writes a ledger.
    from harness.components.socket.server import LineServer
    from harness.run_folder.ledger import Answer

LABEL = "socket"
READER_S = 50.0
"""How long a portion waits for a reader: a restart takes some seconds, on a busy machine half a minute."""
NO_READER = f"no driver was connected for {READER_S:g} s"


@dataclass
class OpenSocket(OwnSender):
    """The port of one run; it is its own sender. `begun_s` is when each checkpoint planned its first batch."""

    server: LineServer
    begun_s: dict[Path, float] = field(default_factory=dict)

    def offsets(self, line: str, log: Path) -> Offsets | None:
        """A line of Spark's socket source is the number of the last line, from 0; -1 before the first. None for one of
        another form, and where no reader has connected yet. Raises HarnessError where it says nothing."""
        try:
            number = int(line)
        except ValueError:
            return None
        checkpoint = log.parents[1]
        base, end = self._offset_range(checkpoint)
        if not -1 <= number < end - base:
            sent = f"of the {end - base} that were sent to its driver"
            raise HarnessError(f"asked for the last line that a batch took, {sent}; {checkpoint.name} says {number}")
        return {0: base + number + 1}

    def begins(self, checkpoint: Path) -> Offsets:
        """With what was sent first on its connection."""
        return {0: self._offset_range(checkpoint)[0]}

    def received(self) -> Sequence[tuple[float, int, int]]:
        """Return what was sent on each connection."""
        if self.server.crowded:
            raise HarnessError("two readers were connected to the socket at once; give each program another run")
        known = self.server.connections()
        ends = [*(each.base for each in known[1:]), len(self.server)][: len(known)]
        return [(each.since_s * 1000, each.base, end) for each, end in zip(known, ends, strict=True)]

    def _offset_range(self, checkpoint: Path) -> tuple[int, int]:
        """Return from and up to where records were sent on a checkpoint's connection; empty before it has connected."""
        self._single(checkpoint)
        bases = [each.base for each in self._since(checkpoint)] + [len(self.server)]
        return bases[0], bases[min(1, len(bases) - 1)]

    def _since(self, checkpoint: Path) -> list[Any]:
        with suppress(OSError):
            begun_s = (checkpoint / "offsets" / "0").stat().st_mtime
            self.begun_s[checkpoint] = begun_s
        begun_s = self.begun_s.get(checkpoint, 0.0)
        return [each for each in self.server.connections() if each.since_s >= begun_s]

    def _single(self, checkpoint: Path) -> None:
        """Raises HarnessError if a query has connected twice, or two at once."""
        if self.server.crowded:
            raise HarnessError("two readers were connected to the socket at once; give each query another run")
        later = self._since(checkpoint)[1:2]
        try:
            planned = [path.stat().st_mtime for path in (checkpoint / "offsets").iterdir() if path.name.isdecimal()]
        except OSError:
            return
        if later and any(at_s > later[0].since_s for at_s in planned):
            words = (
                f"the query of {checkpoint.name} connected again, and Spark counts its lines from zero: it is not known"
            )
            cure = "Begin a new checkpoint with each start, or read a source that can be read again"
            raise HarnessError(f"{words} which lines its batches have. {cure}")

    def send(self, records: Sequence[Record]) -> list[Answer]:
        """To the driver that is connected. A record that would be no line is refused, and so is each that finds no
        driver in time."""
        from harness.run_folder.ledger import Answer, State

        deadline, out = monotonic() + READER_S, list[Answer]()
        for record in records:
            good = is_line(record.value)
            place = self.server.send(record.value, within_s=deadline - monotonic()) if good else None
            if place is None:
                out.append(Answer(record.seq, State.FAILED, error=NO_READER if good else NO_LINE))
            else:
                out.append(Answer(record.seq, State.ACKNOWLEDGED, 0, place))
        return out


class Socket:
    """Read by Spark's socket source, which is for tests and not for recovery."""

    about = About(
        name="socket",
        summary="lines that are sent once, at {socket.host} and {socket.port}, to Spark's socket source",
        example="{source: socket}",
        options=Shape,
    )

    receiver = True

    def requested_parts(self, given: Input) -> Mapping[str, Mapping[str, Any]]:
        """Return a port."""
        return {LABEL: {}}

    def unread_by_time(self, options: Mapping[str, Any]) -> Refusals:
        """A receiver reads all of it."""
        return iter(())

    def open(self, given: Input, own: Mapping[str, Resources]) -> OpenSource:
        """Return the port."""
        return OpenSocket(part(own, LABEL).at)


KIND = Socket()
