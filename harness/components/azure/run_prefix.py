"""A run's own blobs: those whose names begin with the prefix of one of its parts."""

from __future__ import annotations

from collections.abc import Mapping

from harness.components.azure.blob import EMULATED, BlobService
from harness.machine import jars
from harness.remote.objects import ObjectFolder
from harness.remote.parts import ProvidesFolders
from harness.remote.proxy.server import Proxy
from harness.resources import Resources, labelled

CONTAINER = "onceproof"
EMULATOR = f"wasb://{CONTAINER}@{EMULATED.name}"
CONF = {"spark.hadoop.fs.azure.storage.emulator.account.name": EMULATED.name}
"""Spark's settings: the connector knows the emulator's port and key."""


class Provides(ProvidesFolders):
    """What a service does for a run."""

    service: BlobService
    proxy: Proxy | None = None

    def _made(self, part: str, folder: ObjectFolder) -> Resources:
        """There is nothing to make."""
        found = ",".join(map(str, jars.fetched("spark-azure")))
        return Resources(
            label=labelled("azure", part),
            at=folder,
            placeholders={"path": folder.url, "jars": found},
            conf=self._conf(),
            secret_conf=self._secret_conf(),
            secrets=tuple(self._secret_conf().values()),
        )

    def _folder(self, run_id: str, part: str) -> ObjectFolder:
        return ObjectFolder(
            store=self.service,
            bucket=CONTAINER,
            root=EMULATOR,
            prefix=f"{run_id}/{part or 'plain'}/",
            scratch=self.scratch,
            proxy=self.proxy,
        )

    def _conf(self) -> Mapping[str, str]:
        """Return Spark's settings for it, without its key."""
        return CONF

    def _secret_conf(self) -> Mapping[str, str]:
        """Return the settings that have its key."""
        return {}
