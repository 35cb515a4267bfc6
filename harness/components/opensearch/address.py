"""OpenSearch that is there already, at an address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.components.opensearch.run_indexes import Provides
from harness.components.opensearch.server import Refused, Server
from harness.errors import StackError
from harness.fields.logins import login

PORT = 9200
PASSWORD = "OPENSEARCH_PASSWORD"
MUST_BE = "--at opensearch=… must be an address as http://user:password@host:port; what was given is none"


class OpenSearchThere(Provides):
    """A server that is there: the user's, unless it is `ours`, of another process. A run has its own prefix there."""

    def __init__(self, address: str, *, ours: bool = False) -> None:
        self.shared = not ours
        self.server = self.inside = server(address)
        self.plain = self.server.url

    @property
    def address(self) -> str:
        """With the password, wherever it came from."""
        return self.server.whole

    def describe(self) -> Mapping[str, Any]:
        """Return where it is, and its version. Raises StackError."""
        return {"at": self.plain, "version": version(self.server)}

    def close(self) -> None:
        """Nothing is held."""


def version(server: Server) -> str:
    """Return the server's, e.g. `2.19.1`. Raises StackError if it does not answer."""
    try:
        found = server.ask("say which version it is", "GET", "/")
        return str(found["version"]["number"])
    except (Refused, LookupError, TypeError) as failure:
        raise StackError(f"asked {server.url} which version of OpenSearch it is; saw {failure}") from failure


def server(address: str) -> Server:
    """Return the server of an address. Raises UsageError."""
    found = login(
        address, schemes=("http", "https"), port=PORT, variable=PASSWORD, must_be=MUST_BE, alone="a path or options"
    )
    url = f"{found.scheme}://{found.host}:{found.port}"
    return Server(url, found.user, found.password if found.user else "")
