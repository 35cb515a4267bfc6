"""Where the pipeline writes. One module or package each; `harness.sinks.base` says what it has.

reading   reads them back, and keeps them in the run folder
table     what was read of one sink, and how it lies there
json_columns, json_values   of sinks whose rows are JSON: the columns that a file names, and a field exactly
starts    what `onceproof new` writes for a kind of sink
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.kinds import Registry
from harness.scenario import Sink
from harness.sinks.base import CountsRows, SinkKind

__all__ = ["SINKS", "counted"]

SINKS: Registry[SinkKind] = Registry("sink", "harness.sinks", SinkKind)


def countable(sinks: Sequence[Sink]) -> dict[int, str]:
    """Return by its place what each sink is called whose rows can be counted."""
    kinds = ((place, sink, SINKS[sink.kind]) for place, sink in enumerate(sinks))
    return {at: sink.target for at, sink, kind in kinds if isinstance(kind, CountsRows) and kind.countable(sink.target)}


def counted(sinks: Sequence[Sink], named: str = "") -> int | None:
    """Return the place of the sink whose rows are counted: the first of that name, or of all that can be; None if there
    is none."""
    return next((place for place, target in countable(sinks).items() if named in ("", target)), None)
