"""What one pytest session knows of its scenarios, and what it says of them at the end.

The runs come to it on pytest's own reports, so it also works where tests run in other processes.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness import __version__
from harness.errors import HarnessError
from harness.plugin.settings import Settings

if TYPE_CHECKING:
    from harness.report.summary import Run


class NotAsExpected(Exception):
    """A verdict that the scenario does not expect; the text is the whole failure."""


class Suite:
    """One session. It is registered as a separate plugin, whose hooks pytest calls."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self.settings = settings
        self.runs: list[Run] = []
        self.passed_over: list[Path] = []
        self.swept: dict[str, Path] = {}
        """By the name of its files, the scenario that is swept."""
        self.trouble: str | None = None
        self.mistakes: dict[tuple[str, int, int, str], None] = {}
        self.notes: dict[str, None] = {}
        """The messages about the stack, each once."""
        self._new_notes: list[str] = []
        # In a worker of pytest-xdist only the controller may write what is of all.
        self._reports = not hasattr(config, "workerinput")

    # Before others see the items: what is left out is not collected at all.
    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Deselect the scenarios of other shards."""
        if (shard := self.settings.shard) is None:
            return
        scenarios = [item for item in items if hasattr(item, "scenario")]
        mine = {*map(id, shard.pick(scenarios, lambda item: _below(item.path, config.rootpath)))}
        if others := [item for item in scenarios if id(item) not in mine]:
            left = {*map(id, others)}
            config.hook.pytest_deselected(items=others)
            items[:] = [item for item in items if id(item) not in left]

    def notify(self, words: str) -> None:
        """Keep a message about the stack: pytest shows what is printed while a test is set up only if the test
        fails."""
        self._new_notes.append(words)

    def hand_over(self, report: pytest.TestReport) -> None:
        """Put the messages since the last report on this one, also from a worker of pytest-xdist."""
        if self._new_notes:
            report.onceproof_notes, self._new_notes = self._new_notes, []  # type: ignore[attr-defined]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        # Every worker of pytest-xdist says them, as lists.
        self.mistakes |= dict.fromkeys(map(tuple, getattr(report, "onceproof_mistakes", ())))

    def pytest_report_collectionfinish(self, items: list[pytest.Item]) -> list[str]:
        scenarios = sum(hasattr(item, "scenario") for item in items)
        near = [f"onceproof: passed over {short(path)}: it has no `pipeline:`" for path in sorted(self.passed_over)]
        if not scenarios:
            return near
        chosen = self.settings
        seed = "the seed of each file" if chosen.seed is None else f"seed {chosen.seed}"
        where = f"reports in {short(chosen.reports)}"
        noun = "scenario" if scenarios == 1 else "scenarios"
        return [f"onceproof {__version__}: {scenarios} {noun}, stack {chosen.stack}, {seed}, {where}", *near]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.notes |= dict.fromkeys(getattr(report, "onceproof_notes", ()))
        packed: list[dict[str, Any]] = getattr(report, "onceproof_runs", [])
        if packed and self._reports:
            from harness.report.summary import Run, brief

            self.runs += [brief(Run.unpack(run)) for run in packed]
            self._write()

    def pytest_sessionfinish(self) -> None:
        if self._reports and self.runs:
            if self.settings.keep != "all":
                self._tidy()
            self._write(over=True)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        self._annotate(terminalreporter)
        if not (self.runs or self.notes):
            return
        from harness.report import table
        from harness.report.summary import exit_code

        terminalreporter.section("Onceproof")
        for note in self.notes:
            terminalreporter.write_line(note)
        if not self.runs:
            return
        head, *rows, tally = table.text(self.runs).splitlines()
        terminalreporter.write_line(head, bold=True)
        for run, row in zip(self.runs, rows, strict=True):
            colour = {"red": True} if run.wrong else {"yellow": True} if run.known else {"green": True}
            terminalreporter.write_line(row, **colour)
        terminalreporter.write_line(tally)
        if code := exit_code(self.runs):
            terminalreporter.write_line(f"exit code of onceproof: {code} (pytest's own says less)")
        index = self.settings.reports / "latest" / "index.html"
        terminalreporter.write_line(self.trouble or f"report: {short(index)}", red=bool(self.trouble))

    def _annotate(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Tell GitHub Actions, where it runs this; once, since workers of pytest-xdist have no terminal."""
        if not (self.runs or self.mistakes):
            return
        from dataclasses import replace

        from harness.errors import Mistake
        from harness.report.ci import github

        shown = [replace(run, folder=run.folder and short(run.folder)) for run in self.runs]
        if self._reports:
            terminalreporter.ensure_newline()
            github.annotate(shown, terminalreporter.write_line)
        if self._reports and github.here():
            for line in github.of_mistakes(Mistake(*each) for each in self.mistakes):
                terminalreporter.write_line(line)

    def _write(self, *, over: bool = False) -> None:
        from harness.report import render, summary
        from harness.report.many import trend

        try:
            path = summary.write(self.settings.reports, self.runs)
            if over:
                trend.append(path.with_name(trend.NAME), self.runs, summary.exit_code(self.runs))
            render.index(self.settings.reports, self.runs)
        except HarnessError as error:
            # The verdicts stand; a summary that cannot be written is said at the end and does not end the suite.
            self.trouble = f"no summary: {error}"

    def _tidy(self) -> None:
        """Remove the run folders that `--harness-keep` does not ask for."""
        from dataclasses import replace

        from harness.run_folder.store import RunFolder

        # The cells of a sweep share run folders.
        needed = {run.folder for run in self.runs if self.settings.keep == "failed" and not run.verdict.as_expected}
        for folder in {run.folder for run in self.runs if run.folder is not None} - needed:
            RunFolder(folder).remove()
        self.runs = [replace(run, folder=run.folder if run.folder in needed else None) for run in self.runs]


SUITE = pytest.StashKey[Suite]()


@contextmanager
def quiet() -> Iterator[None]:
    """Import what is heavy in here: libraries warn of themselves when imported, which a user's own
    `filterwarnings = error` would turn against us."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def own_text(error: BaseException) -> str | None:
    """Return the text of an error of the harness; None for errors that need their traceback."""
    return str(error) if isinstance(error, (NotAsExpected, HarnessError)) else None


def _below(path: Path, root: Path) -> Path:
    """As every machine names it, wherever the checkout lies."""
    return path.relative_to(root) if path.is_relative_to(root) else path


def short(path: Path) -> Path:
    """As a command typed here would name it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
