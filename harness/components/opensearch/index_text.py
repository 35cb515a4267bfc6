"""What a scenario's `setup` says of indexes.

The text is YAML, since the braces of JSON would be placeholders: by the name of each index, without the run's prefix,
what OpenSearch is sent to make it (settings, mappings, aliases).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from harness.errors import one_line
from harness.fields.hints import seen

MADE = "YAML: the name of each index, and below it what it is made with: settings, mappings"


def made(text: str) -> Mapping[str, Mapping[str, Any] | None]:
    """Return by index, what it is made with. Raises ValueError: what was seen in its place."""
    try:
        found = YAML(typ="safe", pure=True).load(text)
    except MarkedYAMLError as failure:
        line = f" in its line {failure.problem_mark.line + 1}" if failure.problem_mark else ""
        raise ValueError(f"{failure.problem}{line}") from failure
    except (YAMLError, ValueError, RecursionError) as failure:
        raise ValueError(one_line(failure)) from failure
    if not isinstance(found, dict):
        raise ValueError(seen(found if found is None or isinstance(found, list) else str(found)))
    if wrong := [index for index, body in found.items() if not isinstance(body, dict | None)]:
        raise ValueError(f"no mapping below {wrong[0]}")
    return {str(index): body for index, body in found.items()}
