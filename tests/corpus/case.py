"""One adversarial case: a run folder that fools a naive judge, its one right verdict, and a twin that differs in one
fact and has another.

    @adversary(1, untested("batch 0 held no record"), twin=held("1 repetition"))
    def first_batch_is_empty(run: Scene) -> Iterator[str]:
        \"\"\"What is wrong, and why it fools.\"\"\"
        run.batch_sizes(0, 10, 10, 10)
        run.injected(0)
        yield "batch 0 held ten records"       # the case stands; from here on, its twin
        run.batch_sizes(10, 10, 10, 10)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import HarnessError, UsageError
from harness.judge import judged
from harness.run_folder import digests
from harness.scenario import Kind, Verdict, Word
from tests.corpus.run_builder import RunBuilder, run_builder

Builder = Callable[[RunBuilder], Iterator[str] | None]


@dataclass(frozen=True, kw_only=True)
class Right:
    """A verdict and what it rests on. All of it is held, what is left out as well.

    `said` is a phrase of a reason (or of a note); `kinds` counts the findings, `faults` and `fits` are the injections
    that all of them together blame or admit, `batches` those that they name; None means that nothing hangs on it.
    `shown` lists what was exposed and would have shown, or came and was dropped (`1 repetition`: in step 1), None where
    nothing hangs on it."""

    word: Word
    said: str = ""
    as_expected: bool = False
    kinds: Mapping[Kind, int] | None = field(default_factory=dict)
    faults: tuple[str, ...] | None = ()
    fits: tuple[str, ...] | None = ()
    batches: tuple[int, ...] | None = None
    without_faults: bool = False
    shown: tuple[str, ...] | None = None
    baseline_runs_needed: int = 0


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a judge said, in the same terms."""

    word: Word
    as_expected: bool = False
    reasons: tuple[str, ...] = ()
    kinds: Mapping[Kind, int] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    fits: tuple[str, ...] = ()
    batches: tuple[int, ...] = ()
    without_faults: bool = False
    shown: tuple[str, ...] = ()
    baseline_runs_needed: int = 0

    def misses(self, right: Right) -> dict[str, object]:
        """What is not as it should be; empty if all is."""
        wanted = {
            name: getattr(right, name)
            for name in (
                "word",
                "as_expected",
                "kinds",
                "faults",
                "fits",
                "batches",
                "without_faults",
                "shown",
                "baseline_runs_needed",
            )
        }
        out = {
            n: (getattr(self, n), want) for n, want in wanted.items() if want is not None and getattr(self, n) != want
        }
        if right.said and not any(right.said in reason for reason in self.reasons):
            out["said"] = (self.reasons, right.said)
        return dict(out)


@dataclass(frozen=True, kw_only=True)
class Adversary:
    """A case and its twin. `item` counts "What is wrong today"; `build` runs up to its `yield` for the case, to its end
    for the twin, and yields the one fact in which the twin differs. `guard`: judged right by the code of before the
    corpus too; it keeps later mends from being too careful."""

    id: str
    item: int
    title: str
    build: Builder
    right: Right
    twin: Right | None = None
    guard: bool = False

    def case(self, path: Path) -> RunBuilder:
        """The case, to be written to `path`."""
        run = run_builder(path)
        facts = self.build(run)
        if facts is not None:
            next(facts)
        return run

    def other(self, path: Path) -> tuple[RunBuilder, list[str]]:
        """Its twin, and the facts in which it differs."""
        run = run_builder(path)
        return run, list(self.build(run) or ())


def adversary(
    item: int, right: Right, *, twin: Right | None = None, guard: bool = False
) -> Callable[[Builder], Adversary]:
    """Makes a case of a builder."""

    def made(build: Builder) -> Adversary:
        module = build.__module__.rpartition(".")[2]
        title = " ".join((build.__doc__ or "").split())
        name = f"{module}/{build.__name__}"
        return Adversary(id=name, item=item, title=title, build=build, right=right, twin=twin, guard=guard)

    return made


def judged_as(run: RunBuilder, written: Path | None = None) -> Seen:
    """What the judge says of a run, with a clean baseline run where it needs one and the run has none. A folder that it
    refuses to judge is an error, in its words. `written` is its folder, if it has been written."""
    folder = written or run.write()
    try:
        if (folder / "digests.json").is_file():
            digests.opened(folder)
        told = judged(folder)
        if told.baseline_runs_needed and not run.baseline_runs:
            told = judged(run.write_baseline())
    except (HarnessError, UsageError) as refusal:
        return Seen(word=Word.ERROR, reasons=(str(refusal),))
    return seen(told.verdict, told.baseline_runs_needed)


def seen(verdict: Verdict, baseline_runs_needed: int) -> Seen:
    """A verdict in the terms of a case."""
    findings = [finding for finding in verdict.findings if finding.kind is not Kind.RECOVERED]
    kinds: dict[Kind, int] = {}
    for finding in findings:
        kinds[finding.kind] = kinds.get(finding.kind, 0) + 1
    return Seen(
        word=verdict.word,
        as_expected=verdict.as_expected,
        reasons=(*verdict.reasons, *verdict.notes),
        kinds=kinds,
        faults=tuple(sorted({fault for finding in findings for fault in finding.faults})),
        fits=tuple(sorted({fault for finding in findings for fault in finding.fits})),
        batches=tuple(sorted({batch for finding in findings for batch in finding.batches})),
        without_faults=bool(findings) and all(finding.without_faults for finding in findings),
        shown=tuple(sorted({f"{exposure.step} {exposure.harm}" for exposure in verdict.exposures if not exposure.why})),
        baseline_runs_needed=baseline_runs_needed,
    )


def held(*shown: str, said: str = "", as_expected: bool = True, **more: object) -> Right:
    """Held, with this exposed and shown."""
    return Right(word=Word.HELD, said=said, as_expected=as_expected, shown=shown, **more)  # type: ignore[arg-type]


def untested(said: str, *, as_expected: bool = False, **more: object) -> Right:
    """Untested, and nothing exposed that shows."""
    return Right(word=Word.UNTESTED, said=said, as_expected=as_expected, **{"shown": (), **more})  # type: ignore[arg-type]


def inconclusive(said: str, **more: object) -> Right:
    """Unknown, for this reason."""
    return Right(word=Word.INCONCLUSIVE, said=said, **more)  # type: ignore[arg-type]


def error(said: str, **more: object) -> Right:
    """An error: no verdict."""
    return Right(word=Word.ERROR, said=said, **more)  # type: ignore[arg-type]


def violated(kind: Kind, count: int, *faults: str, **more: object) -> Right:
    """Violated by so many findings of one kind, done by these steps; by none that is known if there are none."""
    return Right(word=Word.VIOLATED, **{"kinds": {kind: count}, "faults": faults, **more})  # type: ignore[arg-type]
