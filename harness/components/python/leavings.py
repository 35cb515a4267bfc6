"""Has the user's code remove the namespaces that a killed harness left.

`python -m harness.components.python.leavings FILE` is the session's last command. The process that ends the session
runs it, and tries again at the next start if it failed."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from harness.components.python.calls import Called, Namespace, call, directly
from harness.errors import HarnessError
from harness.session import reaper

SHARE = 0.7


def main(path: Path) -> int:
    """Remove each namespace by itself; return how many could not be removed."""
    failed, stored = 0, json.loads(path.read_text(encoding="utf-8"))
    # Its caller ends it after a time, and would leave the call that it is in.
    within_s = SHARE * reaper.CLOSING_MESSAGE_S / max(1, len(stored))
    with tempfile.TemporaryDirectory(prefix="calls-", dir=path.parent) as scratch:
        for each in stored:
            stored_code, namespace = each["code"], each["namespace"]
            more = {
                "folders": tuple(map(Path, stored_code["folders"])),
                "within_s": min(stored_code["within_s"], within_s),
            }
            code = Called(**{**stored_code, **more})
            there = Namespace(name=namespace["name"], path=Path(namespace["path"]), run=namespace["run"])
            try:
                with call(directly, code, there, "remove", scratch=Path(scratch)):
                    pass
            except HarnessError as failure:
                print(failure, file=sys.stderr)
                failed += 1
    return failed


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
