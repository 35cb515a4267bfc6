"""The command that runs a stored run's scenario again, from its run.json."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

SPARK = "--spark"


def stack_options(run: Mapping[str, Any]) -> str:
    """Return the options that get the run's stack; empty for the default, and if the run does not name it."""
    stack = run.get("stack")
    return str(stack.get("options", "")) if isinstance(stack, Mapping) else ""


def typed(run: Mapping[str, Any]) -> str:
    """Return the command for the scenario file alone; if that is not known, what was typed."""
    path, seed = run.get("path"), run.get("seed")
    if isinstance(path, str) and path:
        given = [] if seed is None else ["--seed", str(seed)]
        return " ".join([shlex.join(["onceproof", "run", path, *given, *_spark(run)]), *stack_options(run).split()])
    words = run.get("command")
    return shlex.join(map(str, words)) if isinstance(words, (list, tuple)) else str(words or "")


def _spark(run: Mapping[str, Any]) -> list[str]:
    """Return the Spark version that the run's own command names: `--spark` and its name, or nothing."""
    words = str(run.get("command")).split()
    at = words.index(SPARK) if SPARK in words[:-1] else len(words)
    return words[at : at + 2]
