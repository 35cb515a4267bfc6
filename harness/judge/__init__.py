"""From a run folder to its verdict, with nothing else at hand: the ledger, the effect, the sinks, the laws.

`plan.json` says what was claimed and what the ledger's columns are, `run.json` what became of the schedule,
`checkpoint.json` which batch took which offsets. For each sink the effect is run over the ledger, compared with the
rows that were read back, and the canaries are planted. While records lie beyond the frontier nothing that is missing
is called lost: it is `unseen`, and the verdict is unknown.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from harness.checkers.attribute import attribute, faults_of, together
from harness.checkers.verdict import NOT_DRAINED, Facts, verdict
from harness.effect import Effects, Source
from harness.judge.examine import FINDINGS_MAX, Examined, examine, hidden
from harness.judge.folder import Run, read_run
from harness.judge.producer import examine_producer
from harness.scenario import Finding, Kind, Verdict
from harness.sinks import load


def judge(folder: Path) -> Verdict:
    """The verdict on the run in `folder`. Raises UsageError for a folder that holds no whole run or an effect that
    is no query, HarnessError for damage."""
    run = read_run(folder)
    producer = examine_producer(run)
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
            unknown=(*reasons, *_cut(run, examined), *(reason for reason in noted if _open(reason))),
            error=(*producer.error, *([str(run.outcome["error"])] if run.outcome.get("error") else [])),
            apart=frozenset(sink.name for sink in examined if sink.apart),
        )
    )


def _cut(run: Run, examined: list[Examined]) -> list[str]:
    words = [hidden(sink, run.scenario.guarantee) for sink in examined]
    return [reason for reason in words if reason]


def _examine(run: Run) -> list[Examined]:
    """Every sink on its own; then, where they must agree, side by side."""
    source = Source(
        parquet=run.source,
        columns=run.columns,
        batches=run.checkpoint.get("batches") or (),
        frontier=run.frontier,
    )
    with Effects(source, where=f"scenario `{run.scenario.name}`") as effects:
        drained = run.drained and effects.size(behind=True) == effects.size()
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


def _stalled(run: Run) -> list[Finding]:
    stalled = run.outcome.get("stalled")
    words = stalled.get("words") if isinstance(stalled, dict) else stalled
    faults = faults_of((), run.steps)
    return [Finding(kind=Kind.STALLED, sink="", faults=faults, note=str(words))] if words else []


def _drained(run: Run, examined: list[Examined]) -> tuple[bool, list[str]]:
    """Whether all was drained, by the run loop's word and by the ledger; and what that leaves open."""
    reasons = [reason for sink in examined for reason in sink.unknown]
    behind = all(sink.drained for sink in examined)
    if run.drained and not behind:
        reasons.append(f"{NOT_DRAINED}: records of the source lie beyond the frontier, though the run says otherwise")
    return run.drained and behind, reasons


def _open(reason: str) -> bool:
    """Does a reason of the run loop leave the verdict open, rather than make the test void?"""
    return reason.startswith((NOT_DRAINED, "unknown"))


def _canaries(examined: list[Examined]) -> dict[str, bool]:
    """By planted fault, whether it was found in every sink."""
    out: dict[str, bool] = {}
    for sink in examined:
        for canary in sink.canaries:
            out[canary.name] = out.get(canary.name, True) and canary.found
    return out
