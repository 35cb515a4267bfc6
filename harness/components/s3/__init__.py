"""S3, an object store: each part of a run is a prefix of the keys in a bucket.

process     one as a child process
address     one that is there already
server      asks a server, by its address
signature   signs what is asked
run_prefix  a run's own objects, and Spark's settings for them
source      objects of records put below a prefix
sink        objects that the pipeline writes, read back
fault       ends it
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.component import Addressed, MachineCheck, Server, Started, server_check
from harness.fields.shape import Shape
from harness.kinds import About
from harness.remote.parts import CommitsInPart

if TYPE_CHECKING:
    from harness.hosts.processes import ProcessHost


class S3(CommitsInPart):
    """One server."""

    about = About(
        name="s3",
        summary="an object store; a part of a run is a prefix of keys in a bucket, {s3.jars} are what s3a:// needs",
        example='conf: {spark.jars: "{s3.jars}"}',
        options=Shape,
    )
    gives = ("path", "jars")
    bare = ()
    on_demand = True

    @property
    def machine_checks(self) -> tuple[MachineCheck, ...]:
        """The server, and what Spark reaches it by."""
        return (server_check("s3", "S3Proxy 4.1 and hadoop-aws", _server),)

    def as_processes(self, host: ProcessHost) -> Started:
        """S3Proxy, from its jar."""
        # Scenario files are read without what runs anything.
        from harness.components.s3.process import S3Server

        return S3Server(host.session, host.java, logs=host.logs)

    def at(self, address: str) -> Addressed:
        """Return an address as `https://ACCESS_KEY:SECRET@host:port/bucket`."""
        from harness.components.s3.address import S3There

        return S3There(address)

    def borrowed(self, text: str) -> Server:
        """Of another process of ours."""
        from harness.components.s3.address import S3There

        return S3There(text, ours=True)


def _server() -> str:
    from harness.machine import jars

    return f"S3Proxy {jars.there('s3')}, hadoop-aws {jars.there('spark-s3')}"


KIND = S3()
