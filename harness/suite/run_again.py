"""A verdict that came with a driver that had waited ready is not the last word: a restart in production is slower. Nor
is one that came with others beside: they share a server, and the names that it owns.

Each *violated* of a run with such a driver, and one *held* in twenty, is run again with drivers that begin cold. Each
*violated* that is not as expected, of a run with others beside it, is run again alone. Where the two do not say the
same, that is a finding of its own, and nobody can tell: unknown.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.run.loop import Result
from harness.run.plan import with_standby
from harness.run_folder import again
from harness.run_folder.store import RunFolder
from harness.scenario import Disagreement, Kind, Scenario, Verdict, Word
from harness.scenario.disagreement import Said
from harness.stack import Start

ONE_IN = 20
TELL = (Word.HELD, Word.VIOLATED)
AGAIN = " (again, drivers cold)"
ALONE = " (again, alone, drivers cold)"


def wants_another(result: Result) -> bool:
    """Had the driver of an attempt waited ready, and is it one of those that are run again?"""
    word, outcome = result.verdict.word, RunFolder.open(result.folder).read("run")["run"].get("outcome", {})
    # Also one that asked for a session of its own, or for none by its end: its Python had waited.
    if all(each["start"] == Start.COLD for each in outcome.get("starts", ())):
        return False
    return word is Word.VIOLATED or (word is Word.HELD and drawn(result.folder.name))


def wants_to_be_alone(verdict: Verdict) -> bool:
    """May others that were played beside it have done it? A program with a constant `transactional.id` or key of an
    advisory lock meets itself in each of them."""
    return verdict.word is Word.VIOLATED and not verdict.as_expected


def drawn(folder: str) -> bool:
    """One run folder in twenty, by what is random in its name; the same answer for the same run."""
    return int(folder.rpartition("r")[2], 16) % ONE_IN == 0


def cold(scenario: Scenario) -> Scenario:
    """The same, with drivers that begin cold."""
    return with_standby(scenario, standby=False)


def compared(
    second: Verdict,
    first: Verdict,
    *,
    folders: tuple[Path | None, Path | None],
    standby: bool = True,
    beside: bool = False,
) -> Verdict:
    """The verdict of the second run, in which all drivers began cold: unknown where the two do not agree, and neither
    left it open; as expected only if the first was. `folders` of the second and the first, None if not kept; why there
    was a second: a `standby`, others `beside` the first."""
    cold, waited = said(second, folders[0]), said(first, folders[1])
    found = Disagreement(waited=waited, cold=cold, standby=standby, beside=beside)
    if second.word in TELL and (cold.word, cold.kinds) != (waited.word, waited.kinds):
        return again.disagreeing(second, found)
    if first.as_expected or not second.as_expected:
        return second
    reason = f"the first was {waited.answer} ({found.ways[0]}), not as expected: {waited.run or 'not kept'}"
    return replace(second, as_expected=False, reasons=(*second.reasons, reason))


def said(verdict: Verdict, folder: Path | None) -> Said:
    """Its word, and the kinds of findings where it is violated. What was recovered is legal, and chance."""
    found = verdict.findings if verdict.word is Word.VIOLATED else ()
    kinds = {each.kind.value for each in found if each.kind is not Kind.RECOVERED}
    return Said(word=verdict.word.value, kinds=tuple(sorted(kinds)), run=str(folder or ""))


def record(verdict: Verdict, *folders: Path | None) -> list[Path]:
    """Write a disagreement into the folders of both runs; those that now have another page. Raises HarnessError."""
    kept = [folder for folder in folders if folder is not None] if verdict.disagreement else []
    for folder in kept:
        assert verdict.disagreement is not None
        again.write(folder, verdict.disagreement)
    return kept
