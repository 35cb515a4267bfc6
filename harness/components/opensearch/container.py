"""OpenSearch in a container: one node without a login, in the network of the stack alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from harness.components.opensearch import ready
from harness.components.opensearch.address import PORT, version
from harness.components.opensearch.run_indexes import Provides
from harness.components.opensearch.server import Server
from harness.hosts.container import InContainer
from harness.hosts.engine import Engine, Wanted

START_S = 180.0
SETTINGS: Mapping[str, Any] = {
    **ready.SETTINGS,
    "network.host": "0.0.0.0",  # its own network: no other process is there
    # The official image has a plug-in that asks for a login.
    "plugins.security.disabled": True,
}


class OpenSearchBox(Provides, InContainer):
    """One node, asked through `server`."""

    port = PORT

    def __init__(self, engine: Engine, image: str) -> None:
        self._engine, self._image = engine, image
        self.cluster = ready.named()
        self.inside = Server(f"http://opensearch:{PORT}")

    def start(self) -> None:
        """Start it and return when it acknowledges a write from outside. Raises StackError."""
        settings = {**SETTINGS, "cluster.name": self.cluster}
        container = self._up(
            Wanted(
                name="opensearch",
                image=self._image,
                command=["opensearch", *(f"-E{name}={_written(value)}" for name, value in settings.items())],
                environment={"OPENSEARCH_JAVA_OPTS": f"{ready.HEAP} -XX:TieredStopAtLevel=1"},
                ports={PORT: 0},
            )
        )
        self.server = Server(f"http://{self._engine.host}:{container.port(PORT)}")
        container.ready(partial(ready.ready, self.server, self.cluster), within_s=START_S)

    def describe(self) -> Mapping[str, Any]:
        """Return version, and what we set."""
        settings = {**SETTINGS, **ready.IN_CLUSTER}
        return {"version": version(self.server), "cluster": self.cluster, "settings": settings}


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
