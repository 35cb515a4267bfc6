"""Signs a request to S3: AWS Signature Version 4, with the body's digest in a header."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import quote

ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True)
class Keys:
    """Who asks: the access key, its secret, and the region that signatures name."""

    access: str
    secret: str = field(repr=False)
    region: str


@dataclass(frozen=True)
class Request:
    """What is asked. `path` begins with `/` and is quoted already, `query` is in the order of its names."""

    method: str
    path: str
    query: str = ""
    body: bytes = b""


def quoted(text: str, *, safe: str = "") -> str:
    """As the signature wants it."""
    return quote(text, safe=f"{safe}-_.~")


def query(parameters: Mapping[str, str]) -> str:
    """Return the parameters as they are signed and sent."""
    return "&".join(f"{quoted(name)}={quoted(value)}" for name, value in sorted(parameters.items()))


def signed(request: Request, host: str, keys: Keys, now: datetime) -> dict[str, str]:
    """Return the headers that sign it; `now` is in UTC, `host` as the header of that name has it."""
    digest, at = hashlib.sha256(request.body).hexdigest(), now.strftime("%Y%m%dT%H%M%SZ")
    headers = {"host": host, "x-amz-content-sha256": digest, "x-amz-date": at}
    names = ";".join(headers)
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    canonical = "\n".join([request.method, request.path, request.query, lines, names, digest])
    scope = f"{at[:8]}/{keys.region}/s3/aws4_request"
    text = "\n".join([ALGORITHM, at, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{keys.secret}".encode()
    for part in scope.split("/"):
        key = _mac(key, part)
    credential = f"Credential={keys.access}/{scope}, SignedHeaders={names}, Signature={_mac(key, text).hex()}"
    return {**headers, "Authorization": f"{ALGORITHM} {credential}"}


def _mac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
