"""One run as the page of many runs has it, from its run folder or from its entry in a `summary.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.report import claims
from harness.report.exposures import Struck, struck
from harness.report.many.about import NOTHING, About
from harness.report.summary import Run
from harness.run_folder import store
from harness.scenario import Exposure, Word, plain

EXPECTED = "expected"
"""In the place of an issue: the pipeline's own scenarios expect it to fail so."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One step as it went: the fault, where its trigger was met, and whether it was injected."""

    name: str
    point: str = ""
    batch: int | None = None
    injected: bool = False


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One run. `folder` is its run folder on this machine, None if it is not here. `struck` are the cells with
    something exposed that counts. `idle` are those that were struck with nothing that would have shown. `unstruck` are
    the crash points of a sink that no injection put to the test. `removed`: its folder was here, and is gone. `known`:
    the issue in which its failure is worked on, or, of a night, EXPECTED. `drawn`: a night drew its plan; `again`: it
    played it before."""

    scenario: str
    word: Word
    as_expected: bool
    expected: str = ""
    kinds: Mapping[str, int] = field(default_factory=dict)
    outcomes: tuple[Outcome, ...] = ()
    reasons: tuple[str, ...] = ()
    seconds: float = 0.0
    stack: str = ""
    file: str = ""
    folder: Path | None = None
    removed: bool = False
    known: str = ""
    drawn: bool = False
    again: bool = False
    struck: tuple[Struck, ...] = ()
    idle: tuple[Struck, ...] = ()
    unstruck: tuple[tuple[str, str], ...] = ()
    about: About = NOTHING

    @classmethod
    def of(cls, run: Run) -> Seen:
        """Return a run of this machine."""
        verdict = run.verdict
        counting, idle = struck(verdict.exposures, verdict.steps)
        return cls(
            scenario=run.scenario,
            word=verdict.word,
            as_expected=verdict.as_expected,
            expected=verdict.expected,
            kinds=verdict.kinds(),
            outcomes=tuple(
                Outcome(name=s.name, point=s.point, batch=s.batch, injected=s.injected) for s in verdict.steps
            ),
            reasons=verdict.reasons,
            seconds=run.seconds,
            stack=run.stack,
            file=run.file,
            folder=run.folder,
            known=run.known,
            struck=tuple(counting),
            idle=tuple(idle),
            unstruck=verdict.untried,
            about=run.about,
        )

    @classmethod
    def read(cls, entry: Any, where: str) -> Seen:
        """Return an entry of a summary, `where` it stands. Raises UsageError if it is none. An error is never known."""
        stored = claims.mapping(entry)
        faults = claims.mappings(stored.get("faults"))
        seen: Seen = store.noun(
            Seen,
            {
                "scenario": stored.get("scenario"),
                "word": stored.get("verdict"),
                "as_expected": stored.get("as_expected"),
                "expected": stored.get("expected") or "",
                "kinds": stored.get("findings") or {},
                "outcomes": [{key: each.get(key) for key in ("name", "point", "batch", "injected")} for each in faults],
                "reasons": stored.get("reasons") or (),
                "seconds": stored.get("seconds") or 0.0,
                "stack": stored.get("stack") or "",
                "file": stored.get("file") or "",
                "unstruck": stored.get("unstruck") or (),
                "about": stored.get("about") or {},
                "known": "" if stored.get("verdict") == Word.ERROR else stored.get("known") or "",
                "struck": stored.get("struck") or (),
                "idle": stored.get("idle") or (),
                **{name: stored.get(name) or False for name in ("drawn", "again", "removed")},
            },
            where,
        )
        if "exposures" not in stored:
            return seen
        exposures: tuple[Exposure, ...] = store.noun(
            tuple[Exposure, ...], stored.get("exposures") or (), f"{where}, exposures"
        )
        counting, idle = struck(exposures, seen.outcomes)
        return replace(seen, struck=tuple(counting), idle=tuple(idle))

    def entry(self, folder: str = "") -> dict[str, Any]:
        """As an entry of a summary: `read` gives the same, but for `folder`, which is called `folder` there."""
        fields = plain(self)
        renamed = {"verdict": fields.pop("word"), "findings": fields.pop("kinds"), "faults": fields.pop("outcomes")}
        return {**fields, **renamed, "folder": folder or None}

    @property
    def steps(self) -> list[tuple[str, str, str]]:
        """Fault, place and batch of each step: as planned, or else as it went."""
        went = [(each.name, each.point, "" if each.batch is None else str(each.batch)) for each in self.outcomes]
        return list(self.about.schedule) or went

    @property
    def wrong(self) -> bool:
        """Return whether it ended otherwise than expected, in a way that is new."""
        return not (self.as_expected or self.known or self.blank)

    @property
    def blank(self) -> bool:
        """Return whether it is a drawn plan that tested nothing. That is no mistake, and no answer."""
        return self.drawn and self.word is Word.UNTESTED

    @property
    def mute(self) -> bool:
        """Return whether it ended without an answer."""
        return self.word in (Word.ERROR, Word.INCONCLUSIVE, Word.UNTESTED)
