"""What the verdict on a run has to be. That it must be violated, the snapshots before each restart say, without the
judge; whether a harm was exposed, or would have shown, is taken from the verdict's own exposures.

A fixed version is never violated. A broken one must be where its sink holds more (repetition) or less (loss) than what
is committed comes to: that will be processed again, or never. With the harm only exposed (an open transaction, an
zombie) it may be; else it never is. Held needs a exposure that shows and that the guarantee forbids, untested none or a
step that missed; inconclusive and error are wrong. A violation has to name the fault at which the snapshots
show the harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from bench.broken_and_fixed import Version
from harness.history import readings, whole
from harness.judge.read_folder import Run as Folder
from harness.judge.read_folder import read_run
from harness.ledger import Ledger, Source
from harness.scenario import Harm, Kind, StepOutcome, Verdict, Word
from harness.sinks.table import load as load_sink
from harness.snapshot import RESTART, Snapshot


class Truth(StrEnum):
    """What the verdict on a run has to be: violated, perhaps, or not."""

    MUST = "must"
    MAY = "may"
    NEVER = "never"


@dataclass(frozen=True, kw_only=True)
class Ahead:
    """How the sinks stood after one step and before the restart: rows (or the sum of its totals) of each beyond what
    was committed, below zero if short of it; how many records were committed; and the batches that were planned and not
    committed, None where no query has any."""

    surplus: tuple[int, ...]
    batches: frozenset[int] | None = None
    step: int = 1
    done: int = 0


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A run as it is held against the truth."""

    verdict: Verdict
    ahead: tuple[Ahead, ...] = ()

    def certain(self, harm: Harm) -> bool:
        """Return whether the snapshots show that something will be processed again, or never."""
        sign = 1 if harm is Harm.REPETITION else -1
        return any(sign * surplus > 0 for each in self.ahead for surplus in each.surplus)

    @property
    def shown(self) -> bool:
        """Return whether anything was exposed that would show, and that the guarantee forbids."""
        return any(exposure.counts for exposure in self.verdict.exposures)

    @property
    def spared(self) -> bool:
        """Return whether each step was injected, and all that would show is allowed: untested is right."""
        return not self.shown and not self.missed and any(not exposure.why for exposure in self.verdict.exposures)

    @property
    def missed(self) -> bool:
        return any(not step.injected for step in self.verdict.steps)


def truth(version: Version, seen: Seen) -> Truth:
    """What the verdict has to be."""
    if version.harm is None:
        return Truth.NEVER
    if seen.certain(version.harm):
        return Truth.MUST
    was_exposed = any(exposure.harm is version.harm for exposure in seen.verdict.exposures)
    return Truth.MAY if was_exposed else Truth.NEVER


def wrong(version: Version, seen: Seen) -> str:
    """Why the verdict is not the right one; empty if it is."""
    word, due = seen.verdict.word, truth(version, seen)
    if word in (Word.ERROR, Word.INCONCLUSIVE):
        return f"{word}: {'; '.join(seen.verdict.reasons)[:500]}"
    if word is Word.VIOLATED:
        return (
            "violated, and nothing that it cannot survive was exposed" if due is Truth.NEVER else _named(version, seen)
        )
    if due is Truth.MUST:
        return f"{word}, and the snapshots show that it cannot be"
    if word is Word.HELD and not seen.shown:
        return "held, and nothing that was exposed would show"
    if word is Word.UNTESTED and seen.shown and not seen.missed:
        return f"untested, and what was exposed would show: {'; '.join(seen.verdict.reasons)[:500]}"
    return ""


def _named(version: Version, seen: Seen) -> str:
    """Kind, batch and fault of a violation."""
    verdict = seen.verdict
    kinds = {finding.kind for finding in verdict.findings} - {Kind.RECOVERED}
    if kinds != {version.kind}:
        return f"violated by {', '.join(sorted(kinds))}, not by {version.kind}"
    caused = [finding for finding in verdict.findings if finding.faults]
    if not caused:
        return "violated, and no fault is named"
    planned = {batch for each in seen.ahead for batch in each.batches or ()}
    # An injection that no process died of has no restart, and no snapshot before it.
    seen_at = {each.step for each in seen.ahead if each.batches is not None} if planned else set()
    steps = [step for number, step in enumerate(verdict.steps, 1) if step.injected and number not in seen_at]
    possible = planned | {step.batch for step in steps if step.batch is not None}
    blamed = {batch for finding in caused for batch in finding.batches}
    if possible and not blamed <= possible:
        return f"batches {sorted(blamed)} are blamed, and only {sorted(possible)} were in flight"
    if not any(exposure.harm is version.harm for exposure in verdict.exposures):
        return f"violated, and no {version.harm} was said to be exposed"
    return _blamed(version.harm or Harm.REPETITION, seen, {fault for finding in caused for fault in finding.faults})


def labels(step: StepOutcome) -> set[str]:
    """What a finding may call an injection: with its checkpoint where there are several."""
    batch = "" if step.batch is None else f" of batch {step.batch}"
    of = ["", f" of {step.checkpoint}"] if batch and step.checkpoint else [""]
    return {f"{step.name} at {step.point}{batch}{each}, attempt {step.attempt}" for each in of}


def _blamed(harm: Harm, seen: Seen, faults: set[str]) -> str:
    """Return why these faults are not steps of this run at which the snapshots show the harm; empty if they are."""
    injected = {number: labels(step) for number, step in enumerate(seen.verdict.steps, 1) if step.injected}
    if strangers := faults.difference(*injected.values()):
        known = ", ".join(min(names, key=len) for names in injected.values())
        return f"blamed is {', '.join(sorted(strangers))}, which is none of the steps: {known}"
    blamed = {number for number, names in injected.items() if names & faults}
    shown = harmed(harm, seen)
    # Where no process died there was no restart, and no snapshot before it.
    unseen = {exposure.step for exposure in seen.verdict.exposures if exposure.harm is harm} - {
        each.step for each in seen.ahead
    }
    possible = unseen.union(*shown) if shown else {s.step for s in seen.verdict.exposures if s.harm is harm}
    if not blamed <= possible:
        return f"steps {sorted(blamed)} are blamed, and only {sorted(possible)} did {harm}"
    missing = [sorted(steps) for steps in shown if not steps & blamed]
    return f"none of the steps {missing[0]} is blamed, and the snapshots show {harm} there" if missing else ""


def harmed(harm: Harm, seen: Seen) -> list[set[int]]:
    """For each restart before which a sink had come to hold more (or less) than at the one before, the steps that can
    have done it: the one it came after, those since the restart before that no process died of, and later ones at which
    the same rows were still not committed."""
    out, sign = [], 1 if harm is Harm.REPETITION else -1
    before = Ahead(surplus=(0,) * len(seen.ahead[0].surplus), step=0) if seen.ahead else None
    for place, each in enumerate(seen.ahead):
        assert before is not None
        if any(sign * (now - then) > 0 for now, then in zip(each.surplus, before.surplus, strict=True)):
            steps = set(range(before.step + 1, each.step + 1))
            later = [other.step for other in seen.ahead[place + 1 :] if other.done == each.done]
            out.append(steps | set(later if harm is Harm.REPETITION else ()))
        before = each
    return out


def ahead(folder: Path, version: Version) -> tuple[Ahead, ...]:
    """How each sink stood before each restart, from the snapshots of a run folder. Raises HarnessError for damage."""
    if not (folder / "history.jsonl").is_file():
        return ()
    seen = readings(whole(folder / "history.jsonl"))
    found = [seen[place] for place in sorted(seen) if place[1] == RESTART]
    if not found:
        return ()
    run = read_run(folder)
    return tuple(_ahead(run, each, version) for each in found)


def _ahead(run: Folder, snapshot: Snapshot, version: Version) -> Ahead:
    folder = run.folder / "snapshots" / f"{snapshot.step}-{RESTART}"
    ours = [query for query in snapshot.queries if query.ours]
    done = snapshot.position if snapshot.position is not None else (ours[0].committed if ours else {})
    source = Source(parquet=run.source, columns=run.columns, committed=done)
    surplus = []
    with Ledger(source, where=f"scenario `{run.scenario.name}`") as ledger:
        for place, sink in enumerate(run.scenario.sinks):
            found, expected = load_sink(folder, place), ledger.table(sink.expected or "", committed=True)
            if found is None or found.unreadable:
                surplus.append(0)
                continue
            names = [column.name for column in found.columns]
            held = weight(names, found.rows, version.total)
            surplus.append(held - weight(expected.columns, expected.rows, version.total))
    batches = frozenset(batch for query in ours for batch in set(query.offsets) - set(query.commits))
    return Ahead(surplus=tuple(surplus), batches=batches if ours else None, step=snapshot.step, done=sum(done.values()))


def weight(names: Sequence[str], rows: Sequence[Sequence[str | None]], total: str) -> int:
    """How many rows, or the sum of the column `total`."""
    if not total:
        return len(rows)
    place = list(names).index(total)
    return sum(int(row[place] or 0) for row in rows)
