"""What a request to S3 asks of one object: buckets are in the path, as we have Spark ask."""

from __future__ import annotations

from urllib.parse import unquote

from harness.remote.relay.commits import Operation, Part
from harness.remote.relay.exchange import Exchange

SILENT = {"x-id"}
"""Parameters that change nothing of what is asked."""
SOURCE = "x-amz-copy-source"


def operation(exchange: Exchange) -> Operation | None:
    """Keys begin with the bucket. None for a part of a larger upload, and for all that puts, copies or deletes no whole
    object by itself."""
    path, _, query = exchange.target.partition("?")
    if {each.partition("=")[0] for each in query.split("&") if each} - SILENT:
        return None
    key = unquote(path).lstrip("/")
    if exchange.method == "DELETE":
        return Operation(Part.DELETE, key)
    if exchange.method != "PUT":
        return None
    source = exchange.headers.get(SOURCE)
    if source is None:
        return Operation(Part.PUT, key)
    return Operation(Part.COPY, key, unquote(source.partition("?")[0]).lstrip("/"))
