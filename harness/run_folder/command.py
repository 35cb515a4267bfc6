"""What a command line says to run a stored run's scenario again, from the run's own run.json."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

LINE = "--spark"


def asked(run: Mapping[str, Any]) -> str:
    """What a command line says to get the run's stack; empty for the default, and where the run does not say it."""
    stack = run.get("stack")
    return str(stack.get("asked", "")) if isinstance(stack, Mapping) else ""


def typed(run: Mapping[str, Any]) -> str:
    """The command for the scenario file alone; where that is not known, what was typed."""
    path, seed = run.get("path"), run.get("seed")
    if isinstance(path, str) and path:
        given = [] if seed is None else ["--seed", str(seed)]
        return " ".join([shlex.join(["onceproof", "run", path, *given, *_line(run)]), *asked(run).split()])
    words = run.get("command")
    return shlex.join(map(str, words)) if isinstance(words, (list, tuple)) else str(words or "")


def _line(run: Mapping[str, Any]) -> list[str]:
    """The Spark version that the run's own command asks for: `--spark` and its name, or nothing."""
    words = str(run.get("command")).split()
    at = words.index(LINE) if LINE in words[:-1] else len(words)
    return words[at : at + 2]
