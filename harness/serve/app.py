"""Requests to answers: the list, its search, and the pages of a store. Needs the extra `serve`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import BinaryIO
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from harness.errors import UsageError
from harness.report.escape import visible
from harness.report.render import CSP
from harness.serve.files import opened
from harness.serve.listing import Listing
from harness.serve.search import parse

HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
CHUNK = 256 * 1024


def app(listing: Listing, port: int) -> ASGIApp:
    """Return the application for a server at that port of this machine."""
    hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        response = await _answer(Request(scope), listing, hosts, port)
        response.headers.update(HEADERS)
        await response(scope, receive, send)

    return answered


async def _answer(request: Request, listing: Listing, hosts: set[str], port: int) -> Response:
    # A page elsewhere could give this machine another name (DNS rebinding), and would send that name.
    named = request.headers.getlist("host")
    if len(named) != 1 or named[0].lower() not in hosts:
        requested = visible(", ".join(named) or "no host", 100)
        return _error(
            400, f"asked for {requested}; this server answers to 127.0.0.1:{port} alone. Open http://127.0.0.1:{port}/"
        )
    if request.method not in ("GET", "HEAD"):
        refusal = _error(405, f"asked to {visible(request.method, 20)}; this server only shows. Use GET")
        refusal.headers["Allow"] = "GET, HEAD"
        return refusal
    raw = request.scope.get("raw_path") or request.scope["path"].encode()
    if raw == b"/":
        return await run_in_threadpool(_list, request.scope["query_string"], listing)
    return await run_in_threadpool(_file, raw, listing)


def _list(query: bytes, listing: Listing) -> Response:
    try:
        given = parse_qs(query.decode("ascii", "replace"), keep_blank_values=True, max_num_fields=50)
    except ValueError:
        return _error(400, "asked for more than 50 things at once. Ask for fewer")
    try:
        return Response(listing.page(parse(given)), media_type="text/html")
    except UsageError as failure:
        return _error(400, str(failure))


def _file(address: bytes, listing: Listing) -> Response:
    found = opened(listing.root, address)
    if found is None:
        requested = visible(address.decode("ascii", "replace"), 200)
        return _error(404, f"asked for {requested}; there is no such page in this store. The list of runs is at /")
    descriptor, kind = found
    file = os.fdopen(descriptor, "rb")
    size = os.fstat(descriptor).st_size
    return StreamingResponse(_chunks(file, size), headers={"Content-Length": str(size), "Content-Type": kind})


def _chunks(file: BinaryIO, left: int) -> Iterator[bytes]:
    """As many bytes as were promised; the file may grow meanwhile."""
    with file:
        while left > 0 and (chunk := file.read(min(CHUNK, left))):
            left -= len(chunk)
            yield chunk


def _error(status: int, words: str) -> Response:
    return PlainTextResponse(f"Error: {words}\n", status)
