"""What the sinks of one scenario are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from harness.scenario import Sink


def sink_names(sinks: Sequence[Sink]) -> tuple[str, ...]:
    """Return what the sinks of one scenario are called, no two alike: where names meet, their places (from 1) stand
    beside them, as in `postgres select id, account from ... (sink 2)`."""
    names = [sink.name for sink in sinks]
    placed = [f"{name} (sink {place})" for place, name in enumerate(names, 1)]
    often = Counter(names)
    out = [many if often[name] > 1 else name for name, many in zip(names, placed, strict=True)]
    # A target may end like that by itself.
    return tuple(out if len(set(out)) == len(out) else placed)
