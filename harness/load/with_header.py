"""A scenario file and the header of its pipeline, read as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.load.reader import Section
from harness.sinks import SINKS


@dataclass(frozen=True)
class Claim:
    """A scenario and the header of its pipeline: the scenario's own keys win, one by one. `whole` is false where the
    header could not be read: what it says is not known."""

    top: Section
    header: Section
    whole: bool = True

    @property
    def pipeline(self) -> Section:
        return self.top.section("pipeline")

    def owner(self, key: str) -> Section:
        """Return the section that says `key`: the pipeline, the scenario or the header; the scenario if none does."""
        return next((each for each in (self.pipeline, self.top, self.header) if each.has(key)), self.top)

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value that counts, if it is good."""
        return self.owner(key).get(key, default)

    @property
    def input(self) -> Section:
        return self.owner("input").section("input")

    @property
    def sinks(self) -> list[Section]:
        return self.owner("sink").sections("sink")

    @property
    def sinks_are_known(self) -> bool:
        """False if a sink was refused: then nothing follows from the others."""
        named = [any(s.get(kind.about.name) for kind in SINKS) for s in self.sinks]
        return all(named) and self.owner("sink").has("sink")
