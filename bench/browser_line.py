"""The last line of `make prove SUITE=browser`, for bench/records/browser.txt: when, of which commit, in which browser,
with what result."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from bench import chromium

HOUSE = Path(__file__).parents[1]
OUTCOMES = ("passed", "failed", "error", "skipped")
BEGAN = monotonic()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Said by pytest below its own summary."""
    counts = {outcome: len(terminalreporter.stats.get(outcome, ())) for outcome in OUTCOMES}
    terminalreporter.write_line(line(counts, monotonic() - BEGAN))


def line(counts: Mapping[str, int], seconds: float) -> str:
    """`2026-11-26 16:20 UTC, commit 0123abc, Chromium 156.0: 129 passed, 0 failed, 0 error, 0 skipped in 480 s`."""
    counted = ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES)
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {commit()}, {browser()}: {counted} in {seconds:.0f} s"


def commit() -> str:
    """The commit that was tested, and whether files differ from it."""
    head = _output("git", "rev-parse", "--short", "HEAD")
    changed = " with changes" if _output("git", "status", "--porcelain") else ""
    return f"commit {head}{changed}" if head else "no commit"


def browser() -> str:
    """The browser's name and version."""
    try:
        output = _output(chromium.path(), "--version")
        # Debian's also names what it was built on.
        return output.partition(" built on ")[0] or "a browser that names no version"
    except chromium.NoBrowser:
        return "no browser"


def _output(*command: str) -> str:
    try:
        done = subprocess.run(command, cwd=HOUSE, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
