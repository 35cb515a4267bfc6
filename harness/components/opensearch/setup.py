"""Makes a scenario's indexes before its pipeline starts.

The text is YAML, since the braces of JSON would be placeholders: by the name of each index, without the run's prefix,
what OpenSearch is sent to make it (settings, mappings, aliases).
"""

from __future__ import annotations

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from harness.components.opensearch.run_indexes import Indexes
from harness.components.opensearch.server import Refused
from harness.errors import SetupError, StackError
from harness.resources import Resources

MADE = "the name of each index, and below it what it is made with: settings, mappings"


def set_up(own: Resources, text: str) -> None:
    """Make each index, in the order of the text. Raises SetupError."""
    asked = f"asked {own.label} to run the scenario's setup"
    indexes: Indexes = own.at
    try:
        found = YAML(typ="safe").load(text)
    except YAMLError as failure:
        words = " ".join(str(failure).split())
        raise SetupError(f"{asked}; saw {words}. Mend `setup`: {text.strip()}") from failure
    if not isinstance(found, dict) or not all(isinstance(body, dict | None) for body in found.values()):
        raise SetupError(f"{asked}; wanted {MADE}. Mend `setup`: {text.strip()}")
    for index, body in found.items():
        try:
            name = indexes.named(str(index))
            indexes.server.ask(f"make the index {index}", "PUT", f"/{name}", body or {}, wait_for_active_shards="1")
        except (Refused, StackError) as failure:
            raise SetupError(f"{asked}; saw {failure}. Mend `setup`: {text.strip()}") from failure
