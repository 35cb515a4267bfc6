"""What is spoken on the connections of a relay, and how it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.remote.relay.framing import Framing, Head, Reader


@dataclass(frozen=True, kw_only=True)
class Speech:
    """A protocol. `requests` and `answers` make what reads one direction of a new connection; the second one is given
    what says of an answer's head whether no body follows it. `alone`: each request stands alone. It has one answer, in
    the order in which they were sent, and may go over another connection than the one that it came by."""

    requests: Callable[[], Reader]
    answers: Callable[[Callable[[Head], bool]], Reader]
    alone: bool


HTTP = Speech(
    requests=lambda: Framing(answers=False),
    answers=lambda bodiless: Framing(answers=True, bodiless=bodiless),
    alone=True,
)
"""HTTP/1.1 without TLS."""
