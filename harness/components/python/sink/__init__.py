"""The sink `python`: rows that a function of the user's own reads, from a system that is not known here.

start        how a pipeline into such a system begins
open_reader  one of them, in a run
arrow_types  which of Arrow's types can be compared exactly
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from harness.components.python.sink.start import START
from harness.fields import values as v
from harness.fields.hints import seen
from harness.fields.shape import Shape
from harness.kinds import About, Refusals
from harness.resources import Resources, labelled, part
from harness.scenario import Sink
from harness.sinks.base import OpenSink

WITHIN_S = 60.0
WORD = r"[A-Za-z_][A-Za-z0-9_]*"
A_FUNCTION = "module:function, such as readback:rows"
SOME_OPTIONS = "a mapping of names to texts"


def _options(value: object) -> str:
    if not isinstance(value, dict):
        raise v.refusal(SOME_OPTIONS, value)
    for name, each in value.items():
        if not isinstance(each, str):
            raise v.worded(f"must be {SOME_OPTIONS}, and {name} has {seen(each)}")
    return json.dumps(value, sort_keys=True)


OPTIONS = v.Typed(
    _options,
    SOME_OPTIONS,
    (("type", "object"), ("additionalProperties", {"type": ["string", "number", "boolean"]})),
    write=json.loads,
)


class Place(Shape):
    """Which function, and what it is given."""

    python: Annotated[
        str,
        v.matching(rf"{WORD}(\.{WORD})*:{WORD}", A_FUNCTION),
        Field(description="module:function that gives rows as pyarrow's tables or batches"),
    ]
    options: Annotated[str, OPTIONS, Field("{}", description="what the function gets as namespace.options, as texts")]
    within: Annotated[v.Duration, Field(WITHIN_S, description="how long one reading may take")]


class Python:
    """Read by the user's own code, in a new process for each reading.

    It does not count rows: the code returns what is there, and holds no writer."""

    about = About(
        name="python",
        summary="rows that a function of your own reads, from a system that Onceproof does not know",
        example="{python: readback:rows, within: 30s, expected: select id from ledger, key: [id], view: complete}",
        options=Place,
    )
    component = "python"
    unread = ""
    start = START

    def refusals(self, options: Mapping[str, Any]) -> Refusals:
        """Return whether the code is there, `wrong_in` says."""
        return iter(())

    def query(self, target: str) -> str | None:
        """It may fold rows, as a query may, and that cannot be tried."""
        return target

    def wrong_in(self, target: str, folders: Sequence[Path]) -> str:
        """Return why the function cannot be called; empty if nothing shows before it is."""
        from harness.components.python.places import wrong_in

        return wrong_in(target, folders)

    def files(self, target: str, folders: Sequence[Path]) -> Sequence[Path]:
        """Return the module, and what lies beside it. Raises UsageError."""
        from harness.components.python.places import files, split

        return files(split(target)[0], folders)

    def request(self, sink: Sink, folders: Sequence[Path]) -> Mapping[str, Any]:
        """Return by function and options which code makes and reads the namespace."""
        options = str(sink.options.get("options", "{}"))
        code = {
            "target": sink.target,
            "options": json.loads(options),
            "within_s": float(sink.options.get("within", WITHIN_S)),
            "folders": tuple(folders),
        }
        return {f"{sink.target} {options}": code}

    def open(self, sink: Sink, own: Mapping[str, Resources]) -> OpenSink:
        """Return the open sink. Raises NotGiven for a part that the run was not given."""
        there = part(own, labelled(self.component, sink.part))
        # Scenario files are read without what runs code.
        from harness.components.python.sink.open_reader import OpenReader

        key = f"{sink.target} {sink.options.get('options', '{}')}"
        return OpenReader(there.at, key, folds=sink.folds, complete=sink.complete)


KIND = Python()
