"""When a search finds what was written: how often an index refreshes itself, and a wait until it has done so.

A snapshot refreshes the index. A program that searches what it has written before it writes again must not find more
there than without us: so an index that takes longer than by default is refused, and one that does not is waited for, if
a client searches it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress

from harness import wait
from harness.components.opensearch.server import Server
from harness.components.opensearch.sink.mapping import Index
from harness.errors import UsageError, WaitError

BY_DEFAULT = "1s"
MS, S = 10**6, 10**9
UNITS = {"nanos": 1, "micros": 10**3, "ms": MS, "s": S, "m": 60 * S, "h": 3600 * S, "d": 86400 * S}
CLUSTERS = "cluster.default.index.refresh_interval"
OURS = "onceproof"
"""The group that the server counts the harness's own searches in."""
LAST = {"size": 0, "stats": [OURS], "aggs": {"last": {"max": {"field": "_seq_no"}}}}


def soon(server: Server, index: Index) -> None:
    """Raise UsageError for an index that does not show within a second what was written."""
    interval, where = index.refresh, "refresh_interval"
    if not interval:
        interval, where = _clusters(server), CLUSTERS
    if not in_time(interval):
        raise UsageError(
            f"the index {index.name} cannot be read as a program finds it: it is refreshed by `{where}: {interval}`, "
            "and each snapshot refreshes it sooner. A program that searches what it has written would find more "
            "than without Onceproof. Say `refresh_interval: 1s`, or nothing, for the run: it shows nothing of a longer "
            "one"
        )


def in_time(interval: str) -> bool:
    """Return whether that is at most a second. Less than a millisecond, zero included, is never."""
    match = re.fullmatch(rf"(\d+)({'|'.join(UNITS)})", interval.strip().lower())
    return match is not None and MS <= int(match[1]) * UNITS[match[2]] <= S


def _clusters(server: Server) -> str:
    """Return that of every index which says nothing of it."""
    parameters = {"include_defaults": "true", "filter_path": f"*.{CLUSTERS}"}
    answer = server.ask("say how often its indexes refresh", "GET", "/_cluster/settings", **parameters)
    for place in ("transient", "persistent", "defaults"):
        found = answer.get(place, {})
        for name in CLUSTERS.split("."):
            found = found.get(name, {})
        if found:
            return str(found)
    return BY_DEFAULT


def searched(server: Server, index: Index) -> bool:
    """Return whether a client other than the harness has searched it since its server was started. To a client that
    never does, a refresh makes no difference."""
    parameters = {"groups": OURS}
    answer = server.ask("count the searches of an index", "GET", f"/{index.name}/_stats/search", **parameters)
    counted = answer["_all"]["total"]["search"]
    ours = counted.get("groups", {}).get(OURS, {})
    return int(counted["query_total"]) > int(ours.get("query_total", 0))


def by_itself(server: Server, index: Index, last: Mapping[int, int], *, within_s: float) -> None:
    """Wait until a search finds the `last` write of each shard, which is not refreshed for that. No longer than
    `within_s`: nothing is found of a delete."""
    left = {shard: number for shard, number in last.items() if number >= 0}

    def found() -> bool:
        for shard, number in tuple(left.items()):
            answer = server.ask(
                "search a shard", "POST", f"/{index.name}/_search", LAST, preference=f"_shards:{shard}|_primary"
            )
            seen = answer["aggregations"]["last"]["value"]
            if seen is not None and seen >= number:
                del left[shard]
        return not left

    with suppress(WaitError):
        wait.until("the index to refresh itself", found, within_s=within_s)
