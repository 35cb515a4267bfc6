"""Has the user's code remove the rooms that a killed harness left: `python -m harness.components.python.leavings FILE`.

The session's last command: the process that ends the session runs it, and tries again at the next start if it
failed."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from harness.components.python.calls import Called, Room, call, directly
from harness.errors import HarnessError
from harness.session import reaper

SHARE = 0.7


def main(path: Path) -> int:
    """Remove each by itself; how many could not be."""
    failed, rooms = 0, json.loads(path.read_text(encoding="utf-8"))
    # Its caller ends it after a time, and would leave the call that it is in.
    within_s = SHARE * reaper.CLOSING_MESSAGE_S / max(1, len(rooms))
    with tempfile.TemporaryDirectory(prefix="calls-", dir=path.parent) as scratch:
        for each in rooms:
            said, room = each["code"], each["room"]
            more = {"folders": tuple(map(Path, said["folders"])), "within_s": min(said["within_s"], within_s)}
            code = Called(**{**said, **more})
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
