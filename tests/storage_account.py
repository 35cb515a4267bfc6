"""Stands in for an account of Azure Storage: as much of the Blob and the DFS protocol, without TLS, as the harness and
Hadoop's ABFS driver ask for. Signatures are checked. It is no Azure: it shows what is asked, and not what the service
does."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import unquote
from xml.sax.saxutils import escape

import pytest

from harness.components.azure import address
from harness.components.azure.blob import BlobService
from harness.components.azure.shared_key import Account, authorization, signed_text

NAME, CONTAINER = "myaccount", "mycontainer"
KEY = "c2VjcmV0LXNlY3JldC1zZWNyZXQ+c2VjcmV0/2VjcmV0c2VjcmV0c2VjcmV0c2U="
MODIFIED = "Fri, 26 Jun 2015 23:39:12 GMT"
PAGE = 3


class Said(NamedTuple):
    """An answer."""

    status: int
    data: bytes = b""
    headers: Mapping[str, str] = {}


class Failed(Exception):
    """An answer that is a refusal: its status, and the service's word for it."""

    def __init__(self, status: int, kind: str) -> None:
        super().__init__(kind)
        self.status, self.kind = status, kind


@dataclass(eq=False)
class Asked:
    """A request. `path` is in the container, without a `/` at its ends; `whole` and `query` are as they were sent."""

    method: str
    whole: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def container(self) -> str:
        return unquote(self.whole).strip("/").split("/")[1] if self.whole.strip("/").count("/") else ""

    @property
    def path(self) -> str:
        return "/".join(unquote(self.whole).strip("/").split("/")[2:])

    @property
    def by_dfs(self) -> bool:
        """Return whether it is the driver's, which always says how long it would wait."""
        return "timeout" in self.query


@dataclass(eq=False)
class StorageAccount:
    """What is in the one container, by path: None is a folder. `refuses` is what it says to everything;
    `late_s` is how long a flush, which is done, has no answer: the request after it is a rename's;
    `asked` what the driver has asked for."""

    hierarchical: bool = True
    late_s: float = 0.0
    refuses: Failed | None = None
    there: dict[str, bytes | None] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    _staged: dict[str, bytes] = field(default_factory=dict)
    _tags: dict[str, int] = field(default_factory=dict)
    _changes: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)

    def answer(self, asked: Asked) -> Said:
        """Raises Failed."""
        if asked.by_dfs:
            self.asked.append(asked)
        headers = {name.lower(): value.strip() for name, value in asked.headers.items()}
        text = signed_text(NAME, asked.method, asked.whole, asked.query, headers)
        if headers.get("authorization") != authorization(Account(NAME, KEY), text):
            raise Failed(403, "AuthenticationFailed")
        if self.refuses is not None:
            raise self.refuses
        if asked.query.get("restype") == "account":
            return Said(200, headers={"x-ms-is-hns-enabled": str(self.hierarchical).lower()})
        if asked.container != CONTAINER:
            raise Failed(404, "FilesystemNotFound" if asked.by_dfs else "ContainerNotFound")
        return self._dfs(asked, headers) if asked.by_dfs else self._blob(asked)

    def _blob(self, asked: Asked) -> Said:
        if asked.query.get("comp") == "list":
            return Said(200, self._page(asked.query))
        if asked.method == "PUT":
            self._put(asked.path, asked.body)
            return Said(201)
        if asked.path not in self.there:
            raise Failed(404, "BlobNotFound")
        if asked.method == "DELETE":
            if self._inside(asked.path):
                raise Failed(409, "DirectoryIsNotEmpty")
            del self.there[asked.path]
            return Said(202)
        return Said(200, self.there[asked.path] or b"")

    def _page(self, query: Mapping[str, str]) -> bytes:
        prefix, deep = query["prefix"], "delimiter" not in query
        names = sorted(path for path in self.there if path.startswith(prefix))
        if not deep:
            folders = {f"{path}/" for path in names if self.there[path] is None and "/" not in path[len(prefix) :]}
            cut = {prefix + path[len(prefix) :].partition("/")[0] + "/" for path in names if "/" in path[len(prefix) :]}
            names = [path for path in names if "/" not in path[len(prefix) :] and self.there[path] is not None]
            names = sorted({*names, *folders, *cut})
        start = int(query.get("marker", "0"))
        found = "".join(map(self._entry, names[start : start + PAGE]))
        marker = str(start + PAGE) if len(names) > start + PAGE else ""
        xml = f"<EnumerationResults><Blobs>{found}</Blobs><NextMarker>{marker}</NextMarker></EnumerationResults>"
        return b'\xef\xbb\xbf<?xml version="1.0" encoding="utf-8"?>' + xml.encode()

    def _entry(self, name: str) -> str:
        if name.endswith("/"):
            return f"<BlobPrefix><Name>{escape(name)}</Name></BlobPrefix>"
        size = len(self.there[name] or b"")
        said = f"<Content-Length>{size}</Content-Length><Etag>{self._tag(name)}</Etag>"
        return f"<Blob><Name>{escape(name)}</Name><Properties>{said}</Properties></Blob>"

    def _dfs(self, asked: Asked, headers: Mapping[str, str]) -> Said:
        action = asked.query.get("action") or asked.query.get("resource") or ""
        method = headers.get("x-http-method-override", asked.method)
        if method == "HEAD":
            return self._status(asked.path, action)
        if method == "GET":
            return self._list(asked.query) if action == "filesystem" else self._read(asked.path, headers)
        if method == "DELETE":
            return self._delete(asked.path, asked.query)
        if method == "PATCH":
            return self._update(asked, action)
        if source := headers.get("x-ms-rename-source"):
            self._rename(unquote(source).strip("/").partition("/")[2], asked.path, headers)
        else:
            self._create(asked.path, headers, folder=action == "directory")
        return self._told(201, asked.path)

    def _status(self, path: str, action: str) -> Said:
        if path and path not in self.there:
            raise Failed(404, "PathNotFound")
        data = self.there.get(path) if path else None
        own = {"x-ms-owner": "$superuser", "x-ms-group": "$superuser", "x-ms-permissions": "rwxr-x---"}
        kind = "directory" if data is None else "file"
        acl = {"x-ms-acl": "user::rwx,group::r-x,other::---"} if action == "getAccessControl" else {}
        length = {"Content-Length": str(len(data or b""))}
        return self._told(200, path, {**own, **acl, **length, "x-ms-resource-type": kind})

    def _list(self, query: Mapping[str, str]) -> Said:
        folder = query.get("directory", "").strip("/")
        if folder and folder not in self.there:
            raise Failed(404, "PathNotFound")
        # Of a file the list has that one.
        file = [folder] if self.there.get(folder) is not None else []
        found = file or [path for path in sorted(self.there) if _parent(path) == folder]
        paths = [
            {
                "name": path,
                "isDirectory": str(self.there[path] is None).lower(),
                "contentLength": str(len(self.there[path] or b"")),
                "lastModified": MODIFIED,
                "etag": self._tag(path),
                "owner": "$superuser",
                "group": "$superuser",
                "permissions": "rwxr-x---",
            }
            for path in found
        ]
        return Said(200, json.dumps({"paths": paths}).encode(), {"Content-Type": "application/json"})

    def _read(self, path: str, headers: Mapping[str, str]) -> Said:
        data = self.there.get(path)
        if data is None:
            raise Failed(404, "PathNotFound")
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", headers.get("range", ""))
        first, last = (int(found[1]), int(found[2]) + 1) if found else (0, len(data))
        if first >= len(data):
            raise Failed(416, "InvalidRange")
        return self._told(206 if found else 200, path, data=data[first:last])

    def _delete(self, path: str, query: Mapping[str, str]) -> Said:
        if path not in self.there:
            raise Failed(404, "PathNotFound")
        inside = self._inside(path)
        if inside and query.get("recursive") != "true":
            raise Failed(409, "DirectoryNotEmpty")
        for each in (path, *inside):
            del self.there[each]
        return Said(200)

    def _update(self, asked: Asked, action: str) -> Said:
        path = asked.path
        if path not in self.there:
            raise Failed(404, "PathNotFound")
        if action == "append":
            staged = self._staged.setdefault(path, self.there[path] or b"")
            self._staged[path] = staged[: int(asked.query["position"])] + asked.body
        if action == "flush" or asked.query.get("flush") == "true":
            self._put(path, self._staged.pop(path, self.there[path] or b""))
        return self._told(202 if action == "append" else 200, path)

    def _create(self, path: str, headers: Mapping[str, str], *, folder: bool) -> None:
        there = path in self.there
        if there and (headers.get("if-none-match") == "*" or (self.there[path] is None) is not folder):
            raise Failed(409, "PathAlreadyExists")
        if there and headers.get("if-match", self._tag(path)) != self._tag(path):
            raise Failed(412, "ConditionNotMet")
        if not (there and folder):
            self._put(path, None if folder else b"")

    def _rename(self, source: str, to: str, headers: Mapping[str, str]) -> None:
        if source not in self.there:
            raise Failed(404, "SourcePathNotFound")
        if to in self.there and headers.get("if-none-match") == "*":
            raise Failed(409, "PathAlreadyExists")
        if _parent(to) and _parent(to) not in self.there:
            raise Failed(404, "RenameDestinationParentPathNotFound")
        for each in (source, *self._inside(source)):
            self._put(to + each[len(source) :], self.there.pop(each))

    def _put(self, path: str, data: bytes | None) -> None:
        if self.hierarchical and _parent(path) and _parent(path) not in self.there:
            self._put(_parent(path), None)
        self._changes += 1
        self.there[path], self._tags[path] = data, self._changes

    def _inside(self, path: str) -> list[str]:
        return [each for each in self.there if each.startswith(f"{path}/")] if self.hierarchical else []

    def _tag(self, path: str) -> str:
        return f'"0x{self._tags.get(path, 0):X}"'

    def _told(self, status: int, path: str, more: Mapping[str, str] | None = None, *, data: bytes = b"") -> Said:
        return Said(status, data, {"ETag": self._tag(path), "Last-Modified": MODIFIED, **(more or {})})


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


class Handler(BaseHTTPRequestHandler):
    """Has an account answer."""

    account: StorageAccount
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        whole, _, query = self.path.partition("?")
        pairs = (each.partition("=") for each in query.split("&"))
        said = {unquote(name): unquote(value) for name, _, value in pairs if value}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = Asked(self.command, whole, said, dict(self.headers.items()), body)
        try:
            with self.account.lock:
                found = self.account.answer(asked)
        except Failed as failed:
            found = _refusal(failed, json_form=asked.by_dfs)
        if said.get("action") == "flush":
            threading.Event().wait(self.account.late_s)
        length = {} if "Content-Length" in found.headers else {"Content-Length": str(len(found.data))}
        self.send_response(found.status)
        for name, value in {**found.headers, **length, "x-ms-request-id": "1"}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(found.data)

    do_PUT = do_DELETE = do_HEAD = do_PATCH = do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def _refusal(failed: Failed, *, json_form: bool) -> Said:
    words = f"The server says {failed.kind}.\nRequestId:1\nTime:now"
    data = (
        json.dumps({"error": {"code": failed.kind, "message": words}})
        if json_form
        else f"<Error><Code>{failed.kind}</Code><Message>{words}</Message></Error>"
    )
    return Said(failed.status, data.encode(), {"x-ms-error-code": failed.kind})


@contextmanager
def standing(account: StorageAccount) -> Iterator[int]:
    """The account, at a port of loopback."""
    kind = type("Own", (Handler,), {"account": account})
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def in_its_place(account: StorageAccount, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Standing, and asked wherever the harness asks an account, whose key is in the environment."""
    monkeypatch.setenv("AZURE_STORAGE_KEY", KEY)
    with standing(account) as port, ExitStack() as ends:

        def asked(who: Account, host: str) -> BlobService:
            made = replace(service(port), account=who)
            ends.callback(made.close)
            return made

        monkeypatch.setattr(address, "blob_service", asked)
        yield port


def service(port: int, *, key: str = KEY) -> BlobService:
    """How the harness asks it there."""
    return BlobService(Account(NAME, key), "127.0.0.1", port, secure=False, in_path=True)
