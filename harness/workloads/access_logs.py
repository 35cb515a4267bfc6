"""The workload `access_logs`: lines of a web server in the combined log format, keyed by account.

    203.0.113.7 - user7 [30/Jul/2026:14:09:08 +0000] "GET /p/1 HTTP/1.1" 200 512 "-" "agent/1.0" INFO r-00000012

The level follows from the status; the last field is the request's own id, so no two lines are alike.
"""

from __future__ import annotations

from random import Random

from harness.kinds import About
from harness.workloads.base import Column, Generated, LogKind, log_time, matched

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
METHODS = ("GET", "GET", "GET", "GET", "POST", "PUT", "DELETE")
STATUSES = (200, 200, 200, 200, 200, 201, 204, 301, 304, 400, 401, 403, 404, 404, 500, 502, 503)
REFERERS = ("-", "https://example.org/", "https://example.org/search?q=a+b")
AGENTS = ("agent/1.0", "Mozilla/5.0 (X11; Linux x86_64)", "curl/8.5.0")

_HEAD = r"^(\S+) - (\S+) \[([^ \]]+) \+0000\] "
_REQUEST = r'"(\S+) (\S+) HTTP/1\.1" (\d{3}) (\d+) '
_TAIL = r'"([^"]*)" "([^"]*)" (\S+) (\S+)$'

COLUMNS = (
    matched("request", _TAIL, 4),
    matched("host", _HEAD, 1),
    matched("account", _HEAD, 2),
    Column("event_time", "TIMESTAMP", f"strptime(regexp_extract(value, '{_HEAD}', 3), '%d/%b/%Y:%H:%M:%S')"),
    matched("method", _REQUEST, 1),
    matched("path", _REQUEST, 2),
    matched("status", _REQUEST, 3, "INTEGER"),
    matched("bytes", _REQUEST, 4, "BIGINT"),
    matched("referer", _TAIL, 1),
    matched("agent", _TAIL, 2),
    matched("level", _TAIL, 3),
)


def _line(rng: Random, seq: int, account: str) -> str:
    status = rng.choice(STATUSES)
    size = 0 if status in (204, 304) else rng.randint(64, 65_536)
    who = f"203.0.113.{rng.randint(1, 254)} - {account} [{_stamp(rng, seq)} +0000]"
    request = f'"{rng.choice(METHODS)} /p/{rng.randint(1, 500)} HTTP/1.1" {status} {size}'
    return f'{who} {request} "{rng.choice(REFERERS)}" "{rng.choice(AGENTS)}" {_level(status)} r-{seq + 1:08d}'


def _level(status: int) -> str:
    return "ERROR" if status >= 500 else "WARN" if status >= 400 else "INFO"


def _stamp(rng: Random, seq: int) -> str:
    moment = log_time(rng, seq)
    # Not by strftime: the name of the month would follow the locale.
    return f"{moment.day:02d}/{MONTHS[moment.month - 1]}/{moment:%Y:%H:%M:%S}"


KIND = LogKind(
    About(
        name="access_logs",
        summary="lines of a web server in the combined log format, keyed by account",
        example="{workload: access_logs, records: 600}",
        options=Generated,
    ),
    COLUMNS,
    _line,
)
