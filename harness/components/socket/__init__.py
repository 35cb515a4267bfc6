"""A port on which the harness sends lines to the newest reader, as Spark's socket source does.

server  what was sent on which connection
source  the input of a run, each line sent once
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.component import Started
from harness.fields.shape import Shape
from harness.kinds import About

if TYPE_CHECKING:
    from harness.hosts.processes import ProcessHost


class SocketComponent:
    """In the harness's own process."""

    about = About(
        name="socket",
        summary="a loopback port on which the harness sends lines to the driver that has connected",
        example='args: [--host, "{socket.host}", --port, "{socket.port}"]',
        options=Shape,
    )
    gives = ("host", "port")
    bare = ()

    def as_processes(self, host: ProcessHost) -> Started:
        """Return a thread, and a port, for each run."""
        from harness.components.socket.server import LineServer
        from harness.session.run_servers import RunServers

        return RunServers(self.about.name, LineServer)


KIND = SocketComponent()
