"""`python -m harness.load` prints the JSON Schema of scenario files."""

from __future__ import annotations

import json

from harness.load.json_schema import schema

if __name__ == "__main__":
    print(json.dumps(schema(), indent=2))
