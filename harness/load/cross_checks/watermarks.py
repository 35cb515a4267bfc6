"""Checks of what closes the windows of a sink: times of the workload's records, reported where the file has them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import UsageError
from harness.load import build
from harness.load.cross_checks.no_record import of_nothing
from harness.load.reader import Section
from harness.load.with_header import Claim
from harness.scenario.watermark import OutputMode

if TYPE_CHECKING:
    from harness.ledger import Ledger

TIMES = ("of", "closes")
WANTED = {OutputMode.APPEND: ("_late", "_open"), OutputMode.UPDATE: ("_late",)}


def check_watermarks(claim: Claim, *, root: Path) -> None:
    """Add what is wrong with the watermarks of a scenario that is right otherwise."""
    sinks = [sink for sink in claim.sinks if sink.has("watermark")]
    if not sinks:
        return
    if claim.get("progress", "checkpoint") != "checkpoint":
        for sink in sinks:
            closing = sink.section("watermark")
            closing.wrong(f"{closing.path} needs progress: checkpoint, whose batches tell when a window was written")
        return
    for sink in sinks:
        closing = sink.section("watermark")
        with of_nothing(claim, root=root, where=closing.path) as ledger:
            if ledger is not None:
                times(closing, ledger)
                left_out(sink, ledger)


def times(closing: Section, ledger: Ledger) -> None:
    """Each of the two is a time of a record."""
    for key in TIMES:
        if why := ledger.no_time(closing.get(key)):
            closing.wrong(f"{closing.path}.{key} {why}", key)


def left_out(sink: Section, ledger: Ledger) -> None:
    """`expected` of a sink that is right otherwise asks for the columns by which it leaves out what Spark drops, or has
    yet to write. The ledger has neither of them."""
    closing = None if sink.mistakes else build.watermark(sink)
    if closing is None:
        return
    wanted = WANTED[closing.mode]
    try:
        there = ledger.names(sink.get("expected"))
    except UsageError:
        # It is no query, which is said where it is tried.
        return
    lacking = [name for name in wanted if name not in there]
    if lacking and not ledger.lacks(
        sink.get("expected"), [name for name in WANTED[OutputMode.APPEND] if name in there]
    ):
        words = f"does not ask for {' and '.join(f'`{name}`' for name in lacking)}, and counts records that Spark "
        sink.wrong(f"{sink.path}.expected {words}leaves out: say `where not ({' or '.join(wanted)})`", "expected")
