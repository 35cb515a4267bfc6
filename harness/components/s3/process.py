"""S3 as a child process: S3Proxy on loopback, with objects as files of the session.

It asks for keys that are made at each start of a stack. What it has answered is on the disk: an object is written
beside and renamed.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness import wait
from harness.components.s3.run_prefix import Provides
from harness.components.s3.server import Server
from harness.components.s3.signature import Keys
from harness.errors import StackError
from harness.hosts import service
from harness.hosts.ports import LOOPBACK, Port
from harness.hosts.server_process import ServerProcess
from harness.machine import jars
from harness.machine.java import Java
from harness.remote.http import Refused
from harness.remote.proxy.proxies import Proxies
from harness.session.session import Session

VERSION = "S3Proxy 4.1.0"
BUCKET = "onceproof"
REGION = "us-east-1"
SETTINGS: Mapping[str, str] = {
    "s3proxy.authorization": "aws-v2-or-v4",
    "jclouds.provider": "filesystem-nio2",
    # Asked for, and of no use to files.
    "jclouds.identity": "none",
    "jclouds.credential": "none",
}
"""What we set besides port, keys and folder; goes into run.json."""
HEAP = "-Xmx192m"
START_S = 120.0
LOGGING = """<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>[%d] %p %m (%c)%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="out"/></root>
</configuration>
"""


class S3Server(Provides, ServerProcess):
    """One server, asked through `server`."""

    name = "s3"
    bucket = BUCKET

    def __init__(self, session: Session, java: Java, *, logs: Path) -> None:
        self._session, self._java = session, java
        self._port = Port(what="S3")
        self.folder = session.folder / "s3"
        self.scratch = self.folder / "copies"
        keys = Keys(f"onceproof{secrets.token_hex(4)}", secrets.token_hex(16), REGION)
        self.server = Server(LOOPBACK, self._port.number, keys)
        self.log = logs / "s3.log"
        self._proxies = Proxies("S3")

    def start(self) -> None:
        """Start it and return when it names its buckets to who has its keys, and has ours. Raises StackError."""
        if self._port.open():
            raise StackError(f"{self._port} was asked for S3, but another program listens there")
        self.connector()  # what can fail by the network does so here
        (jar,) = jars.fetched("s3", self._java)
        settings, logging = self._laid_out()
        argv = [str(self._java.executable), HEAP, *service.JVM, f"-Djava.io.tmpdir={self.folder}"]
        argv += [f"-Dlogback.configurationFile={logging}", "-cp", str(jar)]
        self._process = self._session.spawn(
            [*argv, "org.gaul.s3proxy.Main", "--properties", str(settings)],
            name=self.name, log=self.log, env=service.environment(), cwd=self.folder,
        )  # fmt: skip
        service.ready(self.name, self._process, self.log, self._ours, within_s=START_S)

    def check(self) -> None:
        """Raise StackError if it is dead, or a proxy in front of it has failed."""
        super().check()
        self._proxies.check()

    def close(self) -> None:
        """Give the port back, end the proxies and close the connections; ending the process is the session's work."""
        self._proxies.close()
        self.server.close()
        super().close()

    def lent(self) -> str:
        """Return its address, with the keys."""
        return f"{self.server.whole}/{BUCKET}"

    def describe(self) -> Mapping[str, Any]:
        """Return version, and what we set."""
        return {"version": VERSION, "settings": dict(SETTINGS), "jars": [path.name for path in self.connector()]}

    def _laid_out(self) -> tuple[Path, Path]:
        """Return the files of its settings, which only we may read: one has the keys."""
        data, settings, logging = (self.folder / name for name in ("data", "s3proxy.conf", "logback.xml"))
        self.folder.mkdir(mode=0o700, exist_ok=True)
        data.mkdir(exist_ok=True)
        keys = self.server.keys
        properties = {
            **SETTINGS,
            "s3proxy.endpoint": self.server.url,
            "s3proxy.identity": keys.access,
            "s3proxy.credential": keys.secret,
            "jclouds.filesystem.basedir": str(data),
        }
        settings.touch(mode=0o600)
        settings.write_text("".join(f"{name}={value}\n" for name, value in properties.items()), encoding="utf-8")
        logging.write_text(LOGGING, encoding="utf-8")
        return settings, logging

    def _ours(self) -> bool | wait.Waiting:
        """Keys that no other server has are the proof that it is the server that we started."""
        try:
            if BUCKET not in self.server.buckets():
                self.server.make_bucket(BUCKET)
            return True
        except Refused as refused:
            raise StackError(f"{self._port} is answered by another S3 ({refused}); run again") from refused
        except StackError as error:
            return wait.Waiting(str(error))
