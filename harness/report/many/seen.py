"""One run as the page of many runs has it, from its run folder or from its entry in a `summary.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.report import claims
from harness.report.exposures import Struck, struck
from harness.report.many.about import NOTHING, About
from harness.run_folder import store
from harness.scenario import Word, plain

if TYPE_CHECKING:
    from harness.report.summary import Run

EXPECTED = "expected"
"""In the place of an issue: the pipeline's own scenarios expect it to fail so."""


NAMES = {"word": "verdict", "kinds": "findings", "outcomes": "faults"}
"""What an entry of a summary calls fields of a run otherwise."""


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
    expected: str = ""
    word: Word
    as_expected: bool
    kinds: Mapping[str, int] = field(default_factory=dict)
    outcomes: tuple[Outcome, ...] = ()
    seconds: float = 0.0
    reasons: tuple[str, ...] = ()
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
        there = {name: value for name, value in stored.items() if value is not None}
        own = {name: there[theirs] for name, theirs in NAMES.items() if theirs in there}
        own |= {"folder": None} | ({"known": ""} if own.get("word") == Word.ERROR else {})
        seen: Seen = store.noun(Seen, there | own, where)
        return seen

    def entry(self, folder: str = "") -> dict[str, Any]:
        """As an entry of a summary: `read` gives the same, but for `folder`, which is called `folder` there."""
        fields = {NAMES.get(name, name): value for name, value in plain(self).items()}
        return fields | {"folder": folder or None}

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
