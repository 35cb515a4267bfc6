"""HDFS as two child processes, a NameNode and a DataNode, each to be killed and started again on its data; and what a
file system has in common with these that runs both in one.

One replica of each block, on the only DataNode. What the NameNode has acknowledged to a client is on the disk: the
NameNode syncs its edit log before it answers, as by default; no login is needed.
"""

from __future__ import annotations

import secrets
from abc import abstractmethod
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from harness.components.hadoop.daemon import Daemon, HadoopRuntime
from harness.components.hadoop.settings import lay_out
from harness.components.hdfs.run_folders import Provides, version
from harness.components.hdfs.webhdfs import OPERATIONAL, WebHdfs
from harness.errors import StackError
from harness.hosts.in_parallel import together
from harness.hosts.ports import LOOPBACK, Port
from harness.machine.java import Java
from harness.session.session import Session
from harness.wait import Waiting

NAMENODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
DATANODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
ADMIN = "org.apache.hadoop.hdfs.tools.DFSAdmin"
HEAP = "-Xmx160m"
SETTINGS: Mapping[str, str] = {
    "dfs.replication": "1",
    "dfs.permissions.enabled": "false",
    # It leaves its safe mode with the last block report, and not half a minute later.
    "dfs.namenode.safemode.extension": "0",
    "dfs.heartbeat.interval": "1",
    "dfs.namenode.datanode.registration.ip-hostname-check": "false",
    "dfs.datanode.hostname": LOOPBACK,
    # Free space is the machine's, and not what a run is about.
    "dfs.datanode.du.reserved": "0",
    "dfs.namenode.resource.du.reserved": "1048576",
}
"""What we set besides addresses and folders; goes into run.json."""
PROBE = "/onceproof/ready"


class _Another(StackError):
    """No use to wait."""


class FileSystem(Provides):
    """One that we start, in whatever processes. `folder` holds its data and its settings, `scratch` is for copies."""

    def __init__(self, session: Session) -> None:
        self.folder = session.folder / self.name
        self.scratch = self.folder / "copies"
        self.cluster = f"onceproof-{secrets.token_hex(8)}"
        self._rpc, self._http, self._data, self._data_http, self._data_ipc = (
            Port(what=f"HDFS's {what}")
            for what in ("NameNode", "NameNode over HTTP", "DataNode", "DataNode over HTTP", "DataNode's own calls")
        )
        self.files, self.scheme = WebHdfs(str(self._http)), f"hdfs://{self._rpc}"

    @property
    @abstractmethod
    def daemons(self) -> tuple[Daemon, ...]:
        """Its processes, the NameNode's first."""

    def check(self) -> None:
        """Raise StackError if one of them is dead that no fault has stopped."""
        for daemon in self.daemons:
            daemon.check()

    def drop(self, run_id: str, names: Collection[str]) -> None:
        """Delete the folders. Of a NameNode that is gone nothing is left but its data, which goes with the session.
        Raises StackError."""
        if self.daemons[0].alive:
            super().drop(run_id, names)

    def lent(self) -> str:
        """Return how others find it."""
        return f"{self.scheme}?http={self.files.address}"

    def describe(self) -> Mapping[str, Any]:
        """Return version, processes, and what we set."""
        names = [daemon.name for daemon in self.daemons]
        return {"version": version(self.files), "processes": names, "settings": dict(SETTINGS)}

    def close(self) -> None:
        """Close the connections to it and give the ports back; ending the processes is the session's work."""
        super().close()
        for port in (self._rpc, self._http, self._data, self._data_http, self._data_ipc):
            port.release()

    @property
    def _conf(self) -> Path:
        return self.folder / "conf"

    @property
    def _edits(self) -> Path:
        return self.folder / "name" / "current"

    def _lay_out(self) -> None:
        lay_out(self._conf, {"core": {"fs.defaultFS": self.scheme}, "hdfs": self._settings()})

    def _settings(self) -> dict[str, str]:
        return {
            **SETTINGS,
            "dfs.namenode.name.dir": (self.folder / "name").as_uri(),
            "dfs.datanode.data.dir": (self.folder / "data").as_uri(),
            "dfs.namenode.rpc-address": str(self._rpc),
            "dfs.namenode.rpc-bind-host": LOOPBACK,
            "dfs.namenode.http-address": str(self._http),
            "dfs.namenode.http-bind-host": LOOPBACK,
            "dfs.datanode.address": str(self._data),
            "dfs.datanode.http.address": str(self._data_http),
            "dfs.datanode.ipc.address": str(self._data_ipc),
        }

    def _whole(self) -> bool | Waiting:
        # A DataNode keeps its connection to a NameNode that was killed: the first file that it is asked for fails.
        answers = self._named()
        return self._stored() if answers is True else answers

    def _named(self) -> bool | Waiting:
        """Return whether the NameNode of this file system answers, knows its DataNode and is out of safe mode."""
        try:
            info, state = self.files.jmx("NameNodeInfo"), self.files.jmx("FSNamesystemState")
            if not info or not state:
                return Waiting("it says nothing of itself yet")
            if info["ClusterId"] != self.cluster:
                saw = f"another file system ({info['ClusterId']})"
                raise _Another(f"{self.files.address} is answered by {saw}; run again")
            if state["FSState"] != OPERATIONAL or not state["NumLiveDataNodes"]:
                return Waiting(f"it is {state['FSState']}, with {state['NumLiveDataNodes']} live DataNodes")
            self.files.ask("PUT", "MKDIRS", self.root)
        except _Another:
            raise
        except StackError as error:
            return Waiting(str(error))
        return True

    def _stored(self) -> bool | Waiting:
        """Return whether it takes a file, and gives it back."""
        word = secrets.token_hex(8).encode()
        try:
            self.files.create(PROBE, word)
            seen = self.files.read(PROBE)
            self.files.ask("DELETE", "DELETE", PROBE)
        except StackError as error:
            return Waiting(str(error))
        return seen == word or Waiting("it gave back another file than it was given")


class Hdfs(FileSystem):
    """One file system. `namenode` and `datanode` are its processes."""

    name = "hdfs"

    def __init__(self, session: Session, java: Java, *, logs: Path) -> None:
        super().__init__(session)
        self._log, self._admin_log = logs / "hdfs-namenode.log", logs / "hdfs-admin.log"
        runtimes = [
            HadoopRuntime(session=session, java=java, conf=self._conf, work=self.folder / name)
            for name in ("namenode", "datanode")
        ]
        self.namenode = Daemon(
            runtimes[0], name="namenode", main=NAMENODE, port=self._rpc, log=self._log,
            ready=self._whole, heap=HEAP,
        )  # fmt: skip
        self.datanode = Daemon(
            runtimes[1], name="datanode", main=DATANODE, port=self._data, log=logs / "hdfs-datanode.log",
            ready=self._stored, heap=HEAP,
        )  # fmt: skip

    @property
    def daemons(self) -> tuple[Daemon, ...]:
        """Its processes, the NameNode's first."""
        return self.namenode, self.datanode

    def start(self) -> None:
        """Start both, and return when a file that is written is read back. Raises StackError."""
        self._lay_out()
        self.namenode.runtime.work.mkdir(mode=0o700, exist_ok=True)
        self.namenode.runtime.finish(NAMENODE, "-format", "-clusterid", self.cluster, "-nonInteractive", log=self._log)
        together([self.namenode.spawn, self.datanode.spawn])
        self.namenode.await_ready()
        self.datanode.await_ready()

    def stop(self) -> None:
        """End both; their data stays. Until they are started again their absence is no error."""
        self.namenode.stop()
        self.datanode.stop()

    def safe_mode(self, *, on: bool) -> None:
        """Have the NameNode refuse every change, or no longer. Raises StackError."""
        self.namenode.runtime.finish(ADMIN, "-safemode", "enter" if on else "leave", log=self._admin_log)
        seen = self.files.jmx("FSNamesystemState")
        if not seen or (seen["FSState"] == OPERATIONAL) is on:
            raise StackError(
                f"asked the NameNode for safe mode {'on' if on else 'off'}; saw {seen and seen['FSState']}"
            )

    def blocks(self, run_id: str) -> int:
        """Return how many blocks of a run's files lie on the DataNode: not those of a run before, which it deletes when
        it has the time, nor those that are lost. Raises StackError."""
        return len(self.files.blocks(f"{self.root}/{run_id}") & {path.name for path in self._on_disk()})

    def lose_blocks(self) -> None:
        """Kill the DataNode, delete all its blocks, start it again. Raises StackError."""
        self.datanode.stop()
        for path in self._on_disk():
            path.unlink()
        self.datanode.start()

    def _on_disk(self) -> list[Path]:
        """Return each block's file, and beside it that of its checksums."""
        return [path for path in (self.folder / "data").rglob("blk_*") if path.is_file()]
