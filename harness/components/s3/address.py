"""S3 that is there already: a bucket at an address."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from harness.components.s3.run_prefix import Provides
from harness.components.s3.server import Server
from harness.components.s3.signature import Keys
from harness.errors import UsageError
from harness.fields.logins import login
from harness.remote.http import Refused
from harness.remote.proxy.proxies import Proxies

REGION = "AWS_REGION"
SECRET = "AWS_SECRET_ACCESS_KEY"
MUST_BE = (
    "--at s3=… must be a bucket's address as https://ACCESS_KEY:SECRET@host:port/bucket; what was given is none "
    f"(the secret may be in {SECRET}; the region is us-east-1 unless {REGION} names another one)"
)


class S3There(Provides):
    """A bucket that is there: the user's, unless it is `ours`, of another process. A run has its own prefix in it."""

    def __init__(self, address: str, *, ours: bool = False) -> None:
        self.shared = not ours
        place, _, self.bucket = address.rpartition("/")
        if not self.bucket or "?" in address or "#" in address:
            raise UsageError(MUST_BE)
        port = 443 if address.lower().startswith("https:") else 80
        found = login(
            place, schemes=("http", "https"), port=port, variable=SECRET, must_be=MUST_BE, alone="more than a bucket"
        )
        if not found.user or not found.password:
            raise UsageError(MUST_BE)
        keys = Keys(found.user, found.password, os.environ.get(REGION, "us-east-1"))
        self.server = Server(found.host, found.port, keys, secure=found.scheme == "https")
        self._proxies = Proxies("S3")
        self.plain = f"{self.server.url}/{self.bucket}"

    @property
    def address(self) -> str:
        """With the keys, wherever they came from."""
        return f"{self.server.whole}/{self.bucket}"

    def describe(self) -> Mapping[str, Any]:
        """Return where it is: no server of S3 says its version. Raises UsageError for what it refuses, and StackError
        if it does not answer."""
        try:
            next(iter(self.server.listed(self.bucket, "onceproof/")), None)
        except Refused as refused:
            raise UsageError(str(refused)) from refused
        return {"at": self.plain}

    def close(self) -> None:
        """End the proxies and close the connections."""
        self._proxies.close()
        self.server.close()
