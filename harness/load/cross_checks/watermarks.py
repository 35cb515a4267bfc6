"""What closes the windows of a sink: times of the records that the workload gives, told where the file says them."""

from __future__ import annotations

from pathlib import Path

from harness.load.cross_checks.no_record import of_nothing
from harness.load.reader import Section
from harness.load.with_header import Claim
from harness.scenario.watermark import OutputMode

TIMES = ("of", "closes")
WANTED = {OutputMode.APPEND: ("_late", "_open"), OutputMode.UPDATE: ("_late",)}


def check_watermarks(claim: Claim, *, root: Path) -> None:
    """Add what is wrong with the watermarks of a scenario that is right otherwise."""
    found = [sink.section("watermark") for sink in claim.sinks if sink.has("watermark")]
    if not found:
        return
    if claim.get("progress", "checkpoint") != "checkpoint":
        for closing in found:
            closing.wrong(f"{closing.path} needs progress: checkpoint, whose batches tell when a window was written")
        return
    for closing in found:
        times(closing, claim, root=root)
    for sink in claim.sinks:
        if sink.has("watermark") and not claim.top.mistakes:
            left_out(sink, claim, root=root)


def left_out(sink: Section, claim: Claim, *, root: Path) -> None:
    """The effect asks for the columns by which it leaves out what Spark drops, or has yet to write."""
    mode = sink.section("watermark").get("mode", OutputMode.APPEND)
    wanted = WANTED[OutputMode(mode)]
    with of_nothing(claim, root=root, where=sink.path, windows=True) as effects:
        if effects is not None and (
            lacking := [name for name in wanted if name not in effects.names(sink.get("effect"))]
        ):
            words = f"does not ask for {' and '.join(f'`{name}`' for name in lacking)}, and counts records that Spark "
            sink.wrong(f"{sink.path}.effect {words}leaves out: say `where not ({' or '.join(wanted)})`", "effect")


def times(closing: Section, claim: Claim, *, root: Path) -> None:
    """Each of the two is a time of a record."""
    with of_nothing(claim, root=root, where=closing.path) as effects:
        if effects is None:
            return
        for key in TIMES:
            if why := effects.no_time(closing.get(key)):
                closing.wrong(f"{closing.path}.{key} {why}", key)
