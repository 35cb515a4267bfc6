"""What a remote folder's listing says of a checkpoint of Spark's, straight from the server.

Its writer may be stopped or dead while a request of it is still on its way: a rename that it has asked for is done all
the same. So who judges by a listing takes one that has stayed as it is for a while.
"""

from __future__ import annotations

import threading

from harness.checkpoint import listed
from harness.remote import RemoteFolder, joined
from harness.wait import Deadline

STILL_S = 0.15
"""How long a listing stays as it is before nothing is taken to be on its way; a request takes some milliseconds."""
SETTLES_S = 3.0


def listing(remote: RemoteFolder, place: str) -> dict[str, tuple[int, ...]]:
    """As `harness.checkpoint.listing`. Raises StackError."""
    # In this order: who sees a plan sees the commit before it. One answer has all of `commits`: a commit is in it under
    # one of its two names.
    offsets = [entry.name for entry in remote.entries(joined(place, "offsets"))]
    return listed(offsets, [entry.name for entry in remote.entries(joined(place, "commits"))])


def settled(remote: RemoteFolder, place: str) -> dict[str, tuple[int, ...]]:
    """Return one that has not changed for a while; the last one where it changes for seconds. Raises StackError."""
    seen, deadline, pause = listing(remote, place), Deadline(SETTLES_S), threading.Event()
    while not deadline.over():
        pause.wait(STILL_S)
        before, seen = seen, listing(remote, place)
        if seen == before:
            break
    return seen
