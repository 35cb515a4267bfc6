"""The end of a service's log, for an error message."""

from __future__ import annotations

import re
from pathlib import Path

LINES = 8
ENOUGH = 200
"""How many lines to read so that `LINES` of them say something."""
FRAME = re.compile(r"\s*(at [\w.$/@<>-]+\(.*\)|\.\.\. \d+ more)\s*$")
"""A line of a JVM's stack trace: where, not what."""


def ending(text: str) -> str:
    """Return the last lines that say what happened."""
    lines = [line for line in text.splitlines()[-ENOUGH:] if line.strip() and not FRAME.match(line)]
    return "\n".join(lines[-LINES:]) or "(its log is empty)"


def tail(log: Path) -> str:
    """Return the ending of a log file."""
    try:
        return ending(log.read_text(errors="replace"))
    except OSError as error:
        return f"(no log: {error.strerror})"
