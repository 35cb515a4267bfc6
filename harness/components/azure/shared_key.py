"""Signs a request to Azure Storage: Shared Key, from version 2015-02-21 of the service on."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

KEY = "AZURE_STORAGE_KEY"
"""The variable that has an account's key."""
LINES = (
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
)
"""The headers whose values are lines of what is signed, in this order; those of `x-ms-…` come with their names."""


@dataclass(frozen=True)
class Account:
    """Who asks: a storage account, and one of its keys in base64."""

    name: str
    key: str = field(repr=False)


def signed_text(account: str, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> str:
    """Return the text that is signed. `path` is that of the request, quoted; `query` has plain values; the names of
    `headers` are in small letters, and `x-ms-date` is among them."""
    signed = {**headers, "date": ""}
    if signed.get("content-length") == "0":
        signed["content-length"] = ""
    own = "".join(f"{name}:{value}\n" for name, value in sorted(headers.items()) if name.startswith("x-ms-"))
    named = sorted((name.lower(), value) for name, value in query.items())
    parameters = "".join(f"\n{name}:{value}" for name, value in named)
    return "\n".join([method, *(signed.get(name, "") for name in LINES), f"{own}/{account}{path}{parameters}"])


def authorization(account: Account, text: str) -> str:
    """Return the header of that name for such a text."""
    mac = hmac.new(base64.b64decode(account.key), text.encode(), hashlib.sha256).digest()
    return f"SharedKey {account.name}:{base64.b64encode(mac).decode()}"
