"""Asks an OpenSearch server over HTTP. No answer is taken for good that says of a part of the server that it failed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import urllib3

from harness.errors import StackError, UsageError, one_line
from harness.sinks.json_values import fields

CONNECT_S = 5.0
ANSWER_S = 120.0
BUSY = 429
SHOWN = 120
OWN_FAULT = 500
"""From here on it is the server that failed, and not who asked."""

Answer = TypeVar("Answer")


class Refused(UsageError):
    """The server says that what was asked is wrong. `kind` is its word for it, such as `index_not_found_exception`."""

    def __init__(self, words: str, kind: str) -> None:
        super().__init__(words)
        self.kind = kind


@dataclass(frozen=True)
class Server:
    """One, at `http://host:port`."""

    url: str
    user: str = ""
    password: str = field(default="", repr=False)
    _pool: urllib3.PoolManager = field(default_factory=urllib3.PoolManager, repr=False, compare=False)

    @property
    def whole(self) -> str:
        """Its address with the login."""
        scheme, _, place = self.url.partition("://")
        login = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}@" if self.user else ""
        return f"{scheme}://{login}{place}"

    def ask(self, what: str, method: str, path: str, body: Any = None, /, **parameters: str) -> Any:
        """Return the answer; `what` says in words what was asked, `parameters` are parameters of the address. Raises
        Refused, and StackError if the server does not answer, or did a part of it only."""
        return self._whole(json.loads, what, self.text(what, method, path, body, **parameters))

    def exactly(self, what: str, method: str, path: str, body: Any = None, /, **parameters: str) -> dict[str, Any]:
        """Return the same, with each number as the text that it is written as."""
        return self._whole(fields, what, self.text(what, method, path, body, **parameters))

    def _whole(self, read: Callable[[str], Answer], what: str, text: str) -> Answer:
        try:
            answer = read(text)
        except ValueError as failure:
            shown = " ".join(text.split())[:SHOWN] or "nothing"
            words = f"saw an answer that is no JSON of OpenSearch's: {shown}"
            raise StackError(
                f"asked OpenSearch at {self.url} to {what}; {words}. Is it OpenSearch that answers at this address?"
            ) from failure
        whole(answer, f"asked OpenSearch to {what}")
        return answer

    def text(self, what: str, method: str, path: str, body: Any = None, /, **parameters: str) -> str:
        """Return the answer as the text that it is. Raises as `ask` does, but for parts."""
        headers = {"Content-Type": "application/json"}
        if self.user:
            headers |= urllib3.make_headers(basic_auth=f"{self.user}:{self.password}")
        try:
            answer = self._pool.request(
                method,
                f"{self.url}{path}?{urlencode(parameters)}",
                body=None if body is None else json.dumps(body),
                headers=headers,
                retries=False,
                timeout=urllib3.Timeout(connect=CONNECT_S, read=ANSWER_S),
            )
            text = answer.data.decode("utf-8")
        except (urllib3.exceptions.HTTPError, UnicodeDecodeError) as failure:
            asked = f"asked OpenSearch at {self.url} to {what}"
            raise StackError(f"{asked}; saw {one_line(failure)}. See logs/opensearch.log") from failure
        if answer.status >= 400:
            raise _refusal(f"asked OpenSearch at {self.url} to {what}", answer.status, text)
        return text


def whole(answer: Any, request: str) -> None:
    """Raise StackError for an answer that some shard has no part in."""
    failed = answer.get("_shards", {}).get("failed", 0) if isinstance(answer, dict) else 0
    if int(failed) or (isinstance(answer, dict) and answer.get("timed_out")):
        raise StackError(f"{request}; {failed} of its shards failed. See logs/opensearch.log")


def _refusal(request: str, status: int, text: str) -> Exception:
    try:
        error = json.loads(text)["error"]
        kind, words = str(error["type"]), " ".join(str(error["reason"]).split())
    except (ValueError, LookupError, TypeError):
        kind, words = "", " ".join(text.split())[:200]
    if status == BUSY or status >= OWN_FAULT:
        return StackError(f"{request}; it could not: status {status}, {words}. See logs/opensearch.log")
    return Refused(f"{request}; it said: {words or f'status {status}'}", kind)
