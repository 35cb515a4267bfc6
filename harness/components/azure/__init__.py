"""Azure's blob service, by its emulator Azurite: each part of a run is a prefix of the names in a container.

node        the programs that run and fetch it
process     one as a child process, at the one port that Hadoop's connector knows
blob        asks it
run_prefix  a run's own blobs, and what Spark is told of them
requests    what a request that the relay sees asks for
source      blobs of records put below a prefix
sink        blobs that the pipeline writes, read back
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.component import Look, Started, server_look
from harness.components.azure.node import CURE, program
from harness.errors import StackError
from harness.fields.shape import Shape
from harness.kinds import About
from harness.remote.parts import CHECKPOINT, CheckpointInPart
from harness.remote.relay.commits import TO_STORES, Commits

if TYPE_CHECKING:
    from harness.hosts.processes import ProcessHost
    from harness.resources import Resources


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
    requests = TO_STORES

    @property
    def looks(self) -> tuple[Look, ...]:
        """What runs it, the emulator, and what Spark reaches it by."""
        return (
            Look("azure runtime", "node and npm", _node, CURE, optional=True),
            server_look("azure", "Azurite 3.37 and hadoop-azure", _server),
        )

    def as_processes(self, host: ProcessHost) -> Started:
        """From npm."""
        # Scenario files are read without what runs anything.
        from harness.components.azure.process import Azurite

        return Azurite(host.session, host.java, logs=host.logs)

    def commits(self, own: Resources) -> Commits | None:
        """Its requests."""
        from harness.components.azure.blob import ACCOUNT
        from harness.components.azure.requests import operation
        from harness.components.azure.run_prefix import CONTAINER

        room = own.at.below(CHECKPOINT)
        if room.relay is None:
            return None
        return Commits(relay=room.relay, reads=operation, prefix=f"{ACCOUNT}/{CONTAINER}/{room.prefix}")


def _node() -> str:
    return " and ".join(str(program(name)) for name in ("node", "npm"))


def _server() -> str:
    from harness.components.azure.process import VERSION
    from harness.machine import cache, jars

    connector = jars.there("spark-azure")
    if not (cache.root() / "azurite" / VERSION).is_dir():
        raise StackError(f"{VERSION} is not fetched yet")
    return f"Azurite {VERSION}, hadoop-azure {connector}"


KIND = Azure()
