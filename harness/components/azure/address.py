"""Azure Storage that is there already: a container of an account.

Whether the account has a hierarchical namespace (ADLS Gen2) decides how Spark reaches it: by `abfss://`, whose rename
is one request to the service, or else by `wasbs://`, which copies and deletes.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any
from urllib.parse import quote

from harness.components.azure.blob import CONFLICT, NO_CONTAINER, TLS, BlobService
from harness.components.azure.run_prefix import Provides
from harness.components.azure.shared_key import KEY, Account
from harness.errors import UsageError
from harness.fields.logins import login
from harness.remote.http import Refused
from harness.remote.objects import ObjectFolder

MUST_BE = (
    "--at azure=… must be a container's address as https://ACCOUNT:KEY@ACCOUNT.blob.core.windows.net/CONTAINER, a / of "
    f"the key written as %2F; what was given is none (without ACCOUNT:KEY@ the key is taken from {KEY})"
)
HOST = re.compile(r"([a-z0-9]{3,24})((?:\.z[0-9]{1,2})?)\.(?:blob|dfs)(\.[a-z0-9.-]+)")
"""Account, its DNS zone if it has one, and the domain of the services."""
KINDS = {True: "dfs", False: "blob"}
"""The service by which Spark reaches an account: with a hierarchical namespace, and with a flat one."""
CONTAINER = re.compile(r"(?!.*--)[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
CURES = {
    "AuthenticationFailed": "the key is another account's or an old one, or the clock of this machine is wrong",
    "KeyBasedAuthenticationNotPermitted": "allow access by key in the account's configuration",
    "AuthorizationFailure": "allow this machine's address in the account's network rules",
    NO_CONTAINER: "make the container; onceproof makes none",
}
"""By the service's word for a refusal, what may have led to it."""
REDACTED = r"(?i)secret|password|token|access[.]?key|account[.]key"
"""Spark's own, and the settings that have an account's key: event logs list all settings."""


class AzureThere(Provides):
    """A container that is there, the user's. A run has its own folder in it, `onceproof-RUN`."""

    shared = True

    def __init__(self, address: str) -> None:
        place, _, self.container = address.rpartition("/")
        if not CONTAINER.fullmatch(self.container):
            raise UsageError(MUST_BE)
        found = login(place, schemes=("https",), port=TLS, variable=KEY, must_be=MUST_BE, alone="more than a container")
        host = HOST.fullmatch(found.host)
        if host is None or found.port != TLS or found.user not in ("", host[1]) or not _is_key(found.password):
            raise UsageError(MUST_BE)
        self._hosts = {hierarchical: host.expand(rf"\1\2.{kind}\3") for hierarchical, kind in KINDS.items()}
        self.service = blob_service(Account(host[1], found.password), self._hosts[False])
        self.plain = f"https://{found.host}/{self.container}"

    @property
    def address(self) -> str:
        """With the key, wherever it came from."""
        account, place = self.service.account, self.plain.removeprefix("https://")
        return f"https://{account.name}:{quote(account.key, safe='')}@{place}"

    def describe(self) -> Mapping[str, Any]:
        """Return where it is, and what kind of account: Azure has no version. Raises UsageError for what it refuses,
        and StackError if it does not answer."""
        try:
            kind = "hierarchical namespace" if self._hierarchical else "flat namespace"
            next(iter(self.service.listed(self.container, "onceproof-", deep=False)), None)
        except Refused as refused:
            cure = f"; {CURES[refused.kind]}" if refused.kind in CURES else ""
            raise UsageError(f"{refused}{cure}") from refused
        return {"at": self.plain, "account": kind, "spark": self._root}

    def drop(self, run_id: str, names: Collection[str]) -> None:
        """Delete the folders, and the folder above them once nothing is left in it. Raises StackError, once everything
        was tried."""
        super().drop(run_id, names)
        try:
            self.service.delete(self.container, _folder(run_id))
        except Refused as refused:
            # Not empty: another part of the run is still there.
            if refused.status != CONFLICT:
                raise

    def close(self) -> None:
        """Close the connections."""
        self.service.close()

    @cached_property
    def _hierarchical(self) -> bool:
        return self.service.hierarchical()

    @property
    def _host(self) -> str:
        """What Spark reaches it by."""
        return self._hosts[self._hierarchical]

    @property
    def _root(self) -> str:
        scheme = "abfs" if self._hierarchical else "wasb"
        return f"{scheme}{'s' if self.service.secure else ''}://{self.container}@{self._host}"

    def _folder(self, run_id: str, part: str) -> ObjectFolder:
        return ObjectFolder(
            store=self.service,
            bucket=self.container,
            root=self._root,
            prefix=f"{_folder(run_id)}/{part or 'plain'}/",
        )

    def _conf(self) -> Mapping[str, str]:
        # No other login of the user's may win.
        auth = {f"spark.hadoop.fs.azure.account.auth.type.{self._host}": "SharedKey"} if self._hierarchical else {}
        return {**auth, "spark.redaction.regex": REDACTED}

    def _secret_conf(self) -> Mapping[str, str]:
        return {f"spark.hadoop.fs.azure.account.key.{self._host}": self.service.account.key}


def blob_service(account: Account, host: str) -> BlobService:
    """Return how the harness asks it."""
    return BlobService(account, host)


def _folder(run_id: str) -> str:
    return f"onceproof-{run_id}"


def _is_key(text: str) -> bool:
    try:
        return bool(base64.b64decode(text, validate=True))
    except ValueError:
        return False
