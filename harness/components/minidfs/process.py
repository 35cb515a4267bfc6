"""NameNode and DataNode in one JVM, with the settings of two: started by the launcher beside this file."""

from __future__ import annotations

from pathlib import Path

from harness.components.hadoop.daemon import Daemon, HadoopRuntime
from harness.components.hdfs.address import HdfsThere
from harness.components.hdfs.process import FileSystem
from harness.machine.janino import COMPILES, compiler
from harness.machine.java import Java
from harness.session.session import Session

NAME = "minidfs"
LAUNCHER = Path(__file__).with_name("Launcher.java")
HEAP = "-Xmx192m"


class MiniDfs(FileSystem):
    """One file system, killed and started again as a whole."""

    name = NAME

    def __init__(self, session: Session, java: Java, *, logs: Path) -> None:
        super().__init__(session)
        runtime = HadoopRuntime(
            session=session, java=java, conf=self._conf, work=self.folder / "work", more=(*compiler(),)
        )
        self._daemon = Daemon(
            runtime, name=NAME, main=COMPILES, port=self._rpc, log=logs / f"{NAME}.log", ready=self._whole, heap=HEAP
        )

    @property
    def daemons(self) -> tuple[Daemon, ...]:
        """Its one process."""
        return (self._daemon,)

    @property
    def port(self) -> int:
        """Where its NameNode listens."""
        return self._daemon.port

    def start(self) -> None:
        """Start it, on its data where it has some, and return when a file that is written is read back. Raises
        StackError."""
        self._lay_out()
        format_as = [] if self._edits.exists() else [self.cluster]
        self._daemon.start([str(LAUNCHER), LAUNCHER.stem, *format_as])

    def stop(self) -> None:
        """SIGKILL; its data stays. Until it is started again its absence is no error."""
        self._daemon.stop()


class MiniDfsThere(HdfsThere):
    """One of another process of ours."""

    name = NAME
