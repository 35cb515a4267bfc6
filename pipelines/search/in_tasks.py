"""What the programs into a search index share whose tasks write: each half of a partition is one request.

A request is answered when a search finds its documents (`refresh=wait_for`), which takes up to a second: the index
refreshes itself once in that time. Executors have no folder of the program's on their path, so this module and
documents.py are shipped by value.
"""

from __future__ import annotations

import http.client
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import documents
from pyspark import cloudpickle
from pyspark.sql import Row

for each in (documents, sys.modules[__name__]):
    cloudpickle.register_pickle_by_value(each)  # type: ignore[no-untyped-call]

NDJSON = {"Content-Type": "application/x-ndjson"}

Missing = Callable[[http.client.HTTPConnection, Sequence[Row]], Sequence[Row]]
"""Those of the rows that are to be written."""


def into(
    url: str, name: str, action: Callable[[Row], documents.Line], missing: Missing
) -> Callable[[Iterator[Row]], None]:
    """A writer for `foreachPartition`."""

    def save(rows: Iterator[Row]) -> None:
        place = urlsplit(url)
        with closing(http.client.HTTPConnection(place.hostname or "", place.port or 9200, timeout=60)) as server:
            for last, half in enumerate(documents.halves(list(rows))):
                found = missing(server, half)
                lines = (f"{json.dumps({'index': action(row)})}\n{row['document']}\n" for row in found)
                if found:
                    written(asked(server, f"/{name}/_bulk?refresh=wait_for", "".join(lines), stoppable=bool(last)))

    return save


def written(told: Any) -> None:
    """Raise RuntimeError unless each document is there."""
    items = [item["index"] for item in told["items"]]
    refused = [item for item in items if item["status"] >= 300 and item["status"] != documents.CONFLICT]
    if refused:
        raise RuntimeError(f"OpenSearch refused {len(refused)} of {len(items)} documents: {refused[0]}")


def asked(server: http.client.HTTPConnection, path: str, body: str, *, stoppable: bool = False) -> Any:
    """The answer, with a failpoint where the request is sent and not answered. Raises one of documents.FAILURES."""
    from harness import failpoint

    server.request("POST", path, body.encode(), NDJSON)
    if stoppable:
        failpoint.reach_in_task("rest-sent")
    answer = server.getresponse()
    text = answer.read()
    if answer.status >= 300:
        raise RuntimeError(f"OpenSearch answered with status {answer.status}: {text[:200]!r}")
    return json.loads(text)
