"""Every error that Onceproof raises on purpose, and the exit code each one means.

    HarnessError (4)                 the harness or its surroundings failed
    ├── UsageError (2)               the command line asks for something that is not there
    ├── ScenarioError (2)            a scenario file is wrong: every mistake at once, with its place
    ├── SetupError (4)               the pipeline does not work without faults, so nothing can be proved about it
    ├── StackError (4)               a component of the stack could not come up, or died on its own
    ├── WaitError (4)                a bounded wait ran out; says what it last saw
    └── Interrupted (130)            Ctrl-C or SIGTERM

A message says three things: what was asked, what was seen, what to do next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


def one_line(failure: BaseException) -> str:
    """Return the words of an exception on one line; its class where it has none."""
    return " ".join(str(failure).split()) or type(failure).__name__


class HarnessError(Exception):
    """The harness or its surroundings failed. Common causes: a full disk, a missing permission."""

    exit_code = 4
    folder: Path | None = None
    """Where the run that failed lies, if it had come so far."""


class UsageError(HarnessError):
    """The command line names something that is not there. Cure: `onceproof --help`."""

    exit_code = 2


@dataclass(frozen=True, order=True)
class Mistake:
    """One mistake in one file; line and column count from 1."""

    file: str
    line: int
    column: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.text}"


class ScenarioError(HarnessError):
    """A scenario file is wrong. Cure: `onceproof validate FILE` until it is silent."""

    exit_code = 2

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(sorted(mistakes))
        super().__init__("\n".join(str(m) for m in self.mistakes))


class SetupError(HarnessError):
    """The pipeline does not work without faults. Common causes: it crashes at import, or commits no batch."""


class StackError(HarnessError):
    """A component of the stack could not come up, or died on its own. Cure: `onceproof doctor`."""


class OwnCodeError(StackError):
    """Code of the user's own raised, died or was late. It fails its own run, and no other one."""


class WaitError(HarnessError):
    """A bounded wait ran out. The message ends with what was last seen."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM. The run is cleaned up and has no verdict.

    No HarnessError: code that tolerates a failure must not go on after this, since no signal comes a second time."""

    exit_code = 130
