"""Reads a run's index whole and exactly, and takes its fingerprint while it may still change.

A refresh first, then a scroll: one view of every primary shard, a page at a time, in the order in which documents lie
there. A copy of a shard may be behind, where it is sent segments (`replication.type`). An order by `_id` would take the
ids of all documents into the server's memory. By `routing` two shards may hold two documents under one id: that order
passes over one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from harness.checkers.cells import Row
from harness.components.opensearch.run_indexes import ABSENT, Indexes
from harness.components.opensearch.server import Refused
from harness.components.opensearch.sink import refresh
from harness.components.opensearch.sink.documents import row_of
from harness.components.opensearch.sink.mapping import Field, Index, columns_of, fields_of
from harness.components.opensearch.sink.mapping import described as index_of
from harness.errors import StackError
from harness.sinks.base import Missing, Reading
from harness.sinks.json_columns import Wanted
from harness.wait import Deadline

PAGE = 5_000
KEPT = "2m"
"""How long the server keeps the view between two pages."""
READ_S = 600.0
SHOWN = 80
QUERY = {
    "size": PAGE,
    "sort": ["_doc"],
    "query": {"match_all": {}},
    "version": True,
    "track_total_hits": True,
    "stats": [refresh.OURS],
}
# A shard that is away is an error, and no pipeline of the index changes what is found.
ALL = {"scroll": KEPT, "allow_partial_search_results": "false", "search_pipeline": "_none", "preference": "_primary"}


@contextmanager
def reading(
    own: Indexes, target: str, wanted: Sequence[Wanted], key: Sequence[str], *, wait_ms: int = 0
) -> Iterator[Reading]:
    """Columns and canonical rows, in parts of a page, of one view. With `wait_ms` a writer may be at work: for so long
    an index that is searched may refresh itself before it is refreshed. Raises Missing if it is not there; UsageError
    for a field or a document that cannot be read exactly; StackError if the server does not answer whole."""
    request, path = f"read the index {target}", f"/{own.named(target)}"
    with _missing(target):
        index = described(own, target)
        fields = fields_of(index, wanted)
        if wait_ms and _searched(own, index):
            refresh.by_itself(own.server, index, _writes(own, target, index), within_s=wait_ms / 1000)
        _refresh(own, target)
        first = own.server.exactly(request, "POST", f"{path}/_search", QUERY, **ALL)
    scroll = str(first["_scroll_id"])
    try:
        parts = _parts(own, request, first, index, fields, all_of_it=not wanted)
        yield Reading(columns_of(fields), parts, lambda: _unique(index, fields, key))
    finally:
        # It ends by itself after a while.
        with suppress(StackError, Refused):
            own.server.ask("end the view", "DELETE", "/_search/scroll", {"scroll_id": scroll})


def _parts(
    own: Indexes, request: str, page: dict[str, Any], index: Index, fields: Sequence[Field], *, all_of_it: bool
) -> Iterator[list[Row]]:
    deadline, count, total = Deadline(READ_S), 0, int(page["hits"]["total"]["value"])
    while hits := page["hits"]["hits"]:
        count += len(hits)
        yield [row_of(hit, fields, index=index.name, all_of_it=all_of_it) for hit in hits]
        if deadline.over():
            raise StackError(f"asked OpenSearch to {request}; {count} of {total} documents came within {READ_S:g} s")
        more = {"scroll": KEPT, "scroll_id": str(page["_scroll_id"])}
        try:
            page = own.server.exactly(request, "POST", "/_search/scroll", more)
        except Refused as refused:
            raise StackError(f"{refused}. The view of it is gone, after {count} of {total} documents") from refused
    if count != total:
        raise StackError(
            f"asked OpenSearch to {request}; it gave {count} of {total} documents. See logs/opensearch.log"
        )


def _unique(index: Index, fields: Sequence[Field], key: Sequence[str]) -> bool:
    """Return whether the key is the id of a document. Each shard knows its own ids only."""
    ids = {field.wanted.name for field in fields if (field.wanted.source, field.wanted.type) == ("_id", "string")}
    return index.shards == 1 and bool(key) and set(key) <= ids


def described(own: Indexes, target: str) -> Index:
    """Return what the server says of an index. Raises Missing, StackError, and UsageError if it cannot be read as it
    is."""
    index = _index(own, target)
    refresh.soon(own.server, index)
    return index


def _index(own: Indexes, target: str) -> Index:
    name = own.named(target)
    with _missing(target):
        return index_of(name, own.server.ask(f"describe the index {target}", "GET", f"/{name}"))


def _searched(own: Indexes, index: Index) -> bool:
    """Return whether a program of the run has searched it. A server that was killed counts from zero again; a snapshot
    is taken before the kill."""
    if index.name not in own.searched and refresh.searched(own.server, index):
        own.searched.add(index.name)
    return index.name in own.searched


def _refresh(own: Indexes, target: str) -> None:
    """Let every write that was acknowledged be seen."""
    own.server.ask(f"refresh the index {target}", "POST", f"/{own.named(target)}/_refresh")


def mark(own: Indexes, target: str) -> str:
    """Return a fingerprint that changes with each write: which index it is, and the number of the last operation of
    each shard. One that is not there yet has a fingerprint too. Raises StackError."""
    try:
        index = _index(own, target)
        with _missing(target):
            last = _writes(own, target, index)
    except Missing:
        return "no such index"
    return f"{index.uuid} {' '.join(f'{shard}:{number}' for shard, number in sorted(last.items()))}"


def _writes(own: Indexes, target: str, index: Index) -> dict[int, int]:
    """Return the number of the last operation of each shard's primary. Raises StackError, also if the server answers
    for fewer shards."""
    stats = own.server.ask(f"count the writes of {target}", "GET", f"/{index.name}/_stats/docs", level="shards")
    last = {
        int(shard): int(copy["seq_no"]["max_seq_no"])
        for shard, copies in stats["indices"].get(index.name, {}).get("shards", {}).items()
        for copy in copies
        if copy["routing"]["primary"]
    }
    if len(last) < index.shards:
        request = f"asked OpenSearch for the {index.shards} shards of {target}"
        raise StackError(f"{request}; it answered for {len(last)}. See logs/opensearch.log")
    return last


def busy(own: Indexes) -> str:
    """Return the write into the run's indexes that the server works on, shortened; empty if nothing. That of a client
    that was killed goes on. Raises StackError."""
    parameters = {"actions": "indices:data/write/*", "detailed": "true"}
    answer = own.server.ask("name the writes that it works on", "GET", "/_tasks", **parameters)
    for node in answer["nodes"].values():
        for task in node["tasks"].values():
            if own.prefix in task.get("description", ""):
                return f"{task['action']} {task['description']}"[:SHOWN]
    return ""


@contextmanager
def _missing(target: str) -> Iterator[None]:
    """Raise Missing for an index that is not there."""
    try:
        yield
    except Refused as refused:
        if refused.kind != ABSENT:
            raise
        raise Missing(
            f"asked to read the index {target}; there is none of that name. Make it in `setup`, or mend `sink`"
        ) from refused
