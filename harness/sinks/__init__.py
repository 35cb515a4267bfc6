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


def counted(sinks: Sequence[Sink]) -> int | None:
    """The place of the sink whose rows are counted: the first that can be; None if there is none."""
    kinds = ((place, sink, SINKS[sink.kind]) for place, sink in enumerate(sinks))
    return next((at for at, sink, kind in kinds if isinstance(kind, CountsRows) and kind.countable(sink.target)), None)
