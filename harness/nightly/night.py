"""The night itself: which plan comes next, whether it still fits, what it came to. Who runs a scenario is handed in.

night = Night(state=state, for_s=7200.0, list_=entries(known, drawn, own, shard=1, shards=1), targets=own, ...)
night.play(run)                                    by several threads, if several runs go on at once
night.code()                                       the exit code: the worst of what is new
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from time import monotonic

from harness.load import dump
from harness.nightly.draw import Cell, Plan, cell, claim, undrawn
from harness.nightly.possible import Target
from harness.nightly.state import Line, State
from harness.report.escape import visible
from harness.report.exposures import struck
from harness.report.many.about import NOTHING, planned
from harness.report.many.hunted import Hunted
from harness.report.many.seen import EXPECTED, Seen
from harness.report.summary import Run, error
from harness.run_folder import store
from harness.scenario import Kind, Scenario, Verdict, Word

AGAIN = 2
"""So often a plan that failed is run again at once."""
TRIES = 2
WHY_MAX, SHOWN = 500, 160


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One plan of the list, under a name that stays: `known 0`, `drawn 17`. One that is not drawn is of no half."""

    plan: str
    scenario: Scenario
    target: str
    half: str = ""


def entries(
    known: Sequence[Scenario], drawn: Iterable[Plan], targets: Sequence[Target], *, shard: int, shards: int
) -> Iterator[Entry]:
    """Yield the list: the corpus, of which each shard has its part, then what is drawn. A plan of the corpus is of the
    target that makes the same claim. If there is none, it is of one that it may have been drawn for."""
    names = {undrawn(target.base): target.name for target in reversed(targets)}
    names |= {claim(target.base): target.name for target in targets}
    for number, each in enumerate(known):
        if number % shards == shard - 1:
            own = names.get(claim(each)) or names.get(undrawn(each)) or each.path or each.name
            yield Entry(plan=f"known {number}", scenario=each, target=own)
    for plan in drawn:
        yield Entry(plan=f"drawn {plan.number}", scenario=plan.scenario, target=plan.target, half=plan.half.value)


def failed(verdict: Verdict, *, drawn: bool) -> bool:
    """Return whether it is one to run again. A drawn plan may strike nothing, which is no failure."""
    if drawn and verdict.word in (Word.UNTESTED, Word.INCONCLUSIVE):
        return False
    return not verdict.as_expected


def reproduced(runs: Sequence[Line]) -> str:
    """Return how many of the runs after the first one came to the same word with a kind in common."""
    first, rest = runs[0], runs[1:]
    same = [
        each for each in rest if each.verdict == first.verdict and (not first.kinds or {*first.kinds} & {*each.kinds})
    ]
    return f"reproduced {len(same)} of {len(rest)}" if rest else "not run again"


@dataclass(kw_only=True)
class Night:
    """One night. `targets` are those that plans are drawn for, `keep` is called with each line, plans that failed are
    written to `failing`; `today` decides which failures are known; `clock` returns seconds."""

    state: State
    for_s: float
    list_: Iterator[Entry]
    targets: Sequence[Target]
    failing: Path
    today: date
    keep: Callable[[Line], None] = lambda line: None
    clock: Callable[[], float] = monotonic
    _before_s: float = field(init=False)
    _began: float = field(init=False)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self._before_s, self._began = self.state.spent_s, self.clock()

    @property
    def spent_s(self) -> float:
        """Of the night, also before it was killed."""
        return self._before_s + self.clock() - self._began

    def fits(self) -> bool:
        """Return whether there is time for one more run, which may take as long as the longest so far."""
        return self.for_s - self.spent_s > self.state.longest_s

    def play(self, run: Callable[[Scenario], Run]) -> None:
        """Run each plan that has not been, until no run fits any more. Several threads may do so at once."""
        while (entry := self._next()) is not None and self._whole(entry, run):
            pass

    def _next(self) -> Entry | None:
        """Return the next plan of the list that is not passed over; None at its end."""
        with self._lock:
            return next((entry for entry in self.list_ if not self._passed_over(entry)), None)

    def _passed_over(self, entry: Entry) -> bool:
        """Return whether a drawn plan of the same target has failed. Then the time is better spent on the others, while
        there are any. What was begun is done."""
        if not entry.half or self.state.runs(entry.plan) or (entry.plan, 0) in self.state.begun:
            return False
        failed = {line.target for line in self.state.lines if line.half and line.failed}
        return entry.target in failed and not {target.name for target in self.targets} <= failed

    def _whole(self, entry: Entry, run: Callable[[Scenario], Run]) -> bool:
        """Return a plan, and again where it failed; False if the time is up."""
        if runs := self.state.runs(entry.plan):
            self._written(entry, runs)
        while len(runs := self.state.runs(entry.plan)) < 1 + (AGAIN if self._wants_again(runs) else 0):
            if not self.fits():
                return False
            self._one(entry, run, again=len(runs))
        return True

    def _wants_again(self, runs: Sequence[Line]) -> bool:
        """The first failure of its kinds in a target is run again, unless it is known; later ones say nothing new."""
        if not runs or not runs[0].failed or runs[0].known:
            return False
        with self._lock:
            lines = [*self.state.lines]
        first = next(line for line in lines if line.failed and not line.again and _like(line) == _like(runs[0]))
        return first.plan == runs[0].plan

    def _one(self, entry: Entry, run: Callable[[Scenario], Run], *, again: int) -> None:
        began = self.clock()
        with self._lock:
            ended = self.state.begun[entry.plan, again] >= TRIES
            if not ended:
                self.state.begin(entry.plan, again)
        if ended:
            done = Run(scenario=entry.scenario.name, verdict=error("the harness ended twice while it ran this plan"))
        else:
            done = run(entry.scenario)
        with self._lock:
            line = self._line(entry, done, again=again, seconds=self.clock() - began)
            self.state.add(line)
            self.keep(line)
            self._written(entry, self.state.runs(entry.plan))

    def _line(self, entry: Entry, done: Run, *, again: int, seconds: float) -> Line:
        verdict, steps = done.verdict, entry.scenario.schedule
        is_failed = failed(verdict, drawn=bool(entry.half))
        kinds = tuple(sorted(kind for kind in verdict.kinds() if kind != Kind.RECOVERED))
        return Line(
            plan=entry.plan,
            name=entry.scenario.name,
            target=entry.target,
            verdict=verdict.word.value,
            failed=is_failed,
            half=entry.half,
            again=again,
            kinds=kinds,
            injected=tuple(
                cell(entry.target, step) for step, was in zip(steps, verdict.steps, strict=False) if was.injected
            ),
            struck=tuple((each.sink, each.point, each.fault) for each in struck(verdict.exposures, verdict.steps)[0]),
            seconds=seconds,
            spent_s=self.spent_s,
            folder=str(done.folder or ""),
            known=self._known(entry, verdict, {*kinds}) if is_failed else "",
            seen=_seen(entry, done, seconds),
        )

    def _known(self, entry: Entry, verdict: Verdict, kinds: set[str]) -> str:
        """Return the issue in which it is worked on, EXPECTED of a drawn plan where its target's scenarios expect it;
        empty if it is new, and for an error, which is none of both."""
        if verdict.word is Word.ERROR:
            return ""
        own = next((target.own for target in self.targets if target.name == entry.target), ())
        expected = {kind for each in own for kind in each.verdict.violations}
        if entry.half and verdict.word is Word.VIOLATED and expected and kinds <= expected:
            return EXPECTED
        day = self.today.isoformat()
        for known in (each.known for each in (entry.scenario, *own) if each.known is not None):
            if day <= known.until and (not known.violated or known.covers(word=verdict.word, kinds=kinds, day=day)):
                return known.issue
        if not kinds:
            # A failure without findings is like no other one: nothing says that the cause is the same.
            return ""
        same = self._same(entry.target)
        alike = (line for line in self.state.lines if line.target in same and line.verdict == verdict.word)
        # What another target's scenarios expect, this one's do not.
        issues = (line for line in alike if line.known not in ("", EXPECTED))
        return next((line.known for line in issues if kinds <= {*line.kinds}), "")

    def _same(self, target: str) -> set[str]:
        """Return the targets that differ from it in nothing but what is drawn of their input."""
        claims = {each.name: undrawn(each.base) for each in self.targets}
        return {target} | {name for name, found in claims.items() if found == claims.get(target)}

    def _written(self, entry: Entry, runs: Sequence[Line]) -> None:
        """A drawn plan that failed, as an ordinary scenario file; not what the target's own scenarios expect."""
        if not entry.half or not runs[0].failed or runs[0].known == EXPECTED:
            return
        kinds = f" ({', '.join(runs[0].kinds)})" if runs[0].kinds else ""
        why = f"{entry.scenario.why}; {runs[0].verdict}{kinds}, {reproduced(runs)}"
        self.failing.mkdir(parents=True, exist_ok=True)
        path = self.failing / f"{store.slug(entry.scenario.name)}.yaml"
        store.write(path, dump(replace(entry.scenario, why=why[:WHY_MAX])))

    def code(self) -> int:
        """Return the exit code: 4 an error; 1 a failure that is new; 3 if something is inconclusive, or did not strike
        what a file says; also 3 if no drawn run exposed anything; else 0."""
        words = {line.verdict for line in self.state.lines if line.wrong}
        if Word.ERROR in words:
            return 4
        if words & {Word.VIOLATED, Word.HELD}:
            return 1
        return 3 if words or not any(line.struck for line in self.state.lines if line.half) else 0

    def summary(self) -> str:
        """Return the night in one line, for a chat."""
        first = [line for line in self.state.lines if not line.again]
        words = Counter(line.verdict for line in first)
        counts = ", ".join(f"{words[word.value]} {word.value}" for word in Word if words[word.value])
        new = {_like(line): line for line in reversed(first) if line.wrong}
        known = [line for line in first if line.failed and line.known]
        being = len({line.known for line in known if line.known != EXPECTED})
        parts = [f"{len(first)} plans in {self.spent_s / 60:.0f} min: {counts or 'nothing run'}"]
        for line in [*new.values()][::-1]:
            kinds = f" {', '.join(line.kinds)}" if line.kinds else ""
            again = reproduced(self.state.runs(line.plan))
            parts.append(f"{visible(line.target, SHOWN)}: {line.verdict}{kinds}, plan {line.plan}, {again}")
        parts += [f"{being} known issues failed"] if being else []
        if hunted := self.hunted():
            found = sum(bool(each.plan) for each in hunted)
            parts.append(f"{found} of {len(hunted)} pipelines that are expected to break were found")
        head = self.state.head
        return f"nightly seed {head.seed} shard {head.shard}/{head.shards}: {'; '.join(parts)}"

    def hunted(self) -> list[Hunted]:
        """Of each target that is expected to break: after how many plans that was found, in the order of their ends."""
        first = [line for line in self.state.lines if not line.again]
        broken = [each for each in self.targets if any(own.verdict.violations for own in each.own)]
        return [_hunted(target.name, first) for target in broken]

    def cells(self) -> Counter[Cell]:
        """Return how often each cell was struck: a fault was injected there, in a run that exposed something that
        counts."""
        lines = [line for line in self.state.lines if line.struck and not line.again]
        return Counter(found for line in lines for found in line.injected)


def _seen(entry: Entry, done: Run, seconds: float) -> Seen:
    """Return what the page says of a run that is over."""
    about = planned(entry.scenario) if done.about == NOTHING else done.about
    found = Seen.of(replace(done, scenario=entry.scenario.name, seconds=done.seconds or seconds, about=about))
    reasons = tuple(reason[:WHY_MAX] for reason in found.reasons[:1])
    return replace(found, folder=None, reasons=reasons)


def _hunted(target: str, first: Sequence[Line]) -> Hunted:
    """`first` are the first runs of all plans."""
    for every, line in enumerate(first, 1):
        if line.target == target and line.known == EXPECTED:
            own = sum(each.target == target for each in first[:every])
            return Hunted(pipeline=target, plan=line.plan, own=own, every=every)
    return Hunted(pipeline=target, plan="", own=sum(line.target == target for line in first), every=len(first))


def _like(line: Line) -> tuple[str, str, tuple[str, ...]]:
    """Return what a failure is: another one of the same target, word and kinds is no new one."""
    return line.target, line.verdict, line.kinds
