"""Hears the agent in Spark (`machine/agent`): one connection for each thread of the driver and the executors.

A line is an event, as JSON. The thread that sent an operation on a checkpoint waits until it is answered. So a listener
that is called here holds it for that long.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer, ThreadingUnixStreamServer
from typing import Any
from urllib.parse import urlsplit

from harness.context import CheckpointEvent
from harness.errors import StackError
from harness.operation import Op, Operation, Side, checkpoint
from harness.scenario import CrashPoint

LOOPBACK = "127.0.0.1"
OPERATION = "checkpoint-op"
FIRST = {
    ("offsets", Op.RENAME, Side.AFTER): CrashPoint.BATCH_PLANNED,
    ("commits", Op.CREATE, Side.BEFORE): CrashPoint.SINK_COMMITTED,
    ("commits", Op.RENAME, Side.AFTER): CrashPoint.BATCH_COMMITTED,
}
"""By log, operation and side, the crash point to which a batch has come with it."""

Event = dict[str, Any]


class AgentServer:
    """Listens on a port of loopback, or at the socket file `file`, until `close()`. `heard` is called with each event
    in the thread of its connection. Raises StackError for a path that is too long for a socket."""

    def __init__(self, heard: Callable[[Event], None], file: Path | None = None) -> None:
        self.failure: BaseException | None = None
        agent = self

        class Handler(StreamRequestHandler):
            def handle(self) -> None:
                # The process may be killed in the middle of a line.
                with suppress(ConnectionError):
                    for line in self.rfile:
                        self._heard(line)

            def _heard(self, line: bytes) -> None:
                try:
                    event = json.loads(line)
                except ValueError:
                    return
                try:
                    heard(event)
                except BaseException as failure:
                    agent.failure = failure
                if event["waits"]:
                    self.wfile.write(b"\n")

        self._server: ThreadingTCPServer | ThreadingUnixStreamServer
        if file is None:
            self._server = ThreadingTCPServer((LOOPBACK, 0), Handler)
            self.address = f"{LOOPBACK}:{self._server.server_address[1]}"
        else:
            try:
                self._server = ThreadingUnixStreamServer(str(file), Handler)
            except OSError as failure:
                cure = "name another folder for temporary files, with a shorter path (TMPDIR)"
                raise StackError(f"asked for the socket {file}; saw {failure}; {cure}") from failure
            self.address = str(file)
        self._server.daemon_threads, self._server.block_on_close = True, False
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="agent", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Hear nothing more; returns when the thread is gone."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5.0)


def local(path: str) -> Path | None:
    """Return the path of this machine that Spark's path means; None for one on a server."""
    found = urlsplit(path)
    return Path(found.path) if found.scheme in ("", "file") else None


def operation(event: Event, path: Path) -> Operation | None:
    """Return the operation on the file at `path` that was reported; None for a file of no checkpoint."""
    folder = checkpoint(path)
    if folder is None:
        return None
    name = path.relative_to(folder).as_posix()
    return Operation(Op(event["op"]), Side(event["when"]), folder, name, event["process"])


def protocol_event(done: Operation) -> CheckpointEvent | None:
    """Return what an operation says of the protocol: a batch has come to a crash point, or a source begins."""
    parts = done.name.split("/")
    if parts[0] == "sources" and parts[2:] == ["0"] and (done.op, done.side) == (Op.RENAME, Side.AFTER):
        return CheckpointEvent(None, 0, done.folder, parts[1])
    point = FIRST.get((done.log, done.op, done.side))
    return CheckpointEvent(point, done.batch, done.folder) if point and done.batch is not None else None
