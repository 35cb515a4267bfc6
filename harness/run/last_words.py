"""What an attempt of the driver said last, for an error message."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from harness.stack import Driver, HasDiagnostics

RAISED = re.compile(r"[A-Za-z_][\w.]*(: |$)")
"""What follows the frames of a Python traceback."""
INFO = re.compile(r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d (INFO|DEBUG|TRACE) ")
"""What a driver logs while it ends, after the error."""
ERROR = re.compile(r"([A-Za-z_]\w*\.)*[A-Za-z_]\w*(Error|Exception)\b")
TRACEBACK = "Traceback (most recent call last):"
"""Where the traceback of an error begins that nothing has caught."""
CAUSED = re.compile(r'(?:Caused by: |Exception in thread "[^"]*" )(.*)')
PASSED_ON = re.compile(r".*(?:terminated with exception: |\(TID \d+\) \([^)]*\): )(.+)")
"""What Spark puts before the error of a query or of a task."""
STATE = re.compile(r"\s*SQLSTATE: \w+$")
READ_BYTES = 4_000_000
"""So much of the end of a log is read."""
SHOWN = 500
"""So many characters of a cluster manager's diagnostics go into a sentence; the history has more."""


def diagnostics(driver: Driver) -> str:
    """Return what a cluster manager says of how that attempt stands, or ended, where there is one; empty if nothing."""
    return driver.diagnostics() if isinstance(driver, HasDiagnostics) else ""


def last_words(driver: Driver) -> str:
    """For an error message: the last lines of an attempt's log, and the diagnostics of one that a cluster manager could
    not start, whose log says nothing."""
    diagnosed = diagnostics(driver)
    return tail(driver.log) + (f"\nDiagnostics of attempt {driver.number}: {diagnosed}" if diagnosed else "")


def cut(text: str) -> str:
    """As much of diagnostics as goes into a sentence."""
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def last_error(log: Path) -> str:
    """Return the error that ended the program, on one line: of a Python program its own one, also where Spark has put
    it into another. Of a program that shows none it is the last line of the log; empty without a log."""
    text = _lines(log)
    raised = _raised(text) if TRACEBACK in text else []
    if raised:
        # Py4J has the error on the line after its own.
        own, after = text[raised[-1]], "".join(text[raised[-1] + 1 : raised[-1] + 2])
        error = after.removeprefix(": ") if after.startswith(": ") else own
    else:
        caused = [match[1] for line in text if (match := CAUSED.match(line))]
        error = (caused or [line for line in text if line.strip()] or [""])[-1]
    passed_on = PASSED_ON.match(error)
    error = STATE.sub("", (passed_on[1] if passed_on else error).strip())
    # Spark leaves out the class of an error that it passes on, and logs it.
    whole = [line for line in text if (match := ERROR.match(line)) and line == f"{match[0]}: {error}"]
    return cut(error if ERROR.match(error) else (whole or [error])[0])


def _lines(log: Path) -> list[str]:
    """Return the lines of a log, without what a driver logs on its way; none without a log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - READ_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if not INFO.match(line)]


def _raised(text: Sequence[str]) -> list[int]:
    """Return the places of what follows the frames of Python tracebacks."""
    return [at for at, line in enumerate(text) if at and RAISED.match(line) and text[at - 1].startswith("  ")]


def tail(log: Path, lines: int = 15) -> str:
    """Return the last lines of a log, for an error message: its name first, then the last error in it, wherever it
    stands: the one that a Python program raised, which Spark may have put into the middle of its message, or any
    other."""
    if not log.is_file():
        return "(no log)"
    text = _lines(log)
    if raised := _raised(text):
        errors = [text[at] for at in raised[-1:] if at < len(text) - lines]
    else:
        errors = [] if any(map(ERROR.match, text[-lines:])) else list(filter(ERROR.match, text[:-lines]))
    return "\n".join([f"logs/{log.name}:", *(f"{line}\n…" for line in errors[-1:]), *text[-lines:]])
