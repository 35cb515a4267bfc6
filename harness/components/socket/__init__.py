"""A port on which the harness speaks lines to whoever connects, as Spark's socket source does.

speaker  what is said on which connection
source   the input of a run, spoken once
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
        summary="a loopback port on which the harness speaks lines to the driver that has connected",
        example='args: [--host, "{socket.host}", --port, "{socket.port}"]',
        options=Shape,
    )
    gives = ("host", "port")
    bare = ()

    def as_processes(self, host: ProcessHost) -> Started:
        """A thread, and a port, for each run."""
        from harness.components.socket.speaker import Speaker
        from harness.session.run_servers import RunServers

        return RunServers(self.about.name, Speaker)


KIND = SocketComponent()
