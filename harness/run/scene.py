"""What a schedule acts on, and the moment at which a trigger was met."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from harness.journal import Journal
from harness.run.observer import Observer
from harness.run.snap import Snapshots
from harness.run.supervisor import Supervisor
from harness.scenario import Trigger, When, Window
from harness.stack.base import Lease, Process, Stack
from harness.triggers.tripwire import Held, Tripwire

Listing = dict[str, tuple[int, ...]]


@dataclass
class Moment:
    """The trigger was met: in which checkpoint, where the protocol stood, who was frozen there, which writer was held
    at which row. `step` counts the schedule's steps from 1."""

    batch: int | None
    folder: Path | None = None
    before: Listing = field(default_factory=dict)
    frozen: list[Process] = field(default_factory=list)
    held: Held | None = None
    step: int = 0


@dataclass(frozen=True, kw_only=True)
class Scene:
    """The run as a schedule sees it.

    `in_flight`: words for the records that are in the source and not behind the committed frontier, empty if there
    are none. `hopeless`: why no trigger can be met any more, empty while one can. `sent`: records sent so far.
    `awake`: the current life of the driver has done something; before that there is nothing to hurt. `feeds`: the
    folder name of the checkpoint of the query whose rows the tripwire counts, None if that cannot be told. `stop` ends
    every wait of the schedule."""

    stack: Stack
    lease: Lease
    supervisor: Supervisor
    observer: Observer
    journal: Journal
    tripwire: Tripwire | None
    sent: Callable[[], int]
    in_flight: Callable[[], str]
    hopeless: Callable[[], str]
    awake: Callable[[], bool]
    snapshots: Snapshots | None = None
    feeds: str | None = None
    stop: threading.Event = field(default_factory=threading.Event)


def in_window(when: Trigger, moment: Moment, listing: Listing) -> bool:
    """Does the checkpoint agree that the batch stands where the trigger says?"""
    if when.kind is When.ROWS:
        return moment.held is not None and (when.batch is None or running(moment.batch, listing))
    if when.kind in (When.RECORDS, When.ELAPSED):
        return moment.folder is None or running(moment.batch, listing)
    if when.kind is not When.WINDOW:
        return True
    if when.window is Window.OFFSETS_COMMITTED:
        batch = -1 if moment.batch is None else moment.batch
        return batch in listing.get("commits", ()) and batch + 1 not in listing.get("offsets", ())
    if when.window is Window.OFFSETS_WRITTEN and moment.batch in listing.get("begun", ()):
        return False
    return running(moment.batch, listing)


def running(batch: int | None, listing: Listing) -> bool:
    """Planned and not committed."""
    return batch in listing.get("offsets", ()) and batch not in listing.get("commits", ())
