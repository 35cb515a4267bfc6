"""Asks Azure's blob service as its emulator has it: requests signed by Shared Key."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import cached_property
from typing import NamedTuple
from urllib.parse import quote, urlencode
from xml.etree import ElementTree

from harness.errors import StackError
from harness.hosts.ports import LOOPBACK
from harness.remote.http import Http, NoAnswer, tree

ACCOUNT = "devstoreaccount1"
# The emulator's own, which its makers publish: no secret.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
PORT = 10000
"""Where Hadoop's connector looks for an emulator."""
LOG = "logs/azure.log"
VERSION = "2019-12-12"
GONE, CONFLICT = 404, 409


class Blob(NamedTuple):
    """A blob as a listing names it, or, with a `/` at its end, what the names of some go on with."""

    name: str
    size: int
    tag: str


@dataclass(frozen=True)
class BlobService:
    """The emulator's, at a port of its own."""

    port: int = PORT

    @cached_property
    def _http(self) -> Http:
        return Http(LOOPBACK, self.port)

    def close(self) -> None:
        """Close the connections to it."""
        self._http.close()

    @property
    def url(self) -> str:
        """Its address, without a login."""
        return f"http://{LOOPBACK}:{self.port}/{ACCOUNT}"

    def containers(self) -> list[str]:
        """Their names. Raises StackError."""
        status, data = self._ask("GET", "", {"comp": "list"})
        self._good("name its containers", status, data)
        return [each.text or "" for each in _tree(data).iter("Name")]

    def make_container(self, container: str) -> None:
        """Silent about one that is there. Raises StackError."""
        status, data = self._ask("PUT", f"/{container}", {"restype": "container"})
        self._good(f"make the container {container}", status, data, also=CONFLICT)

    def listed(self, container: str, prefix: str, *, deep: bool) -> Iterator[Blob]:
        """The blobs whose names begin so; not `deep`: up to the next `/`. Raises StackError."""
        asked = {"restype": "container", "comp": "list", "prefix": prefix, **({} if deep else {"delimiter": "/"})}
        while True:
            status, data = self._ask("GET", f"/{container}", asked)
            self._good(f"list {container}/{prefix}", status, data)
            page = _tree(data)
            yield from map(_blob, page.iter("Blob"))
            yield from (Blob(each.findtext("Name") or "", 0, "") for each in page.iter("BlobPrefix"))
            marker = page.findtext("NextMarker") or ""
            if not marker:
                return
            asked["marker"] = marker

    def read(self, container: str, name: str) -> bytes | None:
        """A blob; None if there is none. Raises StackError."""
        status, data = self._ask("GET", _path(container, name))
        if status == GONE:
            return None
        self._good(f"give {container}/{name}", status, data)
        return data

    def write(self, container: str, name: str, data: bytes) -> None:
        """Put a blob. Raises StackError."""
        status, said = self._ask("PUT", _path(container, name), body=data, more={"x-ms-blob-type": "BlockBlob"})
        self._good(f"take {container}/{name}", status, said)

    def delete(self, container: str, name: str) -> None:
        """Silent about what is not there. Raises StackError."""
        status, data = self._ask("DELETE", _path(container, name))
        self._good(f"delete {container}/{name}", status, data, also=GONE)

    def _good(self, what: str, status: int, data: bytes, *, also: int = 0) -> None:
        if status >= 300 and status != also:
            words = " ".join(data.decode("utf-8", "replace").split())[:200]
            raise StackError(f"asked Azurite at {self.url} to {what}; it said: status {status}, {words}")

    def _ask(
        self,
        method: str,
        path: str,
        asked: Mapping[str, str] | None = None,
        *,
        body: bytes = b"",
        more: Mapping[str, str] | None = None,
    ) -> tuple[int, bytes]:
        query = dict(sorted((asked or {}).items()))
        headers = {
            "x-ms-date": format_datetime(datetime.now(UTC), usegmt=True),
            "x-ms-version": VERSION,
            **(more or {}),
        }
        length = str(len(body)) if body else ""
        headers["Authorization"] = f"SharedKey {ACCOUNT}:{signature(method, path, query, headers, length)}"
        whole = f"/{ACCOUNT}{path or '/'}" + (f"?{urlencode(query)}" if query else "")
        try:
            found = self._http.ask(method, whole, headers, body if method == "PUT" else None)
        except NoAnswer as failure:
            raise StackError(f"asked Azurite at {self.url}; saw {failure}. See {LOG}") from failure
        return found.status, found.data


def signature(method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], length: str) -> str:
    """Shared Key over a request without any of the headers that it leaves lines for, but for the body's length."""
    named = "".join(f"{name}:{value}\n" for name, value in sorted(headers.items()) if name.startswith("x-ms-"))
    resource = f"/{ACCOUNT}/{ACCOUNT}{path or '/'}" + "".join(f"\n{name}:{value}" for name, value in query.items())
    text = "\n".join([method, "", "", length, "", "", "", "", "", "", "", "", f"{named}{resource}"])
    return base64.b64encode(hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()).decode()


def _path(container: str, name: str) -> str:
    return f"/{container}/{quote(name)}"


def _tree(data: bytes) -> ElementTree.Element:
    return tree(data, "Azurite", log=LOG)


def _blob(found: ElementTree.Element) -> Blob:
    said = found.find("Properties")
    size, tag = (said.findtext(name) or "" for name in ("Content-Length", "Etag")) if said is not None else ("", "")
    return Blob(found.findtext("Name") or "", int(size or 0), tag)
