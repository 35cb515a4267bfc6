"""The sink `console`: rows that a pipeline prints. They cannot be read back, so nothing of it is judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from harness.errors import UsageError
from harness.fields import values as v
from harness.fields.shape import Shape
from harness.kinds import About, Refusal, Refusals
from harness.resources import Resources
from harness.scenario import Sink
from harness.sinks.base import OpenSink


class Place(Shape):
    """Nothing but that it is there."""

    console: Annotated[v.Flag, Field(description="a sink that cannot be read back")]


class Console:
    """A scenario with no other sink is untested."""

    about = About(name="console", summary="a sink that cannot be read back", example="{console: true}", options=Place)
    component = ""
    unread = "a console sink cannot be read back: point the pipeline at a table to have it judged"

    def refusals(self, options: Mapping[str, Any]) -> Refusals:
        """It is there, or it is not named."""
        if options.get("console") is False:
            yield Refusal("console", "is true, or not there")

    def open(self, sink: Sink, own: Mapping[str, Resources]) -> OpenSink:
        """Never: raises UsageError."""
        raise UsageError(self.unread)


KIND = Console()
