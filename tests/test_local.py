"""The connections of a process, as the kernel's tables of its own network show them."""

from __future__ import annotations

import os
import socket

import psutil

from harness.hosts.local import LocalProcess
from harness.wait import until


def test_a_connection_is_seen_from_both_ends_while_it_lasts() -> None:
    this = LocalProcess(psutil.Process(os.getpid()))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not this.reaches(port), "nobody has called yet: who listens reaches nobody"
        with socket.create_connection(("127.0.0.1", port)) as client:
            here = client.getsockname()[1]
            assert this.reaches(port) and not this.reaches(1)
            assert this.speaks_from("127.0.0.1", here) and not this.speaks_from("127.0.0.2", here)
        until("the connection to be gone", lambda: not this.reaches(port), within_s=60)


def test_the_connections_of_others_are_not_its_own() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        assert not LocalProcess(psutil.Process(1)).reaches(server.getsockname()[1])
