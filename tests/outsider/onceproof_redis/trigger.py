"""The trigger `redis_rows`: so many entries are in the first sink of that kind."""

from __future__ import annotations

import contextlib
from typing import Any

import redis

from harness.context import Listing, Reached, RunContext
from harness.errors import StackError
from harness.fields import values as v
from harness.kinds import About, Refusals
from harness.scenario import Step, Trigger
from harness.triggers.base import Planned, wait_until
from onceproof_redis.server import Prefix

ROWS_MAX = 10_000_000
# The server takes writes again by itself where the harness is gone.
PAUSE_MS = 10_000


class RedisRows:
    """Counted over all keys of the run."""

    about = About(
        name="redis_rows",
        summary="the run has so many entries in its lists and hashes in Redis",
        example="{redis_rows: 150}",
        options=v.counted(1, ROWS_MAX),
    )
    components = ("redis",)

    def trigger(self, value: Any, *, batch: int | None = None, query: str | None = None) -> Trigger:
        """From `value` entries on."""
        place = f"after {value} entries in Redis"
        return Trigger(kind=self.about.name, value=value, place=place, batch=batch, query=query)

    def refusals(self, trigger: Trigger, planned: Planned) -> Refusals:
        """It may come at any time."""
        return iter(())

    def wait(self, run: RunContext, step: Step, *, later: int, freeze: bool) -> Reached:
        """Asked again and again. While it counts, and from the injection on, the server keeps all writes waiting."""
        at: Prefix = run.own.part("redis").at
        wanted = int(step.when.value or 0)
        wait_until(run, step.when, lambda: reached(at, wanted))
        folder = run.observer.folder()
        listing = run.observer.listing(folder)
        newest = max(listing.get("offsets", ()), default=None)
        return Reached(newest, folder=folder, before=listing)

    def agrees(self, trigger: Trigger, reached: Reached, listing: Listing) -> bool:
        """The count only grows."""
        return True


def reached(at: Prefix, wanted: int) -> bool:
    """Return whether the run has so many entries; then all writes wait, so that no batch ends. Raises StackError."""
    try:
        with contextlib.closing(at.client()) as client:
            client.client_pause(PAUSE_MS, all=False)
            if counted(client, at.prefix) >= wanted:
                return True
            client.client_unpause()
    except redis.RedisError as error:
        raise StackError(f"asked Redis how much it holds; saw {error}") from error
    return False


def counted(client: redis.Redis, prefix: str) -> int:
    """Entries of all lists and hashes of a run."""
    count = 0
    for key in client.scan_iter(f"{prefix}:*"):
        count += int(client.hlen(key) if client.type(key) == "hash" else client.llen(key))
    return count


KIND = RedisRows()
