"""`python -m harness.load` prints the JSON Schema of scenario files, with the kinds of the current folder's project."""

from __future__ import annotations

import json
from pathlib import Path

from harness.fields.own_kinds import load_own_kinds
from harness.load.json_schema import schema

if __name__ == "__main__":
    load_own_kinds([Path.cwd()])
    print(json.dumps(schema(), indent=2))
