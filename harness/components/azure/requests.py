"""What a request to Azure's blob service asks of one blob: the account is in the path, as the emulator has it."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from harness.remote.relay.commits import Operation, Part
from harness.remote.relay.exchange import Exchange

SILENT = {"timeout"}
"""Parameters that change nothing of what is asked."""
SOURCE = "x-ms-copy-source"


def operation(exchange: Exchange) -> Operation | None:
    """Keys begin with account and container. None for a block of a blob, and for all that puts, copies or deletes no
    whole blob by itself."""
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
    return Operation(Part.COPY, key, unquote(urlsplit(source).path).lstrip("/"))
