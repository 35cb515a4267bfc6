"""An HDFS that is there already: `hdfs://HOST:PORT?http=HOST:PORT`, its NameNode for clients and over HTTP."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from harness.components.hdfs.run_folders import Provides, version
from harness.components.hdfs.webhdfs import WebHdfs
from harness.errors import UsageError
from harness.hosts.ports import HOST

ADDRESS = re.compile(rf"(hdfs://{HOST.pattern}:[0-9]{{1,5}})\?http=({HOST.pattern}:[0-9]{{1,5}})")


class HdfsThere(Provides):
    """The user's, or another process's of ours. Its NameNode is polled for what has changed."""

    def __init__(self, address: str, *, ours: bool = False) -> None:
        super().__init__()
        found = ADDRESS.fullmatch(address)
        if found is None or not all(0 < int(place.rpartition(":")[2]) < 65536 for place in (found[1], found[2])):
            wanted = "hdfs://HOST:PORT?http=HOST:PORT, such as hdfs://namenode:8020?http=namenode:9870"
            raise UsageError(f"asked for HDFS at {address!r}; write {wanted}")
        self.address = self.plain = address
        self.scheme, self.files = found[1], WebHdfs(found[2])
        self.shared = not ours

    def describe(self) -> Mapping[str, Any]:
        """Return its version."""
        return {"version": version(self.files)}
