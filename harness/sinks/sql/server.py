"""A component that is a server of SQL: it runs a scenario's setup before the pipeline starts."""

from __future__ import annotations

import re

from harness.errors import SetupError
from harness.fields.hints import seen
from harness.resources import Resources
from harness.sinks.sql.part import SqlPart


class SqlServer:
    """What such components have in common."""

    def set_up(self, own: Resources, text: str) -> None:
        """Run SQL. Raises SetupError."""
        part: SqlPart = own.at
        try:
            part.run(text)
        except part.error as failure:
            request = f"asked {own.label} to run the scenario's setup"
            raise SetupError(f"{request}; saw {part.words(failure)}. Mend `setup`: {text.strip()}") from failure

    def no_set_up(self, text: str) -> str:
        """Each statement of SQL begins with a word."""
        return "" if re.search("[A-Za-z]", text) else f"must be SQL, not {seen(text)}"
