"""Azure's blob service, by its emulator Azurite: each part of a run is a prefix of the names in a container.

process     one as a child process, at the one port that Hadoop's connector knows
blob        asks it
run_prefix  a run's own blobs, and what Spark is told of them
source      blobs of records put below a prefix
sink        blobs that the pipeline writes, read back
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from harness.component import Look, Started
from harness.errors import StackError
from harness.fields.shape import Shape
from harness.kinds import About
from harness.remote.parts import CheckpointInPart

if TYPE_CHECKING:
    from harness.hosts.processes import ProcessHost

CURE = "install Node.js (https://nodejs.org) with npm"


class Azure(CheckpointInPart):
    """One emulator."""

    about = About(
        name="azure",
        summary="Azurite, the emulator of Azure's blob storage; a part is a prefix of names, {azure.jars} are for wasb://",
        example='conf: {spark.jars: "{azure.jars}"}',
        options=Shape,
    )
    gives = ("path", "jars")
    bare = ()

    @property
    def looks(self) -> tuple[Look, ...]:
        """What runs it; the emulator itself is fetched by who asks for it."""
        return (Look("azure", "node and npm", _node, CURE, optional=True),)

    def as_processes(self, host: ProcessHost) -> Started:
        """From npm."""
        # Scenario files are read without what runs anything.
        from harness.components.azure.process import Azurite

        return Azurite(host.session, host.java, logs=host.logs)


def _node() -> str:
    missing = [name for name in ("node", "npm") if shutil.which(name) is None]
    if missing:
        raise StackError(f"asked for azure; there is no {' and no '.join(missing)}; {CURE}")
    return "found"


KIND = Azure()
