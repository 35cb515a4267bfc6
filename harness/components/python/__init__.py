"""Places in a system that is not known here: the user's own code makes, reads and removes them.

There is no server. A run has a room for each part: a name that no other run has, and a folder.

rooms     gives runs their rooms, and takes them away
places    where the user's code lies, and what is wrong with it as it is written
calls     calls one function of it in a process of its own
callee    what runs in that process
leavings  takes rooms away that a harness left which was killed
sink      rows that such a function reads
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.component import Started
from harness.fields.shape import Shape
from harness.kinds import About

if TYPE_CHECKING:
    from harness.hosts.processes import ProcessHost


class Python:
    """Rooms, which mean whatever the user's code takes them for."""

    about = About(
        name="python",
        summary="a place in a system that only code of your own knows; a run has a name and a folder of its own for it",
        example='args: [--into, "{python.room}"]',
        options=Shape,
    )
    gives = ("room", "path")
    bare = ()

    def as_processes(self, host: ProcessHost) -> Started:
        """In the session's own folder; the code runs on this machine."""
        # Scenario files are read without what runs anything.
        from harness.components.python.rooms import Rooms

        return Rooms(host.session)


KIND = Python()
