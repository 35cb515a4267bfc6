"""The night itself: which plan comes next, whether it still fits, what it came to. Who runs a scenario is handed in.

night = Night(state, for_s=7200.0, run=run, keep=keep)
night.play(entries(known, own, drawn, shard=1, shards=1))
night.code()                                       the exit code: the worst of what is new
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from time import monotonic

from harness.load import dump
from harness.nightly.bound import Bound, bounds
from harness.nightly.draw import Cell, Plan
from harness.nightly.state import Line, State
from harness.report.stakes import struck
from harness.report.summary import Run
from harness.run_folder import store
from harness.scenario import Scenario, Verdict, Word

AGAIN = 2
"""So often a plan that failed is run again at once."""
WHY_MAX = 500


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One plan of the list, under a name that stays: `known 0`, `own 3`, `drawn 17`."""

    plan: str
    scenario: Scenario
    target: str
    half: str = ""
    aimed: tuple[Cell, ...] = ()


def entries(
    known: Sequence[Scenario], own: Sequence[Scenario], drawn: Iterable[Plan], *, shard: int, shards: int
) -> Iterator[Entry]:
    """The list: the corpus, each scenario's own schedule, then what is drawn. Of the first two each shard has its
    part."""
    for word, scenarios in (("known", known), ("own", [each for each in own if each.schedule])):
        for number, each in enumerate(scenarios):
            if number % shards == shard - 1:
                yield Entry(plan=f"{word} {number}", scenario=each, target=each.path or each.name)
    for plan in drawn:
        yield Entry(
            plan=f"drawn {plan.number}",
            scenario=plan.scenario,
            target=plan.target,
            half=plan.half.value,
            aimed=tuple(sorted(plan.cells)),
        )


def failed(verdict: Verdict, *, drawn: bool) -> bool:
    """Is it one to run again? A drawn plan may hit nothing, which is no failure."""
    if drawn and verdict.word in (Word.VOID, Word.UNKNOWN):
        return False
    return not verdict.as_expected


def reproduced(runs: Sequence[Line]) -> tuple[int, int]:
    """How many of the runs after the first one came to the same word with a kind in common, of how many."""
    first, rest = runs[0], runs[1:]
    same = [
        each for each in rest if each.verdict == first.verdict and (not first.kinds or {*first.kinds} & {*each.kinds})
    ]
    return len(same), len(rest)


@dataclass
class Night:
    """One night. `run` plays a scenario, `keep` is told each line; `failing` is where plans
    that failed are written; `today` decides which failures are known; `clock` gives seconds."""

    state: State
    for_s: float
    run: Callable[[Scenario], Run]
    failing: Path
    today: date
    keep: Callable[[Line], None] = lambda line: None
    clock: Callable[[], float] = monotonic
    _before_s: float = field(init=False)
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        self._before_s, self._began = self.state.spent_s, self.clock()

    @property
    def spent_s(self) -> float:
        """Of the night, also before it was killed."""
        return self._before_s + self.clock() - self._began

    def fits(self) -> bool:
        """Is there time for one more run, which may take as long as the longest so far?"""
        return self.for_s - self.spent_s > self.state.longest_s

    def play(self, list_: Iterable[Entry]) -> None:
        """Run each plan that has not been, until no run fits any more."""
        for entry in list_:
            if not self._whole(entry):
                break
        self.state.end()

    def _whole(self, entry: Entry) -> bool:
        """A plan, and again where it failed; False if the time is up."""
        while len(runs := self.state.runs(entry.plan)) < 1 + (AGAIN if self._wants_again(runs) else 0):
            if not self.fits():
                return False
            self._one(entry, again=len(runs))
        return True

    def _wants_again(self, runs: Sequence[Line]) -> bool:
        """The first failure of its kinds in a target is run again; the next ones say nothing new."""
        if not runs or not runs[0].failed:
            return False
        first = next(
            line for line in self.state.lines if line.failed and not line.again and _like(line) == _like(runs[0])
        )
        return first.plan == runs[0].plan

    def _one(self, entry: Entry, *, again: int) -> None:
        began = self.clock()
        done = self.run(entry.scenario)
        verdict = done.verdict
        line = Line(
            plan=entry.plan,
            name=entry.scenario.name,
            target=entry.target,
            verdict=verdict.word.value,
            failed=failed(verdict, drawn=bool(entry.half)),
            half=entry.half,
            again=again,
            kinds=tuple(sorted(verdict.kinds())),
            aimed=entry.aimed,
            struck=tuple((each.sink, each.point, each.fault) for each in struck(verdict)),
            seconds=self.clock() - began,
            spent_s=self.spent_s,
            folder=str(done.folder or ""),
            known=self._known(entry.scenario, verdict),
        )
        self.state.add(line)
        self.keep(line)
        runs = self.state.runs(entry.plan)
        if runs[0].failed and entry.half:
            self._written(entry.scenario, runs)

    def _known(self, scenario: Scenario, verdict: Verdict) -> str:
        """The issue in which it is worked on; empty if it is new again, and for an error, which is none of it."""
        known = scenario.known
        at_work = known is not None and self.today.isoformat() <= known.until and verdict.word is not Word.ERROR
        return known.issue if known is not None and at_work else ""

    def _written(self, scenario: Scenario, runs: Sequence[Line]) -> None:
        """The plan as an ordinary scenario file."""
        same, of = reproduced(runs)
        kinds = f" ({', '.join(runs[0].kinds)})" if runs[0].kinds else ""
        why = f"{scenario.why}; {runs[0].verdict}{kinds}, reproduced {same} of {of}"
        self.failing.mkdir(parents=True, exist_ok=True)
        path = self.failing / f"{store.slug(scenario.name)}.yaml"
        store.write(path, dump(replace(scenario, why=why[:WHY_MAX])))

    @property
    def bounds(self) -> list[Bound]:
        """What the uniform half says."""
        return bounds(self.state.lines)

    def code(self) -> int:
        """The exit code: 4 an error, 1 a failure that is new, 3 if something is unknown, did not hit what a file says,
        or no run hit anything, else 0."""
        new = [line for line in self.state.lines if not line.known]
        words = {line.verdict for line in new if line.failed}
        if Word.ERROR in words:
            return 4
        if words & {Word.VIOLATED, Word.HELD}:
            return 1
        unknown = any(line.verdict == Word.UNKNOWN for line in new if line.failed or line.half)
        return 3 if unknown or words or not any(line.struck for line in self.state.lines) else 0

    def summary(self) -> str:
        """The night in one line, for a chat."""
        first = [line for line in self.state.lines if not line.again]
        words = Counter(line.verdict for line in first)
        told = ", ".join(f"{words[word.value]} {word.value}" for word in Word if words[word.value])
        new = {_like(line): line for line in reversed(first) if line.failed and not line.known}
        being = len({line.known for line in first if line.failed and line.known})
        parts = [f"{len(first)} plans in {self.spent_s / 60:.0f} min: {told or 'nothing run'}"]
        for line in [*new.values()][::-1]:
            same, of = reproduced(self.state.runs(line.plan))
            kinds = f" {', '.join(line.kinds)}" if line.kinds else ""
            parts.append(f"{line.target}: {line.verdict}{kinds}, plan {line.plan}, reproduced {same} of {of}")
        parts += [f"{being} known issues failed"] if being else []
        head = self.state.head
        return f"nightly seed {head.seed} shard {head.shard}/{head.shards}: {'; '.join(parts)}"

    def cells(self) -> Counter[Cell]:
        """How often each cell was aimed at by a run that struck something."""
        return Counter(cell for line in self.state.lines if line.struck and not line.again for cell in line.aimed)


def _like(line: Line) -> tuple[str, str, tuple[str, ...]]:
    """What a failure is: another one of the same target, word and kinds is no new one."""
    return line.target, line.verdict, line.kinds
