"""The workload `application_logs`: lines of an application's log, a time, a level and a message, keyed by account.

    2026-07-30 14:09:08 ERROR request r-00000012 of user7 failed after 130 ms

No two lines are alike: each names another request.
"""

from __future__ import annotations

from random import Random

from harness.kinds import About
from harness.workloads.base import Generated, LogKind, log_time, matched

LEVELS = {"INFO": 60, "WARN": 25, "ERROR": 15}
"""How many of a hundred lines have which."""
ENDS = {"INFO": "ended", "WARN": "was slow, it ended", "ERROR": "failed"}

_LINE = r"^(\S+ \S+) (\S+) +(request (\S+) of (\S+) .* after (\d+) ms)$"

COLUMNS = (
    matched("request", _LINE, 4),
    matched("account", _LINE, 5),
    matched("event_time", _LINE, 1, "TIMESTAMP"),
    matched("level", _LINE, 2),
    matched("message", _LINE, 3),
    matched("took_ms", _LINE, 6, "INTEGER"),
)


def _line(rng: Random, seq: int, account: str) -> str:
    moment = log_time(rng, seq)
    (level,) = rng.choices([*LEVELS], [*LEVELS.values()])
    message = f"request r-{seq + 1:08d} of {account} {ENDS[level]} after {rng.randint(1, 2000)} ms"
    return f"{moment:%Y-%m-%d %H:%M:%S} {level:5} {message}"


KIND = LogKind(
    About(
        name="application_logs",
        summary="lines of an application's log, a time, a level and a message, keyed by account",
        example="{workload: application_logs, records: 600}",
        options=Generated,
    ),
    COLUMNS,
    _line,
)
