"""What the command line shows while a suite runs: a live line on a terminal, plain lines anywhere else.

    watched = progress()
    listener = watched.started("name", number=1, total=18, steps=2)
    run(..., listener=listener)                    # every event of the run's history
    watched.ended(1, summary_run)
    watched.close()

Plain lines are one a phase, death, fault, baseline run and verdict, with the seconds since the run began; below a held,
what it rests on. Under GitHub Actions each scenario is a folded group.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Protocol, TextIO

from harness.history import (
    AttemptDiagnosed,
    AttemptEnded,
    AttemptStarted,
    BaselineRun,
    Event,
    ExecutorAdded,
    FaultInjected,
    FaultMissed,
    Line,
    Listener,
    OfBatch,
    PackagesNamed,
    Phase,
    RestartsEnded,
    Sent,
    ShuffleCrowded,
    SinkMissing,
)
from harness.report.escape import visible
from harness.report.exposures import rests
from harness.report.failure_text import headline, reasons, where
from harness.report.summary import Run
from harness.report.table import COLOURS, colour, mark

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


MINUTE_S = 60


class Progress(Protocol):
    """Who watches a suite. Events may come from any thread."""

    def started(self, scenario: str, *, number: int, total: int, steps: int) -> Listener:
        """A scenario begins; its history's events go to what is returned. `steps` are those of its schedule."""

    def ended(self, number: int, run: Run) -> None:
        """It is over, also if it failed before it began. `number` is its scenario's."""

    def close(self) -> None:
        """No more. Gives the terminal back; safe to call twice."""


@dataclass(frozen=True)
class Seen:
    """Where the running scenario is, as far as its history has said."""

    scenario: str = ""
    place: str = ""
    phase: str = ""
    batch: int | None = None
    point: str = ""
    attempt: int = 0
    sent: int = 0
    total: int = 0
    fired: int = 0
    faults: int = 0

    def after(self, event: Event) -> Seen:
        """Return what is known after one more event; another kind changes nothing."""
        match event:
            case Phase():
                return replace(self, phase=event.name)
            case OfBatch():
                return replace(self, batch=event.batch, point=str(event.point or ""))
            case AttemptStarted():
                return replace(self, attempt=event.attempt)
            case Sent():
                return replace(self, sent=event.records, total=event.total)
            case BaselineRun():
                return replace(self, phase=f"baseline run {event.number}")
            case FaultInjected():
                return replace(self, fired=self.fired + 1)
        return self

    def parts(self) -> list[str]:
        """Return the pieces of the live line, in order; what is not known yet is left out."""
        out = [visible(self.phase, 30)] if self.phase else []
        out += [f"{self.sent:,}/{self.total:,} records"] if self.total else []
        out += [f"batch {visible(str(self.batch), 30)}"] if self.batch is not None else []
        out += [f"faults {self.fired}/{self.faults}"] if self.faults else []
        return out + ([f"attempt {self.attempt}"] if self.attempt > 1 else [])


def line(event: Event) -> str | None:
    """Return one event of the history as a line, None for those that only the live line shows."""
    match event:
        case Phase():
            return visible(event.name, 60)
        case AttemptEnded():
            alone = ", by itself" if not event.scheduled and event.status else ""
            how = "ended" if event.status == 0 else "died"
            error = f": {visible(event.error, 300)}" if event.error else ""
            return f"driver {event.attempt} {how}, status {event.status}{alone}{error}"
        case AttemptStarted() if event.attempt > 1:
            return f"driver {event.attempt} launched"
        case FaultInjected() | FaultMissed():
            done = event.outcome
            place = where(done.point, done.batch, crash_point=done.crash_point is not None)
            return f"fault {'injected' if done.injected else 'MISSED'}: {visible(done.name, 120)}{place}"
        case BaselineRun() if event.state != "begins":
            how = "failed" if event.failed else "caught up" if event.caught_up else "not caught up"
            cached = ", from the cache" if event.state == "cached" else ""
            return f"baseline run {event.number}, without faults: {how}{cached}"
        case SinkMissing():
            late = "is not there after the first committed batch, or not yet"
            return f"{visible(event.sink, 100)} {late}: {visible(event.why, 300)}"
        case ShuffleCrowded():
            tasks = f"{event.partitions} shuffle tasks a batch on {visible(event.cores, 20)} cores"
            return f"{visible(event.query, 60)}: {tasks}: lower spark.sql.shuffle.partitions"
        case PackagesNamed():
            took = "fetches" if event.seconds is None else f"took {event.seconds:.1f} s for"
            return f"Spark {took} spark.jars.packages: {visible(event.packages, 300)}"
        case ExecutorAdded() if event.executor == "driver":
            return f"driver {event.attempt} runs its tasks in its own JVM: the program sets a local master"
        case AttemptDiagnosed() if not event.scheduled:
            return f"diagnostics of attempt {event.attempt}: {visible(event.words, 500)}"
        case RestartsEnded():
            return f"gave up: {visible(event.why, 200)}"
    return None


@dataclass
class Pace:
    """How long the rest of a suite takes, with `jobs` runs at once, by the runs that have ended."""

    jobs: int = 1
    total: int = 0
    ended: int = 0
    seconds: float = 0.0

    def after(self, run: Run) -> None:
        """Count a run that has ended."""
        self.ended += 1
        self.seconds += run.seconds

    def left(self) -> str:
        """Return about how long all runs that have not ended take; empty before the first has ended, and after the
        last."""
        runs = self.total - self.ended
        if not self.ended or runs <= 0:
            return ""
        left_s = self.seconds / self.ended * runs / min(self.jobs, runs)
        return f"about {left_s:.0f} s left" if left_s < MINUTE_S else f"about {left_s / MINUTE_S:.0f} min left"


class Plain:
    """Lines for a log, in GitHub's groups where `grouped`. With several runs at once each line says whose it is, and
    there are no groups."""

    def __init__(self, stream: TextIO, *, grouped: bool = False, jobs: int = 1) -> None:
        self._stream, self._several = stream, jobs > 1
        self._grouped = grouped and not self._several
        self._lock = threading.Lock()
        self._pace = Pace(jobs)

    def started(self, scenario: str, *, number: int, total: int, steps: int) -> Listener:
        began, group = monotonic(), "::group::" if self._grouped else ""
        whose = f"{number}/{total} " if self._several else ""
        self._pace.total = total
        left = f" ({left})" if (left := self._pace.left()) else ""
        self._notify(f"{group}{number}/{total} {visible(scenario, 200)}{left}")

        def event(seen: Line) -> None:
            text = line(seen.event)
            if text is not None:
                self._notify(f"{whose}[{monotonic() - began:7.1f} s] {text}")

        return event

    def close(self) -> None:
        """Nothing to give back."""

    def ended(self, number: int, run: Run) -> None:
        self._pace.after(run)
        self._notify(f"[{run.seconds:7.1f} s] {mark(run)} {headline(run.scenario, run.verdict)}")
        for more in _more(run):
            self._notify(f"{' ' * 15}{more}")
        if self._grouped:
            self._notify("::endgroup::")

    def _notify(self, text: str) -> None:
        with self._lock:
            print(text, file=self._stream, flush=True)


class LiveDisplay:
    """One live line for each run on a terminal; each that is over leaves a line above them."""

    def __init__(self, console: Console, *, jobs: int = 1) -> None:
        from rich.live import Live

        self._console, self._pace = console, Pace(jobs)
        self._lock = threading.Lock()
        # By the number of the scenario. Before the first there is only one thing to wait for.
        self._seen: dict[int, tuple[Seen, float]] = {0: (Seen(phase="stack up"), monotonic())}
        self._live = Live(console=console, refresh_per_second=4, transient=True, get_renderable=self._lines)
        self._live.start()

    def started(self, scenario: str, *, number: int, total: int, steps: int) -> Listener:
        began = monotonic()
        with self._lock:
            self._seen.pop(0, None)
            self._pace.total = total
            self._seen[number] = Seen(scenario=scenario, place=f"{number}/{total}", faults=steps), began

        def event(line: Line) -> None:
            with self._lock:
                # The run may be over.
                if number in self._seen:
                    self._seen[number] = self._seen[number][0].after(line.event), began

        return event

    def close(self) -> None:
        self._live.stop()

    def ended(self, number: int, run: Run) -> None:
        from rich.text import Text

        with self._lock:
            seen, _ = self._seen.pop(number, (Seen(), 0.0))
            self._pace.after(run)
        text = Text(f"{mark(run)} ", style=colour(run))
        text.append(f"{seen.place} ", style="dim")
        text.append(run.verdict.word.value, style=COLOURS[run.verdict.word])
        text.append(f" {visible(run.scenario, 90)} ({run.seconds:.1f} s)", style="default")
        for more in _more(run):
            text.append(f"\n     {more}", style="dim")
        self._console.print(text)

    def _lines(self) -> Text:
        from rich.text import Text

        with self._lock:
            now = [(seen, monotonic() - began) for _, (seen, began) in sorted(self._seen.items())]
            left = self._pace.left()
        lines = [
            (f"{seen.place} {visible(seen.scenario, 60)}: " if seen.scenario else "")
            + " · ".join([*seen.parts(), f"{elapsed:.0f} s"])
            for seen, elapsed in now
        ]
        return Text("\n".join([*lines, *([left] if left else [])]), no_wrap=True, overflow="ellipsis")


def progress(stream: TextIO | None = None, *, environment: Mapping[str, str] = os.environ, jobs: int = 1) -> Progress:
    """Return the right one for `stream` (default: standard error) and so many runs at once."""
    out = stream or sys.stderr
    github = environment.get("GITHUB_ACTIONS") == "true"
    if github or not out.isatty() or environment.get("TERM") == "dumb":
        return Plain(out, grouped=github, jobs=jobs)
    from rich.console import Console

    return LiveDisplay(Console(file=out, highlight=False), jobs=jobs)


def _more(run: Run) -> list[str]:
    """Return the lines below a run's verdict: what a held rests on, and why any other one is not as expected."""
    return [*(reasons(run.verdict) if run.wrong else ()), *rests(run.verdict)]
