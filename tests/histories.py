"""Lines of a history for tests: made of events and times, or any at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from math import isfinite
from typing import Any

from hypothesis import strategies as st

from harness.history import EVENTS, POINTS, Event, Line, OfBatch, SourceBegun
from harness.scenario import CrashPoint


def lines(*events: tuple[float, Event]) -> list[Line]:
    """Each with its seconds, numbered."""
    return [Line(n, at_s, event) for n, (at_s, event) in enumerate(events)]


def of_batch(point: CrashPoint | None, batch: int, *, query: str = "checkpoint", attempt: int = 1) -> OfBatch:
    """A batch at a crash point; without one, the beginning of its source."""
    kind = SourceBegun if point is None else POINTS[point]
    return kind(query=query, batch=batch, attempt=attempt)


def events() -> st.SearchStrategy[Event]:
    """Any event."""
    return st.one_of([st.from_type(kind) for kind in EVENTS.values()]).map(in_json)


def in_json(value: Any) -> Any:
    """The same with what JSON has: dictionaries, and numbers that equal themselves."""
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{each.name: in_json(getattr(value, each.name)) for each in fields(value)})
    if isinstance(value, Mapping):
        return {key: in_json(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(map(in_json, value))
    return 0.0 if isinstance(value, float) and not isfinite(value) else value
