"""Has the user's code remove the rooms that a killed harness left: `python -m harness.components.python.leavings FILE`.

The session's last command: whoever ends the session runs it, and tries again at the next start if it failed."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from harness.components.python.calls import Called, Room, call, directly
from harness.errors import HarnessError


def main(path: Path) -> int:
    """Remove each by itself; how many could not be."""
    failed = 0
    with tempfile.TemporaryDirectory(prefix="calls-", dir=path.parent) as scratch:
        for each in json.loads(path.read_text(encoding="utf-8")):
            said, room = each["code"], each["room"]
            code = Called(**{**said, "folders": tuple(map(Path, said["folders"]))})
            there = Room(room=room["room"], path=Path(room["path"]), run=room["run"])
            try:
                with call(directly, code, there, "remove", scratch=Path(scratch)):
                    pass
            except HarnessError as failure:
                print(failure, file=sys.stderr)
                failed += 1
    return failed


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
