"""One index of a run, where it can be reached: read whole and exactly, with a fingerprint while it may still change.

A refresh first, then a scroll: one view of every primary shard, a page at a time, in the order in which documents lie
there. A copy of a shard may be behind, where it is sent segments (`replication.type`). An order by `_id` would take the
ids of all documents into the server's memory. By `routing` two shards may hold two documents under one id: that order
passes over one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
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
from harness.sinks.table import SinkColumn
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


@dataclass(frozen=True)
class OpenIndex:
    """One index of a run. `wanted` are the columns that the scenario names; empty: those of the mapping."""

    own: Indexes
    target: str
    wanted: tuple[Wanted, ...]
    key: tuple[str, ...]

    def columns(self) -> tuple[SinkColumn, ...]:
        """Return its columns, without the rows."""
        return columns_of(fields_of(self.described(), self.wanted))

    @contextmanager
    def reading(self, *, wait_ms: int = 0) -> Iterator[Reading]:
        """Columns and canonical rows, in parts of a page, of one view. With `wait_ms` a writer may be at work: for so
        long an index that is searched may refresh itself before it is refreshed. Raises Missing if it is not there;
        UsageError for a field or a document that cannot be read exactly; StackError if the server does not answer
        whole."""
        server, path = self.own.server, f"/{self.own.named(self.target)}"
        with _missing(self.target):
            index = self.described()
            fields = fields_of(index, self.wanted)
            if wait_ms and self._searched(index):
                refresh.by_itself(server, index, self._writes(index), within_s=wait_ms / 1000)
            # Every write that was acknowledged is seen from here on.
            server.ask(f"refresh the index {self.target}", "POST", f"{path}/_refresh")
            first = server.exactly(f"read the index {self.target}", "POST", f"{path}/_search", QUERY, **ALL)
        scroll = str(first["_scroll_id"])
        try:
            yield Reading(columns_of(fields), self._parts(first, index, fields), lambda: self._unique(index, fields))
        finally:
            # It ends by itself after a while.
            with suppress(StackError, Refused):
                server.ask("end the view", "DELETE", "/_search/scroll", {"scroll_id": scroll})

    def _parts(self, page: dict[str, Any], index: Index, fields: Sequence[Field]) -> Iterator[list[Row]]:
        request = f"read the index {self.target}"
        deadline, count, total = Deadline(READ_S), 0, int(page["hits"]["total"]["value"])
        while hits := page["hits"]["hits"]:
            count += len(hits)
            yield [row_of(hit, fields, index=index.name, all_of_it=not self.wanted) for hit in hits]
            if deadline.over():
                saw = f"{count} of {total} documents came within {READ_S:g} s"
                raise StackError(f"asked OpenSearch to {request}; {saw}")
            more = {"scroll": KEPT, "scroll_id": str(page["_scroll_id"])}
            try:
                page = self.own.server.exactly(request, "POST", "/_search/scroll", more)
            except Refused as refused:
                raise StackError(f"{refused}. The view of it is gone, after {count} of {total} documents") from refused
        if count != total:
            raise StackError(
                f"asked OpenSearch to {request}; it gave {count} of {total} documents. See logs/opensearch.log"
            )

    def _unique(self, index: Index, fields: Sequence[Field]) -> bool:
        """Return whether the key is the id of a document. Each shard knows its own ids only."""
        ids = {field.wanted.name for field in fields if (field.wanted.source, field.wanted.type) == ("_id", "string")}
        return index.shards == 1 and bool(self.key) and set(self.key) <= ids

    def described(self) -> Index:
        """Return what the server says of it. Raises Missing, StackError, and UsageError if it cannot be read as it
        is."""
        index = self._index()
        refresh.soon(self.own.server, index)
        return index

    def _index(self) -> Index:
        name = self.own.named(self.target)
        with _missing(self.target):
            return index_of(name, self.own.server.ask(f"describe the index {self.target}", "GET", f"/{name}"))

    def _searched(self, index: Index) -> bool:
        """Return whether a program of the run has searched it. A server that was killed counts from zero again; a
        snapshot is taken before the kill."""
        own = self.own
        if index.name not in own.searched and refresh.searched(own.server, index):
            own.searched.add(index.name)
        return index.name in own.searched

    def mark(self) -> str:
        """Return a fingerprint that changes with each write: which index it is, and the number of the last operation of
        each shard. One that is not there yet has a fingerprint too. Raises StackError."""
        try:
            index = self._index()
            with _missing(self.target):
                last = self._writes(index)
        except Missing:
            return "no such index"
        return f"{index.uuid} {' '.join(f'{shard}:{number}' for shard, number in sorted(last.items()))}"

    def _writes(self, index: Index) -> dict[int, int]:
        """Return the number of the last operation of each shard's primary. Raises StackError, also if the server
        answers for fewer shards."""
        request = f"count the writes of {self.target}"
        stats = self.own.server.ask(request, "GET", f"/{index.name}/_stats/docs", level="shards")
        last = {
            int(shard): int(copy["seq_no"]["max_seq_no"])
            for shard, copies in stats["indices"].get(index.name, {}).get("shards", {}).items()
            for copy in copies
            if copy["routing"]["primary"]
        }
        if len(last) < index.shards:
            request = f"asked OpenSearch for the {index.shards} shards of {self.target}"
            raise StackError(f"{request}; it answered for {len(last)}. See logs/opensearch.log")
        return last

    def busy(self) -> str:
        """Return the write into the run's indexes that the server works on, shortened; empty if nothing. That of a
        client that was killed goes on. Raises StackError."""
        parameters = {"actions": "indices:data/write/*", "detailed": "true"}
        answer = self.own.server.ask("name the writes that it works on", "GET", "/_tasks", **parameters)
        for node in answer["nodes"].values():
            for task in node["tasks"].values():
                if self.own.prefix in task.get("description", ""):
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
