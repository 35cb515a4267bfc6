"""What kinds of sinks have in common whose target is a table that the pipeline makes as it likes."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.fields import values as v
from harness.kinds import About, Refusals
from harness.resources import Resources, labelled, part
from harness.scenario import Sink
from harness.sinks.base import OpenSink
from harness.sinks.starts.shapes import Start

if TYPE_CHECKING:
    from harness.sinks.sql.table import SqlTable


class AnyTable:
    """A kind that accepts any table."""

    unread = ""

    def refusals(self, options: Mapping[str, Any]) -> Refusals:
        """Return no refusal: any target is accepted."""
        return iter(())


@dataclass(frozen=True)
class AnySqlTable(AnyTable, ABC):
    """A kind of a database server's, which is the component of its name. A query may stand for the table. The harness
    itself reads it, in one read-only transaction."""

    about: About
    start: Start

    @property
    def component(self) -> str:
        """What it is in."""
        return self.about.name

    def query(self, target: str) -> str | None:
        """Return the target, if it is a query."""
        return target if v.is_query(target) else None

    def countable(self, target: str) -> bool:
        """Return whether it is a table in the run's own part, named as such."""
        return bool(re.fullmatch(v.IDENTIFIER, target))

    def open(self, sink: Sink, own: Mapping[str, Resources]) -> OpenSink:
        """Raises NotGiven for a database that the run was not given."""
        there = part(own, labelled(self.component, sink.part))
        return self._table()(there.at, sink.target, sink.key, there.label, there.shared)

    @abstractmethod
    def _table(self) -> type[SqlTable]:
        """Return the class of its open sinks."""
