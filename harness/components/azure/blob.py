"""Asks a blob service of Azure's, or its emulator: requests signed by Shared Key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import cached_property
from urllib.parse import quote, urlencode
from xml.etree import ElementTree

from harness.components.azure.shared_key import Account, authorization, signed_text
from harness.errors import StackError
from harness.hosts.ports import LOOPBACK
from harness.remote.http import Answer, Http, NoAnswer, Refused, see, tree
from harness.remote.objects import Object, refusal
from harness.remote.proxy.commits import Dialect

# The emulator's own, which its makers publish: no secret.
EMULATED = Account(
    "devstoreaccount1",
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
)
PORT = 10000
"""Where Hadoop's connector looks for an emulator."""
LOG = "logs/azure.log"
VERSION = "2019-12-12"
TLS = 443
GONE, CONFLICT = 404, 409
NO_CONTAINER = "ContainerNotFound"
HIERARCHICAL = "x-ms-is-hns-enabled"


@dataclass(frozen=True)
class BlobService:
    """One, at a host and port. `in_path`: the account is named in the path, as the emulator has it, and not by the
    host."""

    account: Account
    host: str
    port: int = TLS
    secure: bool = True
    in_path: bool = False
    what: str = "Azure Storage"
    log: str = ""
    dialect = Dialect(silent=frozenset({"timeout"}), copy_source="x-ms-copy-source")

    @cached_property
    def _http(self) -> Http:
        return Http(self.host, self.port, self.secure)

    def close(self) -> None:
        """Close the connections to it."""
        self._http.close()

    @property
    def url(self) -> str:
        """Its address, without a login."""
        port = "" if self.secure and self.port == TLS else f":{self.port}"
        return f"{'https' if self.secure else 'http'}://{self.host}{port}{self._root}"

    @property
    def above(self) -> str:
        """What the path of a request has before the container."""
        return f"{self.account.name}/" if self.in_path else ""

    @property
    def _root(self) -> str:
        return f"/{self.above}".rstrip("/")

    def hierarchical(self) -> bool:
        """Return whether the account has a hierarchical namespace. Raises StackError."""
        what = "say what kind of account it is"
        kind = self._ask(what, "GET", "", {"restype": "account", "comp": "properties"}).headers.get(HIERARCHICAL)
        if kind not in ("true", "false"):
            raise StackError(f"asked {self.what} at {self.url} to {what}; its answer has no {HIERARCHICAL}")
        return kind == "true"

    def containers(self) -> list[str]:
        """Return their names. Raises StackError."""
        found = self._tree(self._ask("name its containers", "GET", "", {"comp": "list"}))
        return [each.text or "" for each in found.iter("Name")]

    def make_container(self, container: str) -> None:
        """Silent about one that is there. Raises StackError."""
        self._ask(f"make the container {container}", "PUT", f"/{container}", {"restype": "container"}, also=CONFLICT)

    def listed(self, container: str, prefix: str, *, deep: bool) -> Iterator[Object]:
        """Yield the blobs whose names begin so; not `deep`: up to the next `/`. Of an account with a hierarchical
        namespace a deep listing names folders too, as blobs. Raises StackError."""
        query = {"restype": "container", "comp": "list", "prefix": prefix, **({} if deep else {"delimiter": "/"})}
        while True:
            page = self._tree(self._ask(f"list {container}/{prefix}", "GET", f"/{container}", query))
            yield from map(_blob, page.iter("Blob"))
            yield from (Object(each.findtext("Name") or "", 0, "") for each in page.iter("BlobPrefix"))
            marker = page.findtext("NextMarker") or ""
            if not marker:
                return
            query["marker"] = marker

    def read(self, container: str, name: str) -> bytes | None:
        """Return a blob; None if there is none. Raises StackError."""
        answer = self._ask(f"give {container}/{name}", "GET", _path(container, name), also=GONE)
        return None if answer.status == GONE else answer.data

    def write(self, container: str, name: str, data: bytes) -> None:
        """Put a blob. Raises StackError."""
        path = _path(container, name)
        self._ask(f"take {container}/{name}", "PUT", path, body=data, more={"x-ms-blob-type": "BlockBlob"})

    def delete(self, container: str, name: str) -> None:
        """Silent about what is not there. A folder of a hierarchical namespace has to be empty. Raises StackError."""
        self._ask(f"delete {container}/{name}", "DELETE", _path(container, name), also=GONE)

    def _ask(
        self,
        what: str,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        also: int = 0,
        body: bytes = b"",
        more: Mapping[str, str] | None = None,
    ) -> Answer:
        """Return the answer. `also`: a status that is no refusal, but for a container that is not there. Raises
        StackError."""
        target = self._root + (path or "/")
        headers = {
            "x-ms-date": format_datetime(datetime.now(UTC), usegmt=True),
            "x-ms-version": VERSION,
            **(more or {}),
        }
        lengths = {"content-length": str(len(body))}
        text = signed_text(self.account.name, method, target, query or {}, {**headers, **lengths})
        headers["Authorization"] = authorization(self.account, text)
        whole = target + (f"?{urlencode(query, quote_via=quote)}" if query else "")
        request = f"asked {self.what} at {self.url} to {what}"
        try:
            answer = self._http.ask(method, whole, headers, body if method == "PUT" else None)
        except NoAnswer as failure:
            raise StackError(f"{request}; saw {failure}{see(self.log)}") from failure
        if answer.status >= 300:
            refused = refusal(request, answer, log=self.log)
            if answer.status != also or (isinstance(refused, Refused) and refused.kind == NO_CONTAINER):
                raise refused
        return answer

    def _tree(self, answer: Answer) -> ElementTree.Element:
        return tree(answer.data, f"{self.what} at {self.url}", log=self.log)


def emulator(port: int = PORT) -> BlobService:
    """Azurite's, on loopback."""
    return BlobService(EMULATED, LOOPBACK, port, secure=False, in_path=True, what="Azurite", log=LOG)


def _path(container: str, name: str) -> str:
    return f"/{container}/{quote(name)}"


def _blob(found: ElementTree.Element) -> Object:
    properties = found.find("Properties")
    size, tag = (
        (properties.findtext(name) or "" for name in ("Content-Length", "Etag")) if properties is not None else ("", "")
    )
    return Object(found.findtext("Name") or "", int(size or 0), tag)
