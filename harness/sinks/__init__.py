"""Where the pipeline writes. One module or package each; `harness.sinks.base` says what it has.

reading   reads them back, and keeps them in the run folder
table     what was read of one sink, and how it lies there
json_columns, json_values   of sinks whose rows are JSON: the columns that a file names, and a field exactly
starts    what `onceproof new` writes for a kind of sink
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from harness.kinds import Registry
from harness.scenario import Sink
from harness.sinks.base import CountsRows, SinkKind

__all__ = ["SINKS", "countable", "counted"]

SINKS: Registry[SinkKind] = Registry("sink", "harness.sinks", SinkKind)


def countable(sinks: Sequence[Sink]) -> dict[int, str]:
    """Return by its place what each sink is called whose rows can be counted: its table; where two have one name, the
    whole name of the sink."""
    kinds = ((place, sink, SINKS[sink.kind]) for place, sink in enumerate(sinks))
    found = {at: sink for at, sink, kind in kinds if isinstance(kind, CountsRows) and kind.countable(sink.target)}
    often = Counter(sink.target for sink in found.values())
    return {at: sink.target if often[sink.target] == 1 else sink.name for at, sink in found.items()}


def counted(sinks: Sequence[Sink], named: str = "") -> int | None:
    """Return the place of the sink whose rows are counted: the first of that name, or of all that can be; None if there
    is none."""
    return next((place for place, name in countable(sinks).items() if named in ("", name)), None)
