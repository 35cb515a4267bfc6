"""What closes the windows of a sink: times of the records that the workload gives, told where the file says them."""

from __future__ import annotations

from pathlib import Path

from harness.errors import UsageError
from harness.load import build
from harness.load.reader import Section
from harness.load.with_header import Claim
from harness.workloads import WORKLOADS

TIMES = ("of", "closes")


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


def times(closing: Section, claim: Claim, *, root: Path) -> None:
    """Each of the two is a time of a record."""
    # Loading DuckDB takes longer than reading a scenario.
    from harness.effect import Effects, Source

    scenario = build.scenario(claim, path=claim.top.file)
    try:
        workload = WORKLOADS[scenario.input.workload].make(scenario.input, seed=scenario.seed, root=root)
    except UsageError:
        # Told when the workload is made, with its own words.
        return
    columns = tuple((column.name, column.type, column.expression) for column in workload.columns)
    with Effects(Source(parquet=None, columns=columns), where=f"scenario `{scenario.name}`") as effects:
        for key in TIMES:
            if why := effects.no_time(closing.get(key)):
                closing.wrong(f"{closing.path}.{key} {why}", key)
