"""Errors as the command line shows them."""

from __future__ import annotations

import errno
import os
import tempfile
import traceback
from typing import Any

import click
from click.exceptions import Exit

from harness.errors import HarnessError, Interrupted, ScenarioError
from harness.report.escape import plural

DEBUG = "ONCEPROOF_DEBUG"


class CarefulGroup(click.Group):
    """A group of commands that never ends in a traceback, unless asked for one."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; turn what it raises into a message."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.Abort, Exit):
            raise
        except Interrupted as stop:
            raise Exit(report(stop)) from stop
        except KeyboardInterrupt:
            raise Exit(report(Interrupted("interrupted"))) from None
        except HarnessError as failure:
            raise Exit(report(failure)) from failure
        except Exception as failure:
            if isinstance(failure, OSError) and failure.errno == errno.EPIPE:
                raise  # the reader of our output has gone: click ends quietly
            raise Exit(surprised(failure)) from failure


def report(failure: HarnessError | Interrupted) -> int:
    """Print the message of an error of the harness, and return its exit code."""
    if os.environ.get(DEBUG):
        traceback.print_exception(failure)
    words = f"Error: {failure}"
    annotate(failure)
    if isinstance(failure, ScenarioError):
        count, files = len(failure.mistakes), len({mistake.file for mistake in failure.mistakes})
        words = f"{failure}\nError: {plural(count, 'mistake')} in {plural(files, 'file')}"
    click.echo(guarded(words), err=True)
    return failure.exit_code


def annotate(failure: HarnessError | Interrupted) -> None:
    """Where GitHub Actions runs this, show the error, each mistake in a file on its line; on stderr, since what is on
    stdout is read by other programs."""
    from harness.report.ci import github

    if github.here():
        mistakes = failure.mistakes if isinstance(failure, ScenarioError) else ()
        for line in github.of_mistakes(mistakes) or [github.command("error", str(failure))]:
            click.echo(line, err=True)


def guarded(text: str) -> str:
    """No line of it is a command to GitHub's runner: an error may quote a server's log."""
    from harness.report.ci import github

    return github.guarded(text)


def surprised(failure: Exception) -> int:
    """Say an unforeseen error: one line, and where the rest is; its exit code."""
    if os.environ.get(DEBUG):
        traceback.print_exception(failure)
    what = " ".join(f"{type(failure).__name__}: {failure}".split())[:300]
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="onceproof-", suffix=".traceback.txt", delete=False, encoding="utf-8", errors="backslashreplace"
        ) as file:
            traceback.print_exception(failure, file=file)
        where = f"the traceback is in {file.name}"
    except OSError as full:
        where = f"the traceback could not be written ({full.strerror}): set {DEBUG}=1 to see it"
    click.echo(guarded(f"Error: the harness failed, {what}; {where}"), err=True)
    return HarnessError.exit_code
