"""Hears the agent in Spark (`machine/agent`): one connection for each thread of the driver and the executors.

A line is an event, as JSON. The thread that sent an operation on a checkpoint stands still until it is answered, so
whoever is called here holds it for that long.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any
from urllib.parse import urlsplit

from harness.context import CheckpointEvent
from harness.scenario import CrashPoint

LOOPBACK = "127.0.0.1"
OPERATION = "checkpoint-op"
NUMBERED = {
    ("offsets", "rename", "after"): CrashPoint.BATCH_PLANNED,
    ("commits", "create", "before"): CrashPoint.SINK_COMMITTED,
    ("commits", "rename", "after"): CrashPoint.BATCH_COMMITTED,
}
"""By log, operation and side of it, the crash point of the batch that the file is named by."""
LOGS = ("offsets", "commits", "sources", "metadata", "state")
"""What lies in a checkpoint."""

Event = dict[str, Any]


class AgentServer:
    """Listens on loopback until `close()`. `heard` is called with each event in the thread of its connection."""

    def __init__(self, heard: Callable[[Event], None]) -> None:
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

        class Server(ThreadingTCPServer):
            daemon_threads = True
            block_on_close = False

        self._server = Server((LOOPBACK, 0), Handler)
        self.address = f"{LOOPBACK}:{self._server.server_address[1]}"
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


def checkpoint(path: Path) -> Path | None:
    """Return the checkpoint that an operation changes; None if it cannot be told."""
    parents = [path, *path.parents]
    for each in reversed(parents):
        if each.name in LOGS and each.parent != each:
            return each.parent
    return None


def crash_point(event: Event, path: Path) -> CheckpointEvent | None:
    """Return what an operation on a checkpoint means for its batch, if it means anything."""
    log, name = path.parent, path.name
    if log.parent.name == "sources" and name == "0" and (event["op"], event["when"]) == ("rename", "after"):
        return CheckpointEvent(None, 0, log.parent.parent, log.name)
    point = NUMBERED.get((log.name, event["op"], event["when"])) if name.isdecimal() else None
    return CheckpointEvent(point, int(name), log.parent) if point else None
