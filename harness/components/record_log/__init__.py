"""A log of numbered records that the harness serves over HTTP: what a source of the program's own reads from.

server   what is asked and answered
source   the input of a run, by its number
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.component import Started
from harness.fields.shape import Shape
from harness.kinds import About

if TYPE_CHECKING:
    from harness.hosts.processes import ProcessHost


class RecordLogComponent:
    """In the harness's own process."""

    about = About(
        name="record_log",
        summary="numbered records that the harness serves: GET /end, and GET /records?start=10&end=20, a line each",
        example='args: [--feed, "{record_log.url}"]',
        options=Shape,
    )
    gives = ("url",)
    bare = ()

    def as_processes(self, host: ProcessHost) -> Started:
        """Return a thread, and a port, for each run."""
        from harness.components.record_log.server import RecordLog
        from harness.session.run_servers import RunServers

        return RunServers(self.about.name, RecordLog)


KIND = RecordLogComponent()
