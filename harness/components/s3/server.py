"""Asks an S3 server: signed requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from urllib.parse import unquote_plus
from xml.etree import ElementTree

from harness.components.s3.signature import Keys, Request, query, quoted, signed
from harness.errors import StackError
from harness.remote.http import Answer, Http, NoAnswer, Refused, tree
from harness.remote.objects import Object, refusal
from harness.remote.proxy.commits import Dialect

LOG = "logs/s3.log"
CURE = "write the address of an S3 server (https://ACCESS_KEY:SECRET@host:port/bucket)"
GONE = 404


@dataclass(frozen=True)
class Server:
    """One, at a host and port. Paths name the bucket: `http://host:port/bucket/key`."""

    host: str
    port: int
    keys: Keys
    secure: bool = False
    dialect = Dialect(silent=frozenset({"x-id"}), copy_source="x-amz-copy-source")
    above = ""

    @cached_property
    def _http(self) -> Http:
        return Http(self.host, self.port, self.secure)

    def close(self) -> None:
        """Close the connections to it."""
        self._http.close()

    @property
    def url(self) -> str:
        """Its address, without a login."""
        return f"{'https' if self.secure else 'http'}://{self.host}:{self.port}"

    @property
    def whole(self) -> str:
        """Its address with the login."""
        scheme, _, place = self.url.partition("://")
        return f"{scheme}://{quoted(self.keys.access)}:{quoted(self.keys.secret)}@{place}"

    def buckets(self) -> list[str]:
        """Return their names. Raises Refused, StackError."""
        found = self._xml("name its buckets", Request("GET", "/"), "ListAllMyBucketsResult")
        return [each.text or "" for each in found.iter("Name")]

    def make_bucket(self, bucket: str) -> None:
        """Silent about one of ours that is there. Raises Refused, StackError."""
        try:
            self._ask(f"make the bucket {bucket}", Request("PUT", _path(bucket)))
        except Refused as refused:
            if refused.kind != "BucketAlreadyOwnedByYou":
                raise

    def listed(self, bucket: str, prefix: str, *, deep: bool = True) -> Iterator[Object]:
        """Yield the objects whose keys begin so, by key. Not `deep`: those whose keys go on without a `/`, and, with
        one at the end, what the other ones go on with up to there. Raises Refused, StackError."""
        parameters = {
            "list-type": "2",
            "prefix": prefix,
            "encoding-type": "url",
            **({} if deep else {"delimiter": "/"}),
        }
        while True:
            request = Request("GET", _path(bucket), query(parameters))
            page = self._xml(f"list {bucket}/{prefix}", request, "ListBucketResult")
            coded = page.findtext("EncodingType") == "url"
            yield from (_object(each, coded=coded) for each in page.iter("Contents"))
            folders = [each.findtext("Prefix") or "" for each in page.iter("CommonPrefixes")]
            yield from (Object(unquote_plus(key) if coded else key, 0, "") for key in folders)
            if page.findtext("IsTruncated") != "true":
                return
            parameters["continuation-token"] = page.findtext("NextContinuationToken") or ""

    def read(self, bucket: str, key: str) -> bytes | None:
        """Return the object; None if there is none. Raises Refused, StackError."""
        try:
            return self._ask(f"give {bucket}/{key}", Request("GET", _path(bucket, key))).data
        except Refused as refused:
            if refused.kind == "NoSuchKey":
                return None
            raise

    def write(self, bucket: str, key: str, data: bytes) -> None:
        """Put the object. Raises Refused, StackError."""
        self._ask(f"take {bucket}/{key}", Request("PUT", _path(bucket, key), body=data))

    def delete(self, bucket: str, key: str) -> None:
        """Silent about what is not there. Raises Refused, StackError."""
        try:
            self._ask(f"delete {bucket}/{key}", Request("DELETE", _path(bucket, key)))
        except Refused as refused:
            if refused.status != GONE:
                raise

    def _xml(self, what: str, request: Request, kind: str) -> ElementTree.Element:
        """Return an answer in XML of that kind. Raises as `_ask` does, and StackError for that of another server."""
        data = self._ask(what, request).data
        with suppress(StackError):
            found = tree(data, "S3", log=LOG)
            if found.tag == kind:
                return found
        saw = " ".join(data[:60].decode("utf-8", "replace").split())
        raise StackError(f"asked S3 at {self.url} to {what}; it answered {saw!r}, which no S3 does: {CURE}")

    def _ask(self, what: str, request: Request) -> Answer:
        question = f"asked S3 at {self.url} to {what}"
        usual = 443 if self.secure else 80
        host = self.host if self.port == usual else f"{self.host}:{self.port}"
        headers = signed(request, host, self.keys, datetime.now(UTC))
        target = f"{request.path}?{request.query}" if request.query else request.path
        try:
            answer = self._http.ask(request.method, target, headers, request.body or None)
        except NoAnswer as failure:
            raise StackError(f"{question}; saw {failure}. See {LOG}") from failure
        if answer.status >= 300:
            raise refusal(question, answer, log=LOG)
        return answer


def _path(bucket: str, key: str = "") -> str:
    return f"/{quoted(bucket)}/{quoted(key, safe='/')}" if key else f"/{quoted(bucket)}"


def _object(found: ElementTree.Element, *, coded: bool) -> Object:
    key = found.findtext("Key") or ""
    tag = (found.findtext("ETag") or "").strip('"')
    changed = found.findtext("LastModified") or ""
    return Object(unquote_plus(key) if coded else key, int(found.findtext("Size") or 0), f"{tag} {changed}")
