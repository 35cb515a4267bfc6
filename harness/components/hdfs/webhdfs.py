"""Asks a NameNode, and DataNodes, over HTTP (WebHDFS). No login is needed: a user is only named."""

from __future__ import annotations

import getpass
import json
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from harness.errors import StackError
from harness.remote import Gone
from harness.remote.http import Answer, Http, NoAnswer, Refused

ANSWER_S = 60.0
USUAL_PORT = 80
PREFIX = "/webhdfs/v1"
HEADERS = {"Content-Type": "application/octet-stream"}
MISSING = "FileNotFoundException"
BLOCK = re.compile(rb"^[0-9]+\. \S+:(blk_[0-9]+)_", re.MULTILINE)
"""How `fsck` begins the line of a block."""
CURE = "write the address at which the NameNode answers over HTTP (port 9870, unless its settings say another one)"
OPERATIONAL = "Operational"
"""What the NameNode calls itself out of its safe mode."""


@dataclass(frozen=True)
class WebHdfs:
    """One file system, whose NameNode answers at `address` (`host:port`)."""

    address: str
    user: str = field(default_factory=getpass.getuser)
    _servers: dict[str, Http] = field(default_factory=dict, repr=False, compare=False)

    def close(self) -> None:
        """Close the connections to NameNode and DataNodes."""
        for server in list(self._servers.values()):
            server.close()

    def ask(self, method: str, operation: str, path: str, /, **options: str) -> Any:
        """Return the answer as JSON, None if it is empty. Raises Refused, and StackError where there is no answer."""
        where = f"{PREFIX}{quote(path)}?{urlencode({'op': operation, 'user.name': self.user, **options})}"
        request = f"asked HDFS at {self.address} for {operation} of {path}"
        body = _good(request, self._request(self.address, method, where))
        return _json(request, body) if body else None

    def there(self, operation: str, path: str) -> Any:
        """Return the answer to a question; None where there is no such file. Raises as `ask` does."""
        try:
            return self.ask("GET", operation, path)
        except Refused as refused:
            if refused.kind != MISSING:
                raise
            return None

    def read(self, path: str) -> bytes | None:
        """Return a file, whole; None where there is none. Raises Gone where no DataNode has a block of it, and
        StackError."""
        try:
            return self._by_datanode("GET", "OPEN", path)
        except Refused as refused:
            if refused.kind == MISSING:
                return None
            if self._gone(path):
                raise Gone(str(refused)) from refused
            raise

    def _gone(self, path: str) -> bool:
        """Return whether a block of it has no place, though a DataNode is there and has reported its blocks."""
        state, located = self.jmx("FSNamesystemState"), self.there("GET_BLOCK_LOCATIONS", path)
        if not located or not state or state["FSState"] != OPERATIONAL or not state["NumLiveDataNodes"]:
            return False
        return any(not block["locations"] for block in located["LocatedBlocks"]["locatedBlocks"])

    def blocks(self, path: str) -> set[str]:
        """Return the names of all blocks of the files below a folder, as a DataNode calls them on its disk
        (`blk_1073741825`); also of a file that is being written, and where no DataNode has them. Raises StackError."""
        query = f"{urlencode({'ugi': self.user, 'path': path})}&files=1&blocks=1&openforwrite=1"
        answer = self._request(self.address, "GET", f"/fsck?{query}")
        return {name.decode() for name in BLOCK.findall(_good(f"asked the NameNode for the blocks of {path}", answer))}

    def create(self, path: str, data: bytes) -> None:
        """Write a file, which others see at once, and grow. Raises StackError."""
        self._by_datanode("PUT", "CREATE", path, data, overwrite="true")

    def jmx(self, name: str) -> Any:
        """Return what the NameNode says of itself under the name `NameNodeInfo`, say; None if nothing. Raises
        StackError."""
        where = f"/jmx?{urlencode({'qry': f'Hadoop:service=NameNode,name={name}'})}"
        request = f"asked the NameNode at {self.address} for {name}"
        answer = _json(request, _good(request, self._request(self.address, "GET", where)))
        if not isinstance(answer, dict) or "beans" not in answer:
            raise StackError(f"{request}; its answer has no beans: {CURE}")
        return answer["beans"][0] if answer["beans"] else None

    def _by_datanode(self, method: str, operation: str, path: str, data: bytes | None = None, **options: str) -> bytes:
        """Return what the DataNode answers that the NameNode names. Raises as `ask` does."""
        named = self.ask(method, operation, path, noredirect="true", **options)
        if not isinstance(named, dict) or "Location" not in named:
            saw = "it names no DataNode, which Hadoop does from 3 on"
            raise StackError(f"asked HDFS at {self.address} for {operation} of {path}; {saw}: {CURE}")
        place = urlsplit(named["Location"])
        answer = self._request(place.netloc, method, f"{place.path}?{place.query}", data)
        return _good(f"asked the DataNode at {place.netloc} for {operation} of {path}", answer)

    def _request(self, address: str, method: str, where: str, data: bytes | None = None) -> Answer:
        place = urlsplit(f"//{address}")
        server = Http(place.hostname or "", place.port or USUAL_PORT, answer_s=ANSWER_S)
        server = self._servers.setdefault(address, server)
        try:
            # Only a question may be asked twice.
            return server.ask(method, where, HEADERS, data, fresh=method != "GET")
        except NoAnswer as failure:
            raise StackError(f"asked HDFS at {address} to {method} {where.partition('?')[0]}; {failure}") from failure


def _json(request: str, data: bytes) -> Any:
    """Return what was answered. Raises StackError where it is no JSON: then it is another server."""
    try:
        return json.loads(data)
    except ValueError:
        saw = " ".join(data[:60].decode("utf-8", "replace").split())
        raise StackError(f"{request}; it answered {saw!r}, which is no JSON: {CURE}") from None


def _good(request: str, answer: Answer) -> bytes:
    """Return what was answered. Raises Refused."""
    if answer.status < 400:
        return answer.data
    try:
        refusal = json.loads(answer.data)["RemoteException"]
        kind, words = str(refusal["exception"]), " ".join(str(refusal["message"]).split())[:300]
    except (ValueError, LookupError, TypeError):
        kind, words = "", f"status {answer.status}"
    raise Refused(f"{request}; it said: {words}", answer.status, kind)
