"""Places in a system that is not known here: the user's own code makes, reads and removes them.

There is no server. A run has a namespace for each part: a name that no other run has, and a folder.

namespaces  gives runs their namespaces, and removes them
places      where the user's code is, and what is wrong with it as it is written
calls       calls one function of it in a new process
callee      what runs in that process
leavings    removes the namespaces of a harness that was killed
sink        rows that such a function reads
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.component import Started
from harness.fields.shape import Shape
from harness.kinds import About

if TYPE_CHECKING:
    from pathlib import Path

    from harness.session.session import Session


class Python:
    """Namespaces, which mean whatever the user's code takes them for."""

    about = About(
        name="python",
        summary="a place in a system that only your own code knows; a run has its own name and folder for it",
        example='args: [--into, "{python.namespace}"]',
        options=Shape,
    )
    gives = ("namespace", "path")
    bare = ()

    def in_session(self, session: Session, runs: Path) -> Started:
        """In each run's own folder; the code runs on this machine."""
        # Scenario files are read without what runs anything.
        from harness.components.python.namespaces import Namespaces

        return Namespaces(session, runs)


KIND = Python()
