"""A verdict that came with a driver that had waited ready is not the last word: a restart in production is slower.

Each *violated* of such a run, and one *held* in twenty, is run again with drivers that begin cold. Where one of the two
held and the other did not, nobody can tell: unknown.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.run.loop import Result
from harness.run.plan import with_standby
from harness.run_folder.store import RunFolder
from harness.scenario import Scenario, Verdict, Word
from harness.stack import Start

ONE_IN = 20
TELL = (Word.HELD, Word.VIOLATED)
AGAIN = " (again, drivers cold)"


def wants_another(result: Result) -> bool:
    """Did an attempt of it begin warm, and is it one of those that are run again?"""
    word, outcome = result.verdict.word, RunFolder.open(result.folder).read("run")["run"].get("outcome", {})
    # One that has asked for no session by its end had waited too.
    if not any(each["start"] in (Start.WARM, Start.UNASKED) for each in outcome.get("starts", ())):
        return False
    return word is Word.VIOLATED or (word is Word.HELD and drawn(result.folder.name))


def drawn(folder: str) -> bool:
    """One run folder in twenty, by what is random in its name; the same answer for the same run."""
    return int(folder.rpartition("r")[2], 16) % ONE_IN == 0


def cold(scenario: Scenario) -> Scenario:
    """The same, with drivers that begin cold."""
    return with_standby(scenario, standby=False)


def compared(verdict: Verdict, first: Verdict, folder: Path | None) -> Verdict:
    """The verdict of the run that was cold, as expected only if the first was, which is kept in `folder`; unknown where
    the two do not agree, and neither left it open."""
    where = folder or "its folder was not kept"
    reason = f"{said(verdict)} with drivers that began cold, {said(first)} with one that had waited: {where}"
    if verdict.word in TELL and said(verdict) != said(first):
        return replace(verdict, word=Word.UNKNOWN, as_expected=False, reasons=(*verdict.reasons, reason))
    if first.as_expected or not verdict.as_expected:
        return verdict
    return replace(verdict, as_expected=False, reasons=(*verdict.reasons, reason))


def said(verdict: Verdict) -> str:
    """Its word, and the kinds of findings where it is violated."""
    kinds = f" ({', '.join(verdict.kinds())})" if verdict.word is Word.VIOLATED else ""
    return verdict.word.value + kinds
