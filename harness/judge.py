"""From a run folder to its verdict, with nothing else at hand: the ledger, the effect, the sinks, the laws.

`plan.json` says what was claimed and what the ledger's columns are, `run.json` what became of the schedule,
`checkpoint.json` which batch took which offsets. For each sink the effect is run over the ledger, compared with the
rows that were read back, and the canaries are planted. While records lie beyond the frontier nothing that is missing
is called lost: it is `unseen`, and the verdict is unknown.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from harness import ledger
from harness.checkers.attribute import attribute, faults_of, together
from harness.checkers.verdict import Facts, verdict
from harness.effect import Effects, Source
from harness.errors import HarnessError, UsageError
from harness.examine import FINDINGS_MAX, Examined, examine
from harness.scenario import Finding, Kind, RecordRef, Scenario, StepOutcome, Verdict
from harness.sinks import load

Noun = TypeVar("Noun")


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a run folder holds, read."""

    folder: Path
    scenario: Scenario
    columns: tuple[tuple[str, str, str], ...]
    outcome: Mapping[str, Any]
    checkpoint: Mapping[str, Any]
    steps: tuple[StepOutcome, ...]

    @property
    def source(self) -> Path:
        return self.folder / "ledger" / "source.parquet"

    @property
    def frontier(self) -> dict[int, int]:
        """Next offsets by partition, as far as the pipeline has committed."""
        return {int(partition): int(offset) for partition, offset in self.checkpoint.get("frontier", {}).items()}


@dataclass
class Producer:
    """How the sending side did: counts for the verdict, reasons that make it void, records that came back."""

    counts: dict[str, int] = field(default_factory=dict)
    void: list[str] = field(default_factory=list)
    error: list[str] = field(default_factory=list)
    recovered: list[Finding] = field(default_factory=list)


def judge(folder: Path) -> Verdict:
    """The verdict on the run in `folder`. Raises UsageError for a folder that holds no whole run or an effect that
    is no query, HarnessError for damage."""
    run = read_run(folder)
    producer = _producer(run)
    examined = _examine(run)
    drained, reasons = _drained(run, examined)
    findings = [*_stalled(run), *(f for sink in examined for f in sink.findings), *producer.recovered]
    kinds = sum((sink.kinds for sink in examined), Counter({Kind.RECOVERED: producer.counts["recovered"]}))
    void = [*producer.void, *(reason for sink in examined for reason in sink.void)]
    noted = [str(reason) for reason in run.outcome.get("reasons") or ()]
    return verdict(
        Facts(
            guarantee=run.scenario.guarantee,
            expect=run.scenario.expect,
            scheduled=tuple(step.name for step in run.scenario.schedule),
            steps=run.steps,
            drained=drained,
            canaries=_canaries(examined),
            counts={
                **{name: count for name, count in producer.counts.items() if name != "recovered"},
                "expected_rows": sum(sink.expected_rows for sink in examined),
                "sink_rows": sum(sink.sink_rows for sink in examined),
                "unseen": sum(sink.unseen for sink in examined),
                **{kind.value: count for kind, count in sorted(kinds.items()) if count > FINDINGS_MAX},
            },
            findings=tuple(findings),
            void=(*void, *(reason for reason in noted if not _open(reason))),
            unknown=(*reasons, *(reason for reason in noted if _open(reason))),
            error=(*producer.error, *([str(run.outcome["error"])] if run.outcome.get("error") else [])),
            apart=frozenset(sink.name for sink in examined if sink.apart),
        )
    )


def read_run(folder: Path) -> Run:
    """The run in `folder`. Raises UsageError if something that a verdict needs is not there or not readable."""
    plan, run, checkpoint = (_read(folder / name) for name in ("plan.json", "run.json", "checkpoint.json"))
    outcome = run.get("outcome") or {}
    return Run(
        folder=folder,
        scenario=_noun(Scenario, plan.get("scenario"), folder / "plan.json"),
        columns=_columns(plan, folder / "plan.json"),
        outcome=outcome,
        checkpoint=checkpoint,
        steps=_noun(tuple[StepOutcome, ...], outcome.get("steps") or (), folder / "run.json"),
    )


def _examine(run: Run) -> list[Examined]:
    """Every sink on its own; then, where they must agree, side by side."""
    source = Source(
        parquet=run.source,
        columns=run.columns,
        batches=run.checkpoint.get("batches") or (),
        frontier=run.frontier,
    )
    with Effects(source, where=f"scenario `{run.scenario.name}`") as effects:
        drained = bool(run.outcome.get("drained")) and effects.size(behind=True) == effects.size()
        out = [
            examine(effects, sink, load(run.folder, index), drained=drained)
            for index, sink in enumerate(run.scenario.sinks)
        ]
        for sink in out:
            sink.findings = attribute(sink.findings, sink.clues(effects, run.steps))
    if run.scenario.together:
        holders = {sink.name: sink.holds for sink in out}
        for sink in out:
            sink.findings = together(sink.findings, holders)
    return out


def _producer(run: Run) -> Producer:
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
        out.void.append(f"the ledger of attempts is {attempts.torn}")
    for what, places in (("lost", report.lost), ("changed", report.changed)):
        if places:
            at = ", ".join(f"{place.partition}:{place.offset}" for place in places[:5])
            out.void.append(f"the source {what} {len(places)} acknowledged records (partition:offset {at})")
    if report.duplicated:
        # What the sink should hold is then anybody's guess, so no word about the pipeline would be fair.
        at = ", ".join(f"{place.partition}:{place.offset}" for place in report.duplicated[:5])
        out.error.append(f"the producer wrote records twice into the source (partition:offset {at})")
    if report.foreign:
        out.void.append(f"the source holds {report.foreign} records that nobody here sent")
    out.recovered = _recovered(report.recovered[:FINDINGS_MAX], run.source)
    return out


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
            key={"seq": str(seq)},
            records=(RecordRef(partition=partition, offset=offset),),
            note="the send had no answer, and the record is there",
        )
        for seq, partition, offset in rows
        if seq in wanted
    ]


def _stalled(run: Run) -> list[Finding]:
    words = run.outcome.get("stalled")
    faults = faults_of((), run.steps)
    return [Finding(kind=Kind.STALLED, sink="", faults=faults, note=str(words))] if words else []


def _drained(run: Run, examined: list[Examined]) -> tuple[bool, list[str]]:
    """Whether all was drained, by the run loop's word and by the ledger; and what that leaves open."""
    said = bool(run.outcome.get("drained")) and bool(run.checkpoint.get("drained", True))
    reasons = [reason for sink in examined for reason in sink.unknown]
    behind = all(sink.drained for sink in examined)
    if said and not behind:
        reasons.append("not drained: records of the source lie beyond the frontier, though the run says otherwise")
    return said and behind, reasons


def _open(reason: str) -> bool:
    """Does a reason of the run loop leave the verdict open, rather than make the test void?"""
    return reason.startswith(("not drained", "unknown"))


def _canaries(examined: list[Examined]) -> dict[str, bool]:
    """By planted fault, whether it was found in every sink."""
    out: dict[str, bool] = {}
    for sink in examined:
        for canary in sink.canaries:
            out[canary.name] = out.get(canary.name, True) and canary.found
    return out


def _columns(plan: Mapping[str, Any], path: Path) -> tuple[tuple[str, str, str], ...]:
    try:
        return tuple((str(c["name"]), str(c["type"]), str(c["expression"])) for c in plan["columns"])
    except (KeyError, TypeError) as failure:
        raise UsageError(f"{path} is damaged: it has no columns of the ledger ({failure!r})") from failure


def _noun(kind: type[Noun], data: object, path: Path) -> Noun:
    try:
        return TypeAdapter(kind).validate_python(data)
    except ValidationError as failure:
        first = failure.errors()[0]
        place = ".".join(str(step) for step in first["loc"])
        raise UsageError(f"{path} is damaged, or of another version: {place}: {first['msg']}") from None


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"asked to judge {path.parent}; it has no {path.name}. Was the run ended early?") from None
    except (OSError, ValueError) as failure:
        raise HarnessError(f"asked to judge {path.parent}; {path.name} is not readable: {failure}") from failure
    if not isinstance(data, dict):
        raise UsageError(f"{path} is damaged: it holds no object")
    return data
