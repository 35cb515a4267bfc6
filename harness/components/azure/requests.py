"""What a request to Azure's blob service asks of one blob: the account is in the path, as the emulator has it, so keys
begin with account and container."""

from __future__ import annotations

from urllib.parse import urlsplit

from harness.remote.proxy.commits import Dialect

SOURCE = "x-ms-copy-source"


def _path(address: str) -> str:
    return urlsplit(address).path


DIALECT = Dialect(silent=frozenset({"timeout"}), copy_source=SOURCE, path_of=_path)
operation = DIALECT.operation
