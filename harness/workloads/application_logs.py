"""The workload `application_logs`: lines of an application's log, a time, a level and a message, keyed by account.

    2026-07-30 14:09:08 ERROR request r-00000012 of user7 failed after 130 ms

No two lines are alike: each names another request.
"""

from __future__ import annotations

from random import Random

from harness.kinds import About
from harness.workloads.base import Column, Generated, GeneratedKind, LogLines, log_time

LEVELS = {"INFO": 60, "WARN": 25, "ERROR": 15}
"""How many of a hundred lines have which."""
ENDS = {"INFO": "ended", "WARN": "was slow, it ended", "ERROR": "failed"}

_LINE = r"^(\S+ \S+) (\S+) +(request (\S+) of (\S+) .* after (\d+) ms)$"


def _part(name: str, group: int, kind: str = "VARCHAR") -> Column:
    part = f"regexp_extract(value, '{_LINE}', {group})"
    return Column(name, kind, part if kind == "VARCHAR" else f"cast({part} as {kind})")


COLUMNS = (
    _part("request", 4),
    _part("account", 5),
    _part("event_time", 1, "TIMESTAMP"),
    _part("level", 2),
    _part("message", 3),
    _part("took_ms", 6, "INTEGER"),
)


def _line(rng: Random, seq: int, account: str) -> str:
    moment = log_time(rng, seq)
    (level,) = rng.choices([*LEVELS], [*LEVELS.values()])
    message = f"request r-{seq + 1:08d} of {account} {ENDS[level]} after {rng.randint(1, 2000)} ms"
    return f"{moment:%Y-%m-%d %H:%M:%S} {level:5} {message}"


class Kind(GeneratedKind):
    """Drawn from the seed."""

    about = About(
        name="application_logs",
        summary="lines of an application's log, a time, a level and a message, keyed by account",
        example="{workload: application_logs, records: 600}",
        options=Generated,
    )

    def generate(self, count: int, *, keys: int, skew: float, seed: int) -> LogLines:
        """Drawn from the seed."""
        return LogLines(self.about.name, COLUMNS, _line, count=count, keys=keys, skew=skew, seed=seed)


KIND = Kind()
