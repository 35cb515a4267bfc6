"""Where the programs are that run the emulator, and fetch it."""

from __future__ import annotations

import shutil
from pathlib import Path

from harness.errors import StackError

CURE = "install Node.js (https://nodejs.org) with npm"


def program(name: str) -> Path:
    """Return where `node` or `npm` is. Raises StackError."""
    found = shutil.which(name)
    if found is None:
        raise StackError(f"asked for Azurite; there is no {name}; {CURE}")
    return Path(found)
