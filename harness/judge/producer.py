"""How the sending side did. Its failures make a run untested, or an error; they are never the pipeline's."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from harness.judge.examine import FINDINGS_MAX
from harness.judge.read_folder import Run
from harness.run_folder import ledger
from harness.scenario import Finding, Kind, RecordRef

PLACES_SHOWN = 5


@dataclass
class Producer:
    """How the sending side did: counts for the verdict, reasons that make it untested, records that came back. `short`:
    the source has lost or changed records since they were acknowledged, and the pipeline may have taken them before."""

    short: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    untested: list[str] = field(default_factory=list)
    error: list[str] = field(default_factory=list)
    recovered: list[Finding] = field(default_factory=list)


def examine_producer(run: Run) -> Producer:
    """Return what was promised against the source as read back. Raises HarnessError if the ledger is not there."""
    attempts = ledger.read(run.folder / "ledger" / "attempts.log")
    report = ledger.producer_report(attempts, ledger.read_source(run.source))
    out = Producer()
    out.counts = {
        "records": report.source,
        "acknowledged": report.acknowledged,
        "failed": report.failed,
        "unknown": report.unknown,
        "recovered": len(report.recovered),
    }
    if attempts.torn:
        out.untested.append(f"the ledger of attempts is {attempts.torn}")
    out.short = bool(report.lost or report.changed)
    for what, places in (("lost", report.lost), ("changed", report.changed)):
        if places:
            out.untested.append(f"the source {what} {len(places)} acknowledged records ({_places(places)})")
    if report.duplicated:
        # What the sink should hold is not known then, so no word about the pipeline would be fair.
        out.error.append(f"the producer wrote records twice into the source ({_places(report.duplicated)})")
    if report.foreign:
        out.untested.append(f"the source holds {report.foreign} records that the harness did not send")
    out.recovered = _recovered(report.recovered[:FINDINGS_MAX], run.source)
    return out


def _places(placed: tuple[ledger.Placed, ...]) -> str:
    return "partition:offset " + ", ".join(f"{p.partition}:{p.offset}" for p in placed[:PLACES_SHOWN])


def _recovered(seqs: tuple[int, ...], source: Path) -> list[Finding]:
    """Sends without an answer that are there all the same: legal, and worth knowing."""
    if not seqs:
        return []
    table = ledger.read_source(source)
    wanted = set(seqs)
    rows = zip(*(table[name].to_pylist() for name in ("seq", "partition", "offset")), strict=True)
    return [
        Finding(
            kind=Kind.RECOVERED,
            sink="source",
            position=-1,
            key={"seq": str(seq)},
            records=(RecordRef(partition=partition, offset=offset),),
            note="the send had no answer, and the record is there",
        )
        for seq, partition, offset in rows
        if seq in wanted
    ]
