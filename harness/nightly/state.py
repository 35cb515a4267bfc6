"""What a night has done so far: a file of lines, appended to and never changed, so that a killed night goes on.

The first line says what the list of plans is made of. Then each run has two: that it began, and what it came to; the
last one is the end of the night. A run that began and has no other line is done again, once: what ended the harness
twice is an error of that plan.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.report.many.seen import Seen
from harness.run_folder.lines import append, whole
from harness.run_folder.store import noun
from harness.scenario import Word

VERSION = 4


@dataclass(frozen=True, kw_only=True)
class Head:
    """What the list of plans is made of. `digest` is of the scenario files that were given, their paths and programs,
    the stack, the kinds and this version; `struck` what earlier nights struck, as rows of target, place, fault and
    count."""

    seed: int
    shard: int
    shards: int
    digest: str
    struck: tuple[tuple[str, str, str, int], ...] = ()
    version: int = VERSION


@dataclass(frozen=True, kw_only=True)
class Line:
    """One run that is over. `plan` names it (`known 3`, `drawn 17`), `again` counts its runs after the first one.

    `injected` are the cells of its plan whose step was injected; `struck` rows of sink, point and fault where something
    was exposed that counts. `spent_s` is the time of the night until its end, `folder` the run's, empty if there was
    none. `known` is the issue in which the failure is worked on, EXPECTED where the target's own scenarios expect it.
    `seen` is what the page says of the run, whose folder may be removed before the night is over."""

    plan: str
    name: str
    target: str
    verdict: str
    failed: bool
    half: str = ""
    again: int = 0
    kinds: tuple[str, ...] = ()
    injected: tuple[tuple[str, str, str], ...] = ()
    struck: tuple[tuple[str, str, str], ...] = ()
    seconds: float = 0.0
    spent_s: float = 0.0
    folder: str = ""
    known: str = ""
    seen: Seen | None = None

    @property
    def wrong(self) -> bool:
        """Return whether it is a failure that is new. A drawn plan that is inconclusive is one too, though it is not
        run again."""
        return (self.failed or (bool(self.half) and self.verdict == Word.INCONCLUSIVE)) and not self.known


@dataclass
class State:
    """The file, and what it holds. `begun` counts how often a run of a plan began and came to nothing."""

    path: Path
    head: Head
    lines: list[Line] = field(default_factory=list)
    begun: Counter[tuple[str, int]] = field(default_factory=Counter)
    ended: bool = False

    @classmethod
    def opened(cls, path: Path, head: Head) -> State:
        """Return the state of the night that `head` begins or continues. A continued night keeps what earlier nights
        had struck when it began. Raises UsageError for another night's state, one that is over, and damage."""
        if not path.is_file() or not (text := whole(path)):
            state = cls(path, head)
            append(path, {"head": asdict(head)})
            return state
        state = cls.read(path, text)
        if replace(state.head, struck=()) != replace(head, struck=()):
            saw = "seed, shard, stack, version, scenarios, paths as written or programs were others when it began"
            todo = "Write the paths as they were, move the file, or take another --seed"
            raise UsageError(f"asked to go on with the night of {path}; {saw}. {todo}")
        if state.ended:
            raise UsageError(f"asked for the night of {path}; it is over. Take another --seed, or move the file")
        return state

    @classmethod
    def read(cls, path: Path, text: bytes) -> State:
        """Return what a file holds. Raises UsageError for damage."""
        try:
            parts = [json.loads(line) for line in text.splitlines()]
            state = cls(path, noun(Head, parts[0]["head"], "its head"))
            for part in parts[1:]:
                state._take(part)
        except (UsageError, ValueError, KeyError, TypeError) as failure:
            raise UsageError(f"asked to go on with the night of {path}; it is damaged ({failure!r}). Move it") from None
        return state

    def begin(self, plan: str, again: int) -> None:
        """A run begins."""
        self.begun[plan, again] += 1
        append(self.path, {"begun": [plan, again]})

    def add(self, line: Line) -> None:
        """Keep a run that is over."""
        append(self.path, {"run": asdict(line)})
        self._over(line)

    def end(self) -> None:
        """The night is over."""
        append(self.path, {"ended": True})
        self.ended = True

    @property
    def spent_s(self) -> float:
        """The time that the night has had so far."""
        return max((line.spent_s for line in self.lines), default=0.0)

    @property
    def longest_s(self) -> float:
        """The longest run so far."""
        return max((line.seconds for line in self.lines), default=0.0)

    def runs(self, plan: str) -> list[Line]:
        """Return those of one plan, the first one first."""
        return sorted((line for line in [*self.lines] if line.plan == plan), key=lambda line: line.again)

    def _take(self, part: dict[str, Any]) -> None:
        if "begun" in part:
            plan, again = part["begun"]
            self.begun[str(plan), int(again)] += 1
        elif "run" in part:
            self._over(noun(Line, part["run"], "a run"))
        else:
            self.ended = self.ended or bool(part["ended"])

    def _over(self, line: Line) -> None:
        self.lines.append(line)
        self.begun.pop((line.plan, line.again), None)
