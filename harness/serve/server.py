"""The socket of this machine that `onceproof serve` answers at, until Ctrl-C."""

from __future__ import annotations

import errno
import signal
import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import FrameType

from harness.component import no_package
from harness.errors import HarnessError, UsageError

HERE = "127.0.0.1"
GRACE_S = 2


def serve(reports: Path, port: int, notify: Callable[[str], None]) -> None:
    """Show the store at `reports` until SIGINT or SIGTERM; `notify` gets the address. Raises UsageError if the store or
    a package is not there, HarnessError if the port is taken."""
    if not reports.is_dir():
        raise UsageError(f"asked to show {reports}; there is no such folder. Name the folder that --reports named")
    try:
        import uvicorn

        from harness.serve.app import app
    except ModuleNotFoundError as missing:
        raise UsageError(no_package("onceproof serve", missing.name, "serve")) from None
    from harness.serve.listing import Listing

    with closing(_bound(port)) as listener:
        port = listener.getsockname()[1]
        config = uvicorn.Config(
            app(Listing(reports.resolve()), port),
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            # A request that is none is no news of ours.
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=64,
            timeout_graceful_shutdown=GRACE_S,
        )
        server = uvicorn.Server(config)

        def end(number: int, frame: FrameType | None) -> None:
            server.should_exit = True

        # The server has other signal handlers while it runs, and raises the signals that it got again when it is over.
        before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            notify(f"http://{HERE}:{port}/ shows {reports}; Ctrl-C ends it")
            server.run(sockets=[listener])
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _bound(port: int) -> socket.socket:
    """Return a socket of this machine alone; port 0 takes any. Raises HarnessError."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HERE, port))
        # A process that reads the address may ask at once.
        listener.listen(64)
    except OSError as failure:
        listener.close()
        why = "another program has it" if failure.errno == errno.EADDRINUSE else failure.strerror
        raise HarnessError(f"asked for port {port}; {why}. Take another --port, or none for any") from None
    return listener
