"""Output for GitHub Actions: an annotation for each run that is not as expected, on its scenario file, and a summary of
the step. The variables that GitHub sets turn both on; elsewhere nothing is written.

A runner takes a line of output that begins with `::` for a command, whatever wrote it. So data under test is printed
between `no_commands` or `guarded`, and is in an annotation escaped.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

from harness.errors import Mistake
from harness.report.ci import markdown, places, run_text
from harness.report.ci.places import in_repository
from harness.report.failure_text import headline
from harness.report.summary import Run

ACTIONS = "GITHUB_ACTIONS"
SUMMARY = "GITHUB_STEP_SUMMARY"
MOST_ANNOTATIONS = 10
"""GitHub shows ten errors of a step and drops the others."""
MOST_CHARACTERS = 4000
SUMMARY_BYTES = 1024 * 1024
"""GitHub drops a step's summary that is larger."""


def here() -> bool:
    """Return whether GitHub Actions runs this."""
    return os.environ.get(ACTIONS, "").lower() == "true"


@contextmanager
def no_commands() -> Iterator[None]:
    """What is printed meanwhile is text to the runner, whatever it holds."""
    if not here():
        yield
        return
    token = token_hex(16)
    print(f"::stop-commands::{token}")
    try:
        yield
    finally:
        print(f"\n::{token}::", flush=True)


def guarded(text: str) -> str:
    """Return a text for output that others print: no line of it is a command to GitHub's runner. Elsewhere it stays."""
    if not here():
        return text
    # A runner may end a line at whatever Python does.
    lines = (
        line.replace("::", ": :") if line.lstrip().startswith("::") else line for line in text.splitlines(keepends=True)
    )
    return "".join(lines).replace("##[", "## [")


def annotate(runs: Sequence[Run], notify: Callable[[str], None] = print) -> None:
    """Annotate the runs and append the step's summary; both only where GitHub asks. A summary that cannot be written is
    said and changes no verdict."""
    if here():
        for text in of_runs(runs):
            notify(text)
    if runs and (path := os.environ.get(SUMMARY)):
        try:
            append(Path(path), runs)
        except OSError as failure:
            print(f"no step summary: {failure}", file=sys.stderr)


def append(path: Path, runs: Sequence[Run]) -> None:
    """Append the summary of the runs to the step's, as far as it fits. Raises OSError."""
    size = path.stat().st_size if path.exists() else 0
    text = markdown.summary(runs, most_bytes=min(markdown.MOST_BYTES, SUMMARY_BYTES - size))
    with path.open("a", encoding="utf-8", newline="\n") as out:
        out.write(text)


def of_runs(runs: Iterable[Run]) -> list[str]:
    """Return a line for each run that is not as expected, ten at most; the tenth counts those that are left out. A
    known failure has none."""
    wrong = [run for run in runs if run.wrong]
    out = [of_run(run) for run in wrong]
    if len(out) > MOST_ANNOTATIONS:
        more = len(out) - MOST_ANNOTATIONS + 1
        out[MOST_ANNOTATIONS - 1 :] = [command("error", f"and {more} more runs that are not as expected")]
    return out


def of_run(run: Run) -> str:
    """Return one run's annotation, on the line of its scenario file that says what is expected."""
    title = headline(run.scenario, run.verdict)
    text = _cut(run_text.failure(run))
    if not run.file:
        return command("error", text, title=title)
    return command("error", text, file=in_repository(run.file), line=places.line(run.file), title=title)


def of_mistakes(mistakes: Iterable[Mistake]) -> list[str]:
    """Return one annotation for each mistake in a scenario file, ten at most."""
    found = [
        command("error", each.text, file=in_repository(each.file), line=each.line, col=each.column) for each in mistakes
    ]
    return found[:MOST_ANNOTATIONS]


def command(word: str, text: str, **properties: str | int) -> str:
    """Return a workflow command. The text and each property are escaped by the runner's rules."""
    named = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return f"::{word}{f' {named}' if named else ''}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _cut(text: str) -> str:
    """Return at most so many characters, with the last lines: the command that repeats it is there."""
    if len(text) <= MOST_CHARACTERS:
        return text
    last = text[-MOST_CHARACTERS // 2 :].partition("\n")[2]
    return f"{text[: MOST_CHARACTERS // 2].rpartition(chr(10))[0]}\n…\n{last}"
