"""What an attempt of the driver said last, for an error message."""

from __future__ import annotations

import re
from pathlib import Path

from harness.stack import Driver, HasDiagnostics

RAISED = re.compile(r"[A-Za-z_][\w.]*(: |$)")
"""What follows the frames of a Python traceback."""
TOLD = re.compile(r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d (INFO|DEBUG|TRACE) ")
"""What a driver logs while it ends, after the error."""
ERROR = re.compile(r"([A-Za-z_]\w*\.)*[A-Za-z_]\w*(Error|Exception)\b")
SHOWN = 500
"""So many characters of a cluster manager's diagnostics go into a sentence; the history has more."""


def diagnostics(driver: Driver) -> str:
    """What a cluster manager says of how that attempt stands, or ended, where there is one; empty if nothing."""
    return driver.diagnostics() if isinstance(driver, HasDiagnostics) else ""


def last_words(driver: Driver) -> str:
    """For an error message: the last lines of an attempt's log, and the diagnostics of one that a cluster manager could
    not start, whose log says nothing."""
    said = diagnostics(driver)
    return tail(driver.log) + (f"\nDiagnostics of attempt {driver.number}: {said}" if said else "")


def cut(text: str) -> str:
    """As much of diagnostics as goes into a sentence."""
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def tail(log: Path, lines: int = 15) -> str:
    """The last lines of a log, for an error message: its name first, then the last error in it, wherever it stands: the
    one that a Python program raised, which Spark may have put into the middle of its own, or any other."""
    try:
        text = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if not TOLD.match(line)]
    except OSError:
        return "(no log)"
    raised = [at for at, line in enumerate(text) if at and RAISED.match(line) and text[at - 1].startswith("  ")]
    if raised:
        errors = [text[at] for at in raised[-1:] if at < len(text) - lines]
    else:
        errors = [] if any(map(ERROR.match, text[-lines:])) else list(filter(ERROR.match, text[:-lines]))
    return "\n".join([f"logs/{log.name}:", *(f"{line}\n…" for line in errors[-1:]), *text[-lines:]])
