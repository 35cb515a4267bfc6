"""What one reading of a sink shows, and what its reader has left out between two readings."""

from __future__ import annotations

from collections import Counter

from harness.checkers.cells import Row
from harness.judge.injections import Injection, Seen
from harness.judge.readings.scale import Scale
from harness.judge.readings.sink_state import SinkState, dropped, sink_state


def state_at(scale: Scale, seen: Seen) -> SinkState | None:
    """Return what the sink held then; None where it is not known."""
    names = [column.name for column in scale.table.columns]
    return sink_state(scale.case, seen.tables[scale.position], names=names)


def dropped_since(scale: Scale, injection: Injection, until: Injection | None) -> Counter[Row]:
    """Return what the sink's reader has left out as repetitions between the last reading and the next step: what came
    after that may be the next step's doing. Nothing where a reading did not keep it."""
    then = _left_out(scale, injection.restart or injection.at)
    now = dropped(scale.case, scale.table) if until is None else _left_out(scale, until.at)
    return Counter() if now is None or then is None else now - then


def _left_out(scale: Scale, seen: Seen | None) -> Counter[Row] | None:
    return dropped(scale.case, seen.tables[scale.position]) if seen is not None else None
