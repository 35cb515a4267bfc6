"""The settings of YARN's daemons and clients: every address on loopback, one node that promises more than it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.components.hadoop import settings as hadoop
from harness.hosts.ports import LOOPBACK, Port
from harness.session import reaper
from harness.stack import PROMISED_CORES

MANAGER = ("resourcemanager", "scheduler", "tracker", "admin", "manager-web")
NODE = ("nodemanager", "localizer", "node-web", "collector")
PROMISED_MB = 64 * 1024
DAEMONS: Mapping[str, str] = {
    "yarn.nodemanager.resource.memory-mb": str(PROMISED_MB),
    "yarn.nodemanager.resource.cpu-vcores": str(PROMISED_CORES),
    "yarn.scheduler.minimum-allocation-mb": "256",
    "yarn.scheduler.maximum-allocation-mb": str(PROMISED_MB),
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.pmem-check-enabled": "false",
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99.5",
    # `spark.yarn.maxAppAttempts` sets how many a single application has.
    "yarn.resourcemanager.am.max-attempts": "1000",
    "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "200",
    # A client that loses ResourceManager connects again after this; 30 s by default.
    "yarn.resourcemanager.connect.retry-interval.ms": "500",
    "yarn.resourcemanager.recovery.enabled": "true",
    "yarn.resourcemanager.store.class": (
        "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore"
    ),
    "yarn.timeline-service.enabled": "false",
    # It would leave the environment of each container, passwords and all, beside its output.
    "yarn.nodemanager.log-container-debug-info.enabled": "false",
}
"""What we set besides addresses and folders; goes into run.json."""
QUEUES: Mapping[str, str] = {
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    # ApplicationMasters may take the whole node: they are most of what runs here.
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
    "yarn.scheduler.capacity.maximum-applications": "1000",
}


@dataclass(frozen=True)
class Folders:
    """Below one folder of the session: settings, what containers work in, what ResourceManager recovers from. `logs` is
    where each container has a folder for its output."""

    root: Path
    logs: Path

    @property
    def conf(self) -> Path:
        """`HADOOP_CONF_DIR` of daemons and clients."""
        return self.root / "conf"

    @property
    def local(self) -> Path:
        """NodeManager's `local-dirs`."""
        return self.root / "local"

    @property
    def state(self) -> Path:
        """What ResourceManager comes back on."""
        return self.root / "state"

    def output(self, application: str, container: str) -> Path:
        """Return where a container's output lies, until NodeManager deletes it."""
        return self.logs / application / container

    def exit_code(self, application: str, container: str) -> Path:
        """Return where the shell around a container's program writes down how it ended, until NodeManager deletes
        it."""
        return self.local / "nmPrivate" / application / container / f"{container}.pid.exitcode"


def ports() -> dict[str, Port]:
    """Return one of ours for each that the daemons listen on. Raises StackError."""
    return {name: Port(what=f"YARN's {name}") for name in (*MANAGER, *NODE)}


def write(folders: Folders, at: Mapping[str, Port], session: str) -> None:
    """Write the files of settings. Each container carries the mark of the `session`, so that its end finds them all."""
    addresses = {
        "yarn.resourcemanager.hostname": LOOPBACK,
        "yarn.resourcemanager.bind-host": LOOPBACK,
        "yarn.resourcemanager.address": str(at["resourcemanager"]),
        "yarn.resourcemanager.scheduler.address": str(at["scheduler"]),
        "yarn.resourcemanager.resource-tracker.address": str(at["tracker"]),
        "yarn.resourcemanager.admin.address": str(at["admin"]),
        "yarn.resourcemanager.webapp.address": str(at["manager-web"]),
        "yarn.nodemanager.hostname": LOOPBACK,
        "yarn.nodemanager.bind-host": LOOPBACK,
        "yarn.nodemanager.address": str(at["nodemanager"]),
        "yarn.nodemanager.localizer.address": str(at["localizer"]),
        "yarn.nodemanager.webapp.address": str(at["node-web"]),
        "yarn.nodemanager.collector-service.address": str(at["collector"]),
    }
    places = {
        "yarn.nodemanager.local-dirs": str(folders.local),
        "yarn.nodemanager.log-dirs": str(folders.logs),
        "yarn.resourcemanager.fs.state-store.uri": folders.state.as_uri(),
        # Below /tmp by default.
        "yarn.node-attribute.fs-store.root-dir": (folders.root / "attributes").as_uri(),
        "yarn.node-labels.fs-store.root-dir": (folders.root / "labels").as_uri(),
        "yarn.nodemanager.admin-env": f"MALLOC_ARENA_MAX=$MALLOC_ARENA_MAX,{reaper.MARKER}={session}",
    }
    core = {
        "fs.defaultFS": "file:///",
        "hadoop.tmp.dir": str(folders.root / "tmp"),
        # Requests over HTTP count as this user; without one no user may end an application.
        "hadoop.http.staticuser.user": "onceproof",
        "ipc.client.connect.max.retries": "2",
        "ipc.client.connect.retry.interval": "250",
    }
    hadoop.lay_out(folders.conf, {"core": core, "yarn": {**DAEMONS, **addresses, **places}})
    (folders.conf / "capacity-scheduler.xml").write_text(hadoop.site(QUEUES), encoding="utf-8")
