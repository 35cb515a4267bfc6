"""A run's own objects: those whose keys begin with the prefix of one of its parts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from harness.components.s3.server import Server
from harness.machine import jars
from harness.remote.objects import ObjectFolder
from harness.remote.parts import ProvidesFolders
from harness.remote.proxy.proxies import PROXY, Proxies
from harness.resources import Resources, labelled

PROVIDER = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"


class Provides(ProvidesFolders):
    """What every server does for a run."""

    server: Server
    bucket: str
    _proxies: Proxies

    def provide(self, run_id: str, parts: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Resources]:
        """Return a folder for each part. The part that keeps the checkpoint gives `{checkpoint}` too. If one part needs
        a proxy, all of them are reached through it. Raises StackError."""
        if any(request.get(PROXY) for request in parts.values()):
            self._proxies.start(run_id, self.server.host, self.server.port)
        return super().provide(run_id, parts)

    def drop(self, run_id: str, names: Collection[str]) -> None:
        """Delete the folders. Raises StackError, once everything was tried."""
        self._proxies.end(run_id)
        super().drop(run_id, names)

    def connector(self) -> tuple[Path, ...]:
        """Return the jars by which Spark speaks to it, fetched once. Raises StackError."""
        return jars.fetched("spark-s3")

    def _made(self, part: str, folder: ObjectFolder) -> Resources:
        """There is nothing to make."""
        keys = self.server.keys
        return Resources(
            label=labelled("s3", part),
            at=folder,
            placeholders={"path": folder.url, "jars": ",".join(map(str, self.connector()))},
            environment={"AWS_ACCESS_KEY_ID": keys.access, "AWS_SECRET_ACCESS_KEY": keys.secret},
            conf=settings(self.server, folder.proxy.url if folder.proxy else self.server.url),
            secrets=(keys.secret,),
        )

    def _folder(self, run_id: str, part: str) -> ObjectFolder:
        return ObjectFolder(
            store=self.server,
            bucket=self.bucket,
            root=f"s3a://{self.bucket}",
            prefix=prefix(run_id, part),
            scratch=self.scratch,
            proxy=self._proxies.of(run_id),
        )


def settings(server: Server, url: str) -> dict[str, str]:
    """Return Spark's settings for the server at `url`. The keys are in the driver's environment, where Spark reads
    them."""
    options = {
        "endpoint": url,
        "endpoint.region": server.keys.region,
        "path.style.access": "true",
        # No other login of the user's shell may win.
        "aws.credentials.provider": PROVIDER,
    }
    return {f"spark.hadoop.fs.s3a.{name}": value for name, value in options.items()}


def prefix(run_id: str, part: str) -> str:
    """Return what the keys of a part begin with. No prefix begins with another one: no part's name holds a `/`."""
    return f"onceproof/{run_id}/{part or 'plain'}/"
