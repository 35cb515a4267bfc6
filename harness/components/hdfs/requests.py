"""What a call to a NameNode asks of the file of a plan or a commit."""

from __future__ import annotations

from harness.components.hdfs.rpc import CREATE, TO
from harness.remote.relay.commits import TO_HDFS, Operation
from harness.remote.relay.exchange import Exchange

PARTS = {(part.makes, part.log): part for part in TO_HDFS}


def operation(exchange: Exchange) -> Operation | None:
    """None for a file that lies in no folder of plans or commits."""
    creates = exchange.method == CREATE
    path = exchange.target if creates else exchange.headers[TO]
    part = PARTS.get((creates, path.rpartition("/")[0].rpartition("/")[2]))
    if part is None:
        return None
    return Operation(part, _key(path), "" if creates else _key(exchange.target))


def _key(path: str) -> str:
    return path.lstrip("/")
