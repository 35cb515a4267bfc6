"""Makes a scenario's indexes before its pipeline starts."""

from __future__ import annotations

from harness.components.opensearch.index_text import MADE, made
from harness.components.opensearch.run_indexes import Indexes
from harness.components.opensearch.server import Refused
from harness.errors import SetupError, StackError
from harness.resources import Resources


def set_up(own: Resources, text: str) -> None:
    """Make each index, in the order of the text. Raises SetupError."""
    request = f"asked {own.label} to run the scenario's setup"
    indexes: Indexes = own.at
    try:
        found = made(text)
    except ValueError as failure:
        raise SetupError(f"{request}; wanted {MADE}; saw {failure}. Mend `setup`: {text.strip()}") from failure
    for index, body in found.items():
        try:
            name = indexes.named(index)
            indexes.server.ask(f"make the index {index}", "PUT", f"/{name}", body or {}, wait_for_active_shards="1")
        except (Refused, StackError) as failure:
            raise SetupError(f"{request}; saw {failure}. Mend `setup`: {text.strip()}") from failure
