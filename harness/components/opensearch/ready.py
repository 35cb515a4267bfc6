"""When a server of ours is ready: every index that it has can be read, and a write is acknowledged, by the cluster that
we named."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from harness import wait
from harness.components.opensearch.run_indexes import absent
from harness.components.opensearch.server import Refused, Server
from harness.errors import StackError

SETTINGS: Mapping[str, Any] = {
    "discovery.type": "single-node",
    "cluster.routing.allocation.disk.threshold_enabled": False,
    # Counted by what requests reserve: a small heap is full of what is not collected yet.
    "indices.breaker.total.use_real_memory": False,
}
"""What we set besides addresses, ports and folders; goes into run.json."""
# A copy of a shard would have no second node to be on. Read from the cluster's state, and from no file.
IN_CLUSTER: Mapping[str, Any] = {"cluster.default_number_of_replicas": 0}
HEAP = "-Xmx256m"
READY = "onceproof-ready"


class _Another(StackError):
    """No use to wait."""


def named() -> str:
    """Return a name for a cluster that no other one has."""
    return f"onceproof-{secrets.token_hex(8)}"


def ready(server: Server, cluster: str) -> bool | wait.Waiting:
    """Return whether it is ready. Raises StackError where a server of another cluster answers."""
    try:
        seen = server.ask("say who it is", "GET", "/")["cluster_name"]
        if seen != cluster:
            raise _Another(f"{server.url} is answered by another OpenSearch ({seen}); run again")
        health = server.ask("say how it is", "GET", "/_cluster/health")
        if health["status"] == "red" or health["initializing_shards"]:
            return wait.Waiting(f"it is {health['status']}, with {health['initializing_shards']} shards to come")
        server.ask("take its settings", "PUT", "/_cluster/settings", {"persistent": IN_CLUSTER})
        server.ask("take a document", "PUT", f"/{READY}/_doc/1", {}, timeout="5s")
        with absent():
            server.ask("delete it", "DELETE", f"/{READY}")
    except _Another:
        raise
    except (StackError, Refused) as error:
        return wait.Waiting(str(error))
    return True
