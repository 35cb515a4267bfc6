"""Many runs on one stack, for the command line: load everything first, come up once, run each, say how it went.

Some scenarios cannot be run: the pipeline does not work without faults, or the surroundings fail. Such a scenario is an
`error` in the table and does not stop the others; a stack that died does.
"""

from __future__ import annotations

import fcntl
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, Any

from harness.errors import HarnessError, Interrupted, OwnCodeError, StackError, UsageError
from harness.history import Listener
from harness.report.ci import github, junit
from harness.report.escape import visible
from harness.report.many import about as abouts
from harness.report.many import trend
from harness.report.summary import Run, brief, error
from harness.report.summary import exit_code as exit_code
from harness.report.summary import write as write_summary
from harness.run.loop import run as run_one
from harness.run.plan import in_its_file
from harness.run_folder import digests, store
from harness.scenario import Scenario, Word
from harness.stack import PROMISED_CORES, Stack
from harness.stacks.supported import unsupported
from harness.suite.options import Options, one_at_a_time
from harness.suite.options import jobs as jobs_of
from harness.suite.reported import report as report
from harness.suite.side_by_side import MOST, alone, most_promised, played, threads
from harness.suite.suite_stack import stack_of, up

if TYPE_CHECKING:
    from harness.suite.progress import Progress

END = "the end of the suite"
BESIDE = (
    "other runs used the same servers at the same time; a program with a constant transactional.id or advisory lock "
    "meets itself in them; `onceproof replay` plays this run alone"
)


@dataclass
class Suite:
    """What is known of a suite while it runs, by any of its jobs. `writes`: it keeps a summary on disk."""

    options: Options
    progress: Progress
    writes: bool = True
    _runs: list[tuple[int, Run]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, number: int, run: Run) -> None:
        """Keep one run's outcome, of the scenario with that number; the summary on disk is never older than this."""
        self.keep([(number, run)])
        self.progress.ended(number, run)

    def keep(self, numbered: Sequence[tuple[int, Run]]) -> None:
        """Keep outcomes, each of the scenario with that number, and write the summary."""
        with self._lock:
            self._runs += ((number, brief(run)) for number, run in numbered)
            if self.writes:
                write_summary(self.options.reports, self.runs)
            if self.options.junit is not None:
                junit.write(self.options.junit, self.runs)

    def judged(self, number: int) -> bool:
        """Return whether a run of the scenario with that number is over."""
        return any(number == each for each, _ in self._runs)

    @property
    def runs(self) -> list[Run]:
        """Those that are over, in the order that was asked for."""
        return [run for _, run in sorted(self._runs, key=itemgetter(0))]


@dataclass(frozen=True, kw_only=True)
class Further:
    """What a suite does on its stack once its runs are over. It needs what the scenarios `needs` do, and may strike any
    component of theirs. `play` returns an exit code."""

    needs: Sequence[Scenario]
    play: Callable[[Stack, Suite], int]


def supported(scenarios: Sequence[Scenario], stack: str) -> list[Scenario]:
    """Return those that the stack supports; the others are named. Raises UsageError if none is left."""
    out = []
    for scenario in scenarios:
        if steps := unsupported(scenario, stack):
            print(f"not run: {scenario.path}: the stack {stack} does not support {', '.join(steps)}")
        else:
            out.append(scenario)
    if not out:
        raise UsageError(f"the stack {stack} supports none of these scenarios; take another stack")
    return out


def run_all(work: Sequence[Scenario], options: Options, further: Further | None = None) -> int:
    """Run each scenario on one stack, and do what comes `further`; return the exit code. Raises UsageError, StackError,
    Interrupted."""
    from harness.suite.progress import progress

    if (options.jobs or 1) > 1 and one_at_a_time(options):
        raise UsageError(f"asked for several --jobs on the stack {options.stack}; it takes one run at a time")
    most = most_promised(work)
    if (options.jobs or 1) > MOST:
        raise UsageError(f"asked for --jobs {options.jobs}; a stack takes {MOST} runs at once: --jobs {most}")
    if min(options.jobs or 1, len(work)) > most:
        raise UsageError(
            f"asked for --jobs {options.jobs}; that many of these scenarios may need more than the worker's "
            f"{PROMISED_CORES} cores: --jobs {most}"
        )
    later = further.needs if further else ()
    jobs = jobs_of(options, work)
    stack = stack_of(options, [*work, *later])
    with signals(), only_suite(options.reports):
        if options.junit is not None:
            junit.begin(options.junit)
        # A sweep has several runs.
        suite = Suite(options, progress(jobs=jobs_of(options, [*work, *later, *later])))

        def play(number: int, scenario: Scenario) -> None:
            stack.health()
            steps = len(scenario.schedule)
            heard = suite.progress.started(scenario.name, number=number, total=len(work), steps=steps)
            done = one(scenario, stack, options=options, listener=heard)
            suite.add(number, shared(done) if jobs > 1 and len(work) > 1 and not alone(scenario) else done)

        try:
            with closing(suite.progress), threads(jobs) as pool, up(stack):
                if jobs > 1:
                    played(work, pool, play)
                else:
                    # In this thread, the one that is interrupted.
                    for number, scenario in enumerate(work, 1):
                        play(number, scenario)
                runs = suite.runs
                code = further.play(stack, suite) if further else 0
        except BaseException as failure:
            # The exception that ended it is the one to report.
            with suppress(Exception):
                cut_short(suite, work, later, failure)
            raise
        index = ended(options.reports, suite.runs) if suite.runs else None
    with github.no_commands():
        if work:
            show(runs, index, verbose=options.verbose)
    github.annotate(suite.runs)
    return worst([exit_code(runs), code])


def worst(codes: Sequence[int]) -> int:
    """Return the exit code that the others do not hide."""
    return max(codes, key=(0, 3, 1, 4, 2).index)


def ended(reports: Path, runs: Sequence[Run]) -> Path:
    """Keep a line of a suite that is over, and write its page; the page."""
    from harness.report import render

    trend.append(store.latest(reports) / trend.NAME, runs, exit_code(runs))
    return render.index(reports, runs)


def cut_short(suite: Suite, work: Sequence[Scenario], later: Sequence[Scenario], failure: BaseException) -> None:
    """Report each scenario that has no verdict: silence would be taken for a pass."""
    from harness.report import render

    options, why = suite.options, str(failure) or type(failure).__name__
    left = [each for number, each in enumerate(work, 1) if not suite.judged(number)]
    known = {run.file for run in suite.runs}
    left += (each for each in later if each.path not in known)
    lost = [unjudged(each, options, stack=options.stack, why=f"it was not judged: {why}") for each in left]
    # Each has a verdict, and some were to be confirmed, or the stack did not end.
    over = [Run(scenario=END, verdict=error(f"it failed: {why}"), stack=options.stack)] if not left else []
    runs = [*suite.runs, *lost, *over]
    write_summary(options.reports, runs)
    if options.junit is not None:
        junit.write(options.junit, runs)
    index = render.index(options.reports, runs)
    with github.no_commands():
        if suite.runs:
            show(suite.runs, index, verbose=options.verbose)
        # What ended the suite is printed after it, on the other stream.
        print(f"\nnot judged: {', '.join(visible(each.name) for each in left) or END}", flush=True)
    github.annotate(runs)


def unjudged(scenario: Scenario, options: Options, *, stack: str, why: str = "") -> Run:
    """Return a run of that scenario before it has a verdict."""
    return Run(
        scenario=scenario.name,
        verdict=error(why, expected=str(scenario.verdict)),
        stack=stack,
        # Of what the file does not say no command may name it. One that is gone says nothing else.
        file=scenario.path if in_its_file(scenario) or not Path(scenario.path).is_file() else "",
        seed=scenario.seed if options.seed is None else options.seed,
        about=abouts.planned(scenario),
    )


def shared(done: Run) -> Run:
    """Return the run, with a note where it is violated and not expected to be: other runs used the same servers."""
    verdict = done.verdict
    if verdict.word is not Word.VIOLATED or verdict.as_expected:
        return done
    return replace(done, verdict=replace(verdict, notes=(*verdict.notes, BESIDE)))


def one(scenario: Scenario, stack: Stack, *, options: Options, listener: Listener) -> Run:
    """Return one run, its page written and its folder kept or not."""
    from harness.report import render

    began = monotonic()
    unjudged_run = unjudged(scenario, options, stack=stack.name)
    about = unjudged_run.about
    try:
        result = run_one(scenario, stack, reports=options.reports, seed=options.seed, listener=listener)
    except HarnessError as failure:
        if isinstance(failure, StackError) and not isinstance(failure, OwnCodeError):
            raise
        if failure.folder is not None:
            render.write(failure.folder)
        failed = error(str(failure), expected=str(scenario.verdict))
        seconds = monotonic() - began
        about = (abouts.read(failure.folder, seconds) if failure.folder is not None else None) or about
        return replace(unjudged_run, verdict=failed, folder=failure.folder, seconds=seconds, about=about)
    except Exception as failure:
        # An error of the harness in one run: it is reported as such, and the others still run.
        words = f"the harness failed: {failure!r}\n{traceback.format_exc()}"
        failed = error(words, expected=str(scenario.verdict))
        return replace(unjudged_run, verdict=failed)
    folder: Path | None = result.folder
    render.write(result.folder)
    about = abouts.read(result.folder, result.seconds) or about
    if options.keep == "none" or (options.keep == "failed" and result.verdict.as_expected):
        store.RunFolder.open(result.folder).remove()
        folder = None
    return replace(unjudged_run, verdict=result.verdict, folder=folder, seconds=result.seconds, about=about)


@contextmanager
def only_suite(reports: Path) -> Iterator[None]:
    """Hold the reports folder: two suites would overwrite each other's summary. Raises HarnessError if it is taken."""
    folder = store.latest(reports)
    with (folder / ".lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HarnessError(
                f"another suite is writing to {reports}; wait for it, or give this one another folder (--reports)"
            ) from None
        yield


@contextmanager
def signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end a suite as Ctrl-C does: one clean-up path, exit 130."""

    def end(number: int, frame: FrameType | None) -> None:
        # A second one must not break into the clean-up; the reaper has the last word in any case.
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_IGN)
        raise Interrupted(f"interrupted by {signal.Signals(number).name}; nothing was judged after that")

    before: dict[int, Any] = {n: signal.signal(n, end) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def show(runs: Sequence[Run], index: Path | None, *, verbose: bool = False) -> None:
    """The table, what went wrong, and where the report is."""
    from rich.console import Console

    from harness.report import table
    from harness.report.ci import run_text
    from harness.report.escape import visible
    from harness.report.failure_text import headline

    console = Console()
    if console.is_terminal:
        console.print(table.table(runs))
        console.print(table.tally(runs), highlight=False)
    else:
        print(table.text(runs))
    for run in runs:
        if run.wrong:
            print(f"\n{run_text.failure(run, brief=not verbose)}")
    for run in runs:
        if run.known:
            print(f"\nknown, {visible(run.known)}: {headline(run.scenario, run.verdict)}")
    if index is not None:
        print(f"\nreport: {index}")


def replay(folder: Path, options: Options) -> int:
    """Run the plan of a stored run again, with its seed. Raises HarnessError if the plan is not as the run left it."""
    found = digests.opened(folder, only=digests.PLANNED, unjudged=True)
    parts = found.read("plan", "run", "scenario")
    scenario, seed = planned(found.path, parts)
    program = _mapping(parts["run"].get("program"))
    # Of a run of what no file says, no file has changed.
    file = str(parts["run"].get("path", scenario.path) or "")
    for path, same in (
        (file, lambda path: path.read_text("utf-8", "surrogateescape") == parts.get("scenario")),
        (str(program.get("entry") or ""), lambda path: store.digest(path) == program.get("sha256")),
    ):
        if path and not (Path(path).is_file() and same(Path(path))):
            print(f"{path} is not what it was in the stored run; the plan is the stored one", file=sys.stderr)
    stored = _mapping(parts["run"].get("stack"))
    if (name := stored.get("stack", options.stack)) != options.stack:
        same = stored.get("options", f"--stack {name}")
        print(f"the stored run was on {name}, this one is on {options.stack}; the same: {same}", file=sys.stderr)
    return run_all([scenario] * options.repeat, replace(options, seed=seed))


def planned(folder: Path, parts: Mapping[str, Any]) -> tuple[Scenario, int]:
    """Return the scenario of a stored run as it was then, and its seed. Raises UsageError if the run kept none."""
    try:
        return store.scenario_of(parts["plan"]["scenario"]), int(parts["run"]["seed"])
    except (KeyError, TypeError, ValueError) as failure:
        raise UsageError(f"asked to replay {folder}; it has no whole plan ({failure!r}). Run the scenario") from failure


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def check(folder: Path) -> int:
    """Judge a stored run again from its folder alone. Raises HarnessError for a folder that is not as the run left
    it."""
    from harness.judge import judged
    from harness.report import failure_text
    from harness.report.ci import run_text
    from harness.report.escape import visible

    found = digests.opened(folder)
    verdict, stored = judged(found.path).verdict, Run.read(found.path)
    now = replace(stored, verdict=verdict)
    print(run_text.failure(now))
    if now.known:
        print(f"\nknown: {visible(now.known)}")
    if verdict.word is not stored.verdict.word or verdict.kinds() != stored.verdict.kinds():
        print(f"\nthe run itself had said: {failure_text.headline(stored.scenario, stored.verdict)}")
    return exit_code([now])
