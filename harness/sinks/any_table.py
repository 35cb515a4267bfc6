"""What kinds of sinks have in common whose target is a table that the pipeline makes as it likes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from harness.fields import values as v
from harness.kinds import Refusals


class AnyTable:
    """A kind that accepts any table."""

    unread = ""

    def refusals(self, options: Mapping[str, Any]) -> Refusals:
        """Return no refusal: any target is accepted."""
        return iter(())


class AnySqlTable(AnyTable):
    """A kind of a database server's, where a query may stand for the table."""

    def query(self, target: str) -> str | None:
        """Return the target, if it is a query."""
        return target if v.is_query(target) else None

    def countable(self, target: str) -> bool:
        """Return whether it is a table in the run's own part, named as such."""
        return bool(re.fullmatch(v.IDENTIFIER, target))
