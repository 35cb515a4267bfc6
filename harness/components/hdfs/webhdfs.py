"""Asks a NameNode, and DataNodes, over HTTP (WebHDFS). Nobody has to log in: a user is only named."""

from __future__ import annotations

import getpass
import http.client
import json
import threading
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from harness.errors import StackError

ANSWER_S = 60.0
PREFIX = "/webhdfs/v1"
MISSING = "FileNotFoundException"


class Refused(StackError):
    """The file system says no. `kind` is its word for it, such as `SafeModeException`."""

    def __init__(self, words: str, kind: str) -> None:
        super().__init__(words)
        self.kind = kind


@dataclass(frozen=True)
class WebHdfs:
    """One file system, whose NameNode answers at `address` (`host:port`). Each thread has a connection of its own."""

    address: str
    user: str = field(default_factory=getpass.getuser)
    _own: threading.local = field(default_factory=threading.local, repr=False, compare=False)

    def ask(self, method: str, operation: str, path: str, /, **asked: str) -> Any:
        """The answer as JSON, None if it is empty. Raises Refused, and StackError where nobody answers."""
        where = f"{PREFIX}{quote(path)}?{urlencode({'op': operation, 'user.name': self.user, **asked})}"
        status, body = self._request(self.address, method, where)
        _good(f"asked HDFS at {self.address} for {operation} of {path}", status, body)
        return json.loads(body) if body else None

    def there(self, operation: str, path: str) -> Any:
        """The answer to a question; None where there is no such file. Raises as `ask` does."""
        try:
            return self.ask("GET", operation, path)
        except Refused as refused:
            if refused.kind != MISSING:
                raise
            return None

    def read(self, path: str) -> bytes | None:
        """A file, whole; None where there is none. Raises StackError, also where no DataNode has a block of it."""
        try:
            place = urlsplit(self.ask("GET", "OPEN", path, noredirect="true")["Location"])
        except Refused as refused:
            if refused.kind != MISSING:
                raise
            return None
        status, body = self._request(place.netloc, "GET", f"{place.path}?{place.query}")
        try:
            _good(f"asked the DataNode at {place.netloc} for {path}", status, body)
        except Refused as refused:
            if refused.kind != MISSING:
                raise
            return None
        return body

    def create(self, path: str, data: bytes, *, overwrite: bool = True) -> None:
        """Write a file, which others see at once, and grow. Raises StackError."""
        self._send("PUT", "CREATE", path, data, overwrite=str(overwrite).lower())

    def jmx(self, name: str) -> Any:
        """What the NameNode says of itself under the name `NameNodeInfo`, say; None if nothing. Raises StackError."""
        where = f"/jmx?{urlencode({'qry': f'Hadoop:service=NameNode,name={name}'})}"
        status, body = self._request(self.address, "GET", where)
        _good(f"asked the NameNode at {self.address} for {name}", status, body)
        beans = json.loads(body)["beans"]
        return beans[0] if beans else None

    def _send(self, method: str, operation: str, path: str, data: bytes, **asked: str) -> None:
        place = urlsplit(self.ask(method, operation, path, noredirect="true", **asked)["Location"])
        status, body = self._request(place.netloc, method, f"{place.path}?{place.query}", data)
        _good(f"asked the DataNode at {place.netloc} for {operation} of {path}", status, body)

    def _request(self, address: str, method: str, where: str, data: bytes | None = None) -> tuple[int, bytes]:
        """Status and body. A connection is kept for what may be asked twice: its server may have closed it."""
        kept = getattr(self._own, "kept", None)
        if kept is None:
            kept = self._own.kept = {}
        for fresh in (address not in kept or method != "GET", True):
            if fresh:
                if address in kept:
                    kept[address].close()
                kept[address] = http.client.HTTPConnection(address, timeout=ANSWER_S)
            try:
                kept[address].request(method, where, body=data, headers={"Content-Type": "application/octet-stream"})
                answer = kept[address].getresponse()
                return answer.status, answer.read()
            except (OSError, http.client.HTTPException) as failure:
                kept.pop(address).close()
                if fresh or isinstance(failure, TimeoutError):
                    words = " ".join(str(failure).split()) or type(failure).__name__
                    raise StackError(
                        f"asked HDFS at {address} to {method} {where.partition('?')[0]}; {words}"
                    ) from failure
        raise AssertionError("one of the two has returned or raised")


def _good(asked: str, status: int, body: bytes) -> None:
    if status < 400:
        return
    try:
        said = json.loads(body)["RemoteException"]
        kind, words = str(said["exception"]), " ".join(str(said["message"]).split())[:300]
    except (ValueError, LookupError, TypeError):
        kind, words = "", f"status {status}"
    raise Refused(f"{asked}; it said: {words}", kind)
