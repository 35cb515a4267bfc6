"""Azure's storage: its emulator Azurite, or a container of an account. Each part of a run is a prefix of the names in
a container.

node        the programs that run and fetch it
process     one as a child process, at the one port that Hadoop's connector knows
address     a container of an account that is there already
blob        asks either
shared_key  signs what is asked
run_prefix  a run's own blobs, and Spark's settings for them
source      blobs of records put below a prefix
sink        blobs that the pipeline writes, read back
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from harness.component import Addressed, MachineCheck, Started, server_check
from harness.components.azure.node import CURE, program
from harness.components.azure.shared_key import KEY
from harness.errors import StackError
from harness.fields.shape import Shape
from harness.kinds import About
from harness.remote.parts import CommitsInPart

if TYPE_CHECKING:
    from harness.hosts.processes import ProcessHost

ACCOUNT = f"set {KEY}, and say --stack external --at azure=https://ACCOUNT.blob.core.windows.net/CONTAINER"


class Azure(CommitsInPart):
    """An emulator of ours, or the user's account."""

    about = About(
        name="azure",
        summary="Azure's storage, Azurite or an account of yours; a part is a prefix of names, {azure.jars} are for "
        "wasb:// and abfs://",
        example='conf: {spark.jars: "{azure.jars}"}',
        options=Shape,
    )
    gives = ("path", "jars")
    bare = ()

    @property
    def machine_checks(self) -> tuple[MachineCheck, ...]:
        """What runs it, the emulator, what Spark reaches it by, and an account in its place."""
        return (
            MachineCheck("azure runtime", "node and npm", _node, CURE, optional=True),
            server_check("azure", "Azurite 3.37 and hadoop-azure", _server),
            MachineCheck("azure account", "the key of one, for --stack external", _account, ACCOUNT, optional=True),
        )

    def as_processes(self, host: ProcessHost) -> Started:
        """From npm."""
        # Scenario files are read without what runs anything.
        from harness.components.azure.process import Azurite

        return Azurite(host.session, host.java, logs=host.logs)

    def at(self, address: str) -> Addressed:
        """Return an address as `https://ACCOUNT:KEY@ACCOUNT.blob.core.windows.net/CONTAINER`."""
        from harness.components.azure.address import AzureThere

        return AzureThere(address)


def _node() -> str:
    return " and ".join(str(program(name)) for name in ("node", "npm"))


def _server() -> str:
    from harness.components.azure.process import VERSION
    from harness.machine import cache, jars

    connector = jars.there("spark-azure")
    if not (cache.root() / "azurite" / VERSION).is_dir():
        raise StackError(f"{VERSION} is not fetched yet")
    return f"Azurite {VERSION}, hadoop-azure {connector}"


def _account() -> str:
    if not os.environ.get(KEY):
        raise StackError(f"no {KEY}: what names azure runs on Azurite (wasb://) alone, and not on an account (abfs://)")
    return f"{KEY} is set; the account is not asked here"


KIND = Azure()
